"""What is being done at this moment, and for whom: nobody takes all that the server can do at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.errors import QuotaExceeded

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """Requests, and bytes that their bodies take up, at once."""

    requests: int
    of_bytes: int


FOR_A_KEY = Most(requests=512, of_bytes=64 * _MIB)
FOR_ALL = Most(requests=4096, of_bytes=256 * _MIB)


@dataclass(slots=True)
class _Load:
    requests: int = 0
    held: int = 0


class InFlight:
    """Counts requests from when their caller is known until they have their answer, streams too, and until what they
    began has ended. One per app.
    """

    def __init__(self, for_a_key: Most = FOR_A_KEY, for_all: Most = FOR_ALL) -> None:
        self._for_a_key = for_a_key
        self._for_all = for_all
        self._all = _Load()
        self._by_key: dict[str, _Load] = {}

    @contextlib.contextmanager
    def one(self, key: str) -> Iterator[Request]:
        """Of the key.

        Raises:
            QuotaExceeded: there are too many already.
        """
        own = self._by_key.get(key) or _Load()
        # BARRIER: one key, or the token of one session, would take all that there is for everybody; held by
        # tests/unit/server/test_in_flight.py and tests/mcp/http/test_limits.py.
        for load, most, whose in ((own, self._for_a_key, "this key has"), (self._all, self._for_all, "there are")):
            if load.requests >= most.requests:
                raise _too_much(f"{whose} {most.requests:,} requests that are not answered yet, the most at once")
        self._by_key[key] = own
        request = Request(self, own, key)
        own.requests += 1
        self._all.requests += 1
        try:
            yield request
        finally:
            request.let_go()

    def ended(self, own: _Load, key: str, held: int) -> None:
        """One of them, and all that it began."""
        own.requests -= 1
        self._all.requests -= 1
        own.held -= held
        self._all.held -= held
        if not own.requests:
            del self._by_key[key]

    def more(self, own: _Load, count: int) -> None:
        """Bytes are about to be held by one of them."""
        # BARRIER: as above.
        for load, most, whose in ((own, self._for_a_key, "this key"), (self._all, self._for_all, "all")):
            if load.held + count > most.of_bytes:
                raise _too_much(
                    f"the requests of {whose} that are not answered yet hold {most.of_bytes // _MIB:,} MiB, the most "
                    "at once"
                )
        own.held += count
        self._all.held += count


class Request:
    """One of them."""

    def __init__(self, of: InFlight, own: _Load, key: str) -> None:
        self._of = of
        self._own = own
        self._key = key
        self._users = 1
        self.held = 0

    def hold(self, count: int) -> None:
        """So many bytes more, until it has its answer.

        Raises:
            QuotaExceeded: there are too many already.
        """
        self._of.more(self._own, count)
        self.held += count

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Meanwhile it counts, also when whoever sent it is gone."""
        # BARRIER: who sends calls and hangs up would have any number under way, with all that is in them; held by
        # tests/unit/server/test_in_flight.py and tests/composio/tools/test_leaving.py.
        self._users += 1
        try:
            yield
        finally:
            self.let_go()

    def let_go(self) -> None:
        """By one of those for whom it counts."""
        self._users -= 1
        if not self._users:
            self._of.ended(self._own, self._key, self.held)


def _too_much(why: str) -> QuotaExceeded:
    problem = QuotaExceeded(f"{why}; ask again when some of them have ended")
    # Unlike other quotas, this one has room again by itself.
    problem.retryable = True
    return problem
