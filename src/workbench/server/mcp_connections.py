"""Connections that clients of MCP keep, by key: how many one may have, and what each is being asked.

The library knows only how many there are. It is told to end one here and there; whose it was does not notice, since a
connection is made up again from its id.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from starlette.types import Message, Send

Name = tuple[str, str]
"""the key's, and the connection's"""
# Of one connection: numbers of messages whose answers nobody took.
_MOST_NUMBERS = 1000
_HEADER = b"mcp-session-id"


class NumberTaken(Exception):
    """A message has the number of another one that has no answer yet."""


@dataclass(slots=True)
class _Kept:
    used_at: float
    calls: int = 0
    streams: int = 0
    numbers: dict[str, None] = field(default_factory=dict)
    """of messages without an answer, oldest first"""


@dataclass(slots=True)
class Use:
    """One request on a connection."""

    answered: bool = True
    """its answer has gone out whole: its number is free again"""


class Connections:
    """All of one app. It opens and ends none."""

    def __init__(self, idle_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = idle_s
        self._now = now
        self._kept: dict[str, dict[str, _Kept]] = {}

    def opened(self, name: Name) -> None:
        """The library has made it."""
        self._forget_idle()
        key, connection = name
        self._kept.setdefault(key, {})[connection] = _Kept(self._now())

    def closed(self, name: Name) -> None:
        """The library knows it no more."""
        key, connection = name
        own = self._kept.get(key, {})
        own.pop(connection, None)
        if not own:
            self._kept.pop(key, None)

    def is_full(self, key: str, most: int) -> bool:
        """Whether the key has so many that none could be ended for another one."""
        return sum(one.calls > 0 for one in self._kept.get(key, {}).values()) >= most

    def surplus(self, key: str, most: int) -> list[str]:
        """Those of the key that have to end, so that it has no more than `most`: the longest unused first."""
        own = self._kept.get(key, {})
        idle = [one for one in own if not own[one].calls]
        # What still runs for a client that is gone would end with its connection.
        idle.sort(key=lambda one: (bool(own[one].numbers), own[one].used_at))
        return idle[: max(0, len(own) - most)]

    @contextlib.contextmanager
    def use(self, name: Name, *, listens: bool, number: str | int | None) -> Iterator[Use]:
        """While one request is served.

        Raises:
            NumberTaken: its number is another one's.
        """
        key, connection = name
        kept = self._kept.get(key, {}).get(connection) or _Kept(self._now())
        # The library takes 1 and "1" for the same.
        written = None if number is None else str(number)
        # BARRIER: the library would give one the answer of the other; held by tests/unit/server/test_mcp.py.
        if written in kept.numbers:
            raise NumberTaken
        if written is not None:
            kept.numbers[written] = None
            if len(kept.numbers) > _MOST_NUMBERS:
                del kept.numbers[next(iter(kept.numbers))]
        kept.streams += listens
        kept.calls += not listens
        use = Use()
        try:
            yield use
        finally:
            kept.streams -= listens
            kept.calls -= not listens
            kept.used_at = self._now()
            if written is not None and use.answered:
                kept.numbers.pop(written, None)

    def _forget_idle(self) -> None:
        """The library ends them without a word."""
        before = self._now() - self._idle_s
        for key, own in list(self._kept.items()):
            for connection, one in list(own.items()):
                if not one.calls and not one.streams and one.used_at < before:
                    self.closed((key, connection))


class Noticing:
    """Passes everything on, and tells the id of a connection that was opened."""

    def __init__(self, send: Send, opened: Callable[[str], None]) -> None:
        self._send = send
        self._opened = opened

    async def __call__(self, message: Message) -> None:
        """As ASGI has it."""
        if message["type"] == "http.response.start" and message["status"] < 400:
            for name, value in message.get("headers", ()):
                if name.lower() == _HEADER:
                    self._opened(value.decode("latin-1"))
        await self._send(message)
