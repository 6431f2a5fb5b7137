"""Asks the workbench for packages, as a program: `ask.py node modules 0 lodash`. For hooks that are not Python.

Answers in two lines: `ok`, `refused` or `failed`, and a sentence. Never ends with a traceback, and runs on the standard
library alone, with -I -S: it is started in the middle of somebody's program.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from workbench_guest.helpers import calling

REFUSED = "package_refused"
# Before that, nobody wonders what is going on.
PATIENCE_S = 2.0


def wanted(language: str, kind: str, names: list[str], guarded: bool) -> dict[str, Any]:
    """The arguments of the call."""
    asked: dict[str, Any] = {"language": language, "modules": [], "requirements": [], "guarded": guarded}
    asked[kind] = names
    return asked


def install(language: str, kind: str, names: list[str], guarded: bool = False) -> tuple[str, str]:
    """How it ended, and a sentence; says on stderr that it goes on, if it takes long."""
    progress = threading.Timer(PATIENCE_S, _say, [f"[sandbox] installing {', '.join(names)} …"])
    progress.daemon = True
    progress.start()
    try:
        result, error, code = calling.ask("install", wanted(language, kind, names, guarded))
    finally:
        progress.cancel()
    if code == calling.NOT_CONNECTED:
        return "failed", ""
    if error:
        return "refused" if code == REFUSED else "failed", _line(error)
    return "ok", _line(result.get("text", "") if isinstance(result, dict) else "")


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """0 whatever the answer is."""
    language, kind, guarded, *names = arguments
    try:
        state, text = install(language, kind, names, guarded == "1")
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(f"{state}\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
