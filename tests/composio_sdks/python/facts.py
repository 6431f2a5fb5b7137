"""What an SDK told, written down as JSON for the tests, which run elsewhere: it is imported by no test.

facts = Facts()
session = facts.of("create", lambda: composio.create(user_id="user_123"))
facts.write()                                      into the file that FACTS names
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Facts:
    """By their names: what a call gave, or what it raised."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def of(self, name: str, call: Callable[[], _T], show: Callable[[_T], Any] = lambda it: it) -> _T:
        """Note what the call gives, as `show` puts it; what it raises is noted and raised."""
        try:
            made = call()
            self._known[name] = {"gave": _plain(show(made))}
        except Exception as problem:
            self._known[name] = _raised(problem)
            raise
        return made

    def refusal(self, name: str, call: Callable[[], object]) -> None:
        """Note what the call raises; a call that gives something is noted as such, for the test to wonder at."""
        try:
            self._known[name] = {"gave": _plain(call())}
        except Exception as problem:  # noqa: BLE001  (what it raises is the fact)
            self._known[name] = _raised(problem)

    def write(self) -> None:
        """All of them."""
        with open(os.environ["FACTS"], "w", encoding="utf-8") as out:
            json.dump(self._known, out)


def _raised(problem: Exception) -> dict[str, Any]:
    return {
        "raised": type(problem).__name__,
        "message": str(problem)[:2000],
        "status": getattr(problem, "status_code", None),
        "body": _plain(getattr(problem, "body", None)),
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _plain(vars(value)) if hasattr(value, "__dict__") else repr(value)
