"""One helper as a program, for other languages: `answering.py NAME`, arguments on stdin, the answer on stdout.

Takes `{"given": [...], "named": {...}}` and answers with `{"result", "error", "printed"}`. Runs with -I -S.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from workbench_guest.helpers import offered, why_missing


def answered(name: str, asked: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """What the helper returned, and what it printed meanwhile."""
    printed = io.StringIO()
    try:
        helper = offered(environment).get(name) or why_missing("this session")(name)
        with contextlib.redirect_stdout(printed):
            result, error = helper(*asked["given"], **asked["named"])
    except (TypeError, ImportError, AttributeError) as problem:
        return {"result": None, "error": str(problem), "printed": printed.getvalue()}
    return {"result": result, "error": error, "printed": printed.getvalue()}


def main(arguments: list[str]) -> int:
    """0 whatever the answer is; 130 if it was interrupted."""
    try:
        told = answered(arguments[0], json.loads(sys.stdin.buffer.read()), dict(os.environ))
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
