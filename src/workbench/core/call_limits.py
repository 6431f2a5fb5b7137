"""How often a session may ask, how much at once, and how much in one cell."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.contracts.clock import Clock
from workbench.errors import QuotaExceeded
from workbench.model.ids import CellId, SessionId

# Sessions and cells whose counts are remembered; the longest unused are forgotten.
_REMEMBERED = 10_000
# Of refusals of one session, one in so long is news.
_NEWS_EVERY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Of one session; of one cell."""

    a_minute: int = 3000
    """on average; as many as a fiftieth of it may come at once, and 64 in any case"""
    at_once: int = 64
    a_cell: int = 5000


@dataclass(slots=True)
class _Asked:
    left: float
    at: float
    under_way: int = 0
    told_at: float | None = None
    """when a refusal of it was news"""


class CallLimiter:
    """Counts for one who answers."""

    def __init__(self, limits: CallLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._sessions: OrderedDict[SessionId, _Asked] = OrderedDict()
        self._cells: OrderedDict[tuple[SessionId, CellId], int] = OrderedDict()

    @contextlib.contextmanager
    def one(self, session: SessionId, cell: CellId | None) -> Iterator[None]:
        """One call of it.

        Raises:
            QuotaExceeded: too many; `retryable` says whether waiting helps.
        """
        asked = self._of(session)
        self._check(asked)
        # Also for one that its cell may not make.
        asked.left -= 1
        self._check_cell(session, cell)
        asked.under_way += 1
        try:
            yield
        finally:
            asked.under_way -= 1

    def is_news(self, session: SessionId) -> bool:
        """Whether anybody has to hear of a refusal: of the first, and after a while of one more."""
        asked = self._of(session)
        if asked.told_at is not None and asked.at - asked.told_at < _NEWS_EVERY_S:
            return False
        asked.told_at = asked.at
        return True

    def _of(self, session: SessionId) -> _Asked:
        now, burst = self._clock.monotonic(), max(64.0, self._limits.a_minute / 50)
        asked = self._sessions.pop(session, None) or _Asked(burst, now)
        asked.left = min(burst, asked.left + (now - asked.at) * self._limits.a_minute / 60)
        asked.at = now
        self._sessions[session] = asked
        if len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)
        return asked

    def _check(self, asked: _Asked) -> None:
        if asked.under_way >= self._limits.at_once:
            raise _later(f"{self._limits.at_once} calls of this session are under way: wait for some of them")
        if asked.left < 1:
            raise _later(f"a session may make {self._limits.a_minute} calls a minute: wait a moment, then go on")

    def _check_cell(self, session: SessionId, cell: CellId | None) -> None:
        if cell is None:
            return
        count = self._cells.pop((session, cell), 0) + 1
        self._cells[session, cell] = count
        if len(self._cells) > _REMEMBERED:
            self._cells.popitem(last=False)
        if count > self._limits.a_cell:
            raise QuotaExceeded(
                f"a cell may make {self._limits.a_cell} calls: go on with the rest of the work in another cell"
            )


def _later(message: str) -> QuotaExceeded:
    problem = QuotaExceeded(message)
    problem.retryable = True
    return problem
