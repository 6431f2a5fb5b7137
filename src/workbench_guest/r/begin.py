"""A kernel that was started before anybody had its sandbox learns whose it is: once, before it runs anything."""

from __future__ import annotations

import json
import os

_OF_R = "R_"
"""left as R has made them when it started; where a session has others of these, its kernel is not one that waited"""
_told = os.environ.get("WORKBENCH_BEGIN")


def begin() -> bool:
    """The session's variables, all of them, and its folder; nothing, and False, where they were known at the start."""
    global _told
    if _told is None:
        return False
    with open(int(_told), encoding="utf-8") as file:
        session = json.load(file)
    _told = None
    theirs = {name: value for name, value in session["env"].items() if not name.startswith(_OF_R)}
    for name in [name for name in os.environ if not name.startswith(_OF_R) and name not in theirs]:
        del os.environ[name]
    os.environ.update(theirs)
    os.environ.setdefault("LANG", "C.UTF-8")
    os.chdir(session["cwd"])
    return True
