"""`python -m workbench_guest.extract PATH`: one JSON object on standard output, whatever the file is."""

from __future__ import annotations

import os
import sys

# A file called csv.py or email.py beside the caller is not what this program means by these names.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:] = [_ROOT, *(entry for entry in sys.path if os.path.abspath(entry or ".") not in (os.getcwd(), _ROOT))]


def main(arguments: list[str]) -> int:
    """Exit code 0 as soon as there is an answer; 2 if it was not called as it should be."""
    import json
    from dataclasses import asdict

    from workbench_guest.extract.reading import extract

    if len(arguments) != 1:
        sys.stderr.write("usage: python -m workbench_guest.extract PATH\n")
        return 2
    answer = json.dumps(asdict(extract(arguments[0])), ensure_ascii=False)
    # A path or a text may hold what UTF-8 cannot say.
    sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
