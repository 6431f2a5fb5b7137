"""What an SDK told about its exchanges with a server, in one form for both languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.server.running import Running

_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


@dataclass(frozen=True, slots=True)
class Problem:
    """What a call raised."""

    kind: str
    message: str
    status: int | None


class Told:
    """By the names under which the scripts wrote it down."""

    def __init__(
        self, line: str, server: Running, facts: dict[str, Any], requests: Sequence[dict[str, Any]] = ()
    ) -> None:
        self.line = line
        self.requests = requests
        """what it asked, as the servers wrote it down"""
        self.server = server
        self._facts = facts

    @property
    def names(self) -> list[str]:
        """Of everything that was tried."""
        return list(self._facts)

    def gave(self, name: str) -> Any:
        """What the call gave, with Python's spelling of the SDK's own names."""
        fact = self._facts[name]
        assert "gave" in fact, f"{self.line}: {name}: {fact}"
        return _snaked(fact["gave"])

    def raised(self, name: str) -> Problem:
        """What the call raised."""
        fact = self._facts[name]
        assert "raised" in fact, f"{self.line}: {name} gave {fact}"
        return Problem(fact.get("kind") or fact["raised"], fact["message"], fact["status"])

    def failure(self, name: str) -> str:
        """Of a tool: an answer that says why it failed."""
        answer = self.gave(name)
        assert answer.get("result_type", "failed") == "failed", answer
        assert answer["error"], answer
        error: str = answer["error"]
        return error

    def done(self, name: str) -> dict[str, Any]:
        """The data of a tool that did not fail."""
        answer = self.gave(name)
        assert answer.get("result_type", "completed") == "completed", answer
        assert answer["error"] is None, answer
        data: dict[str, Any] = answer["data"]
        return data


def _snaked(value: Any) -> Any:
    """What a tool gave is nobody's to rename."""
    if isinstance(value, dict):
        return {
            _HUMP.sub(r"_\1", name).lower() if name != name.upper() else name: one if name == "data" else _snaked(one)
            for name, one in value.items()
        }
    return [_snaked(one) for one in value] if isinstance(value, list) else value
