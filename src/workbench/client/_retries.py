"""When a lost answer is asked for again, and for how long."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from workbench.client._answers import unreachable
from workbench.client._requests import Request
from workbench.errors import ServerUnavailable

# Long enough that a server on the same machine is not drowned, short enough that a restart is hardly felt.
_FIRST_S = 0.1
_LONGEST_S = 2.0
# Failures before anything was sent: the server knows nothing of the request.
_NOTHING_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
# Failures of ours; the same request will fail again.
_HOPELESS = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)


@dataclass(slots=True)
class Connection:
    """What the calls of one client know together about its server."""

    server: str
    """its address"""
    retry_for_s: float
    """how long a server that went away is waited for"""
    reached: bool = False
    """it has answered before: one that is away will be back, one that never answered is a wrong address"""
    lost: Callable[[], str] = str
    """for a server of this program's own: that it has ended, and what to do; empty while it runs"""


@dataclass(slots=True)
class Attempts:
    """The attempts at one request."""

    request: Request[object]
    connection: Connection
    link_to: str = ""
    """where a link of the server leads, if that is elsewhere"""
    now: Callable[[], float] = time.monotonic
    spread: Callable[[], float] = random.random
    _lost_at: float | None = field(default=None, init=False)
    _step_s: float = field(default=_FIRST_S, init=False)

    def got_through(self) -> None:
        """The server is there: the next loss is a new one."""
        self.connection.reached = True
        self._lost_at, self._step_s = None, _FIRST_S

    def pause_s(self, problem: Exception | str) -> float:
        """How long to wait before the request is sent again.

        Raises:
            ServerUnavailable: it may not be sent again, or has been for long enough.
        """
        nothing_sent = isinstance(problem, _NOTHING_SENT)
        perhaps_done = self.request.method != "GET" and not nothing_sent
        if words := self.connection.lost():
            # It will not be back.
            words += "; whether this request was done is not known" if perhaps_done else ""
            raise ServerUnavailable(words, {"server": self.connection.server}) from _cause(problem)
        hopeless = isinstance(problem, _HOPELESS) or (nothing_sent and not self.connection.reached)
        moment = self.now()
        if self._lost_at is None:
            self._lost_at = moment
        waited_s = moment - self._lost_at
        if hopeless or not (self.request.again or nothing_sent) or waited_s >= self.connection.retry_for_s:
            why = str(problem) or type(problem).__name__
            raise unreachable(self.connection.server, why, perhaps_done=perhaps_done, link_to=self.link_to) from _cause(
                problem
            )
        # Spread, so that the clients of a server that comes back do not all come at once.
        pause = self._step_s * (0.5 + self.spread() / 2)
        self._step_s = min(2 * self._step_s, _LONGEST_S)
        return pause


def _cause(problem: Exception | str) -> Exception | None:
    return problem if isinstance(problem, Exception) else None
