"""Run as a program: `python FOLDER CONNECTION_FILE`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Serve until told to end."""
    # The folder that our package lies in, instead of the one with this file.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from workbench_guest.bash.kernel import serve

    serve(sys.argv[1])


if __name__ == "__main__":
    main()
