"""Clock: the time of day and a pause, from outside, so that the core can be tested without waiting."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """One per service."""

    def now_iso(self) -> str:
        """The time in UTC as ISO 8601 with microseconds and a Z; later times sort after earlier ones."""
        ...

    def after(self, seconds: float) -> str:
        """The time so long from now in the same form; before now, if negative."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; for how long something took."""
        ...

    async def pause(self, seconds: float) -> None:
        """Come back after about so long."""
        ...
