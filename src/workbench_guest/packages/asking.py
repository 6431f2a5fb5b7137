"""One question for packages, with signs of life while it takes long."""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

from workbench_guest.helpers import calling

# What is quicker needs no word; then one now and again.
_FIRST_WORD_S, _NEXT_WORD_S = 2.0, 10.0
# Who found nobody has waited for it; the next imports do not wait again at once.
_REFUSED = "package_refused"
_NOBODY = ("host_unavailable", calling.NOT_CONNECTED)
_NOBODY_S = 30.0
_nobody_until = [0.0]


class Told(NamedTuple):
    """What came of it."""

    result: dict[str, Any]
    refused: str = ""
    """why it was not installed"""
    failed: str = ""
    """why nobody could be asked"""


def install(arguments: dict[str, Any], what: str) -> Told:
    """What came of it. Never raises but for an interrupt."""
    if time.monotonic() < _nobody_until[0]:
        return Told({}, failed="nobody answered a moment ago")
    progress = _Progress(what)
    result, error, code = calling.ask("install", arguments, while_waiting=progress.tell)
    if error:
        if code in _NOBODY:
            _nobody_until[0] = time.monotonic() + _NOBODY_S
        return Told({}, refused=error) if code == _REFUSED else Told({}, failed=error)
    return Told(result if isinstance(result, dict) else {})


class _Progress:
    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._next = _FIRST_WORD_S

    def tell(self) -> None:
        """Called about once a second."""
        spent = time.monotonic() - self._began
        if spent >= self._next and sys.stderr is not None:
            self._next += _NEXT_WORD_S
            sys.stderr.write(f"[sandbox] installing {self._what} … {spent:.0f} s\n")
            sys.stderr.flush()
