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
    """Counts requests from when their caller is known until they have their answer, streams too. One per app."""

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
        request = Request(self, own)
        own.requests += 1
        self._all.requests += 1
        try:
            yield request
        finally:
            own.requests -= 1
            self._all.requests -= 1
            own.held -= request.held
            self._all.held -= request.held
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

    def __init__(self, of: InFlight, own: _Load) -> None:
        self._of = of
        self._own = own
        self.held = 0

    def hold(self, count: int) -> None:
        """So many bytes more, until it has its answer.

        Raises:
            QuotaExceeded: there are too many already.
        """
        self._of.more(self._own, count)
        self.held += count


def _too_much(why: str) -> QuotaExceeded:
    problem = QuotaExceeded(f"{why}; ask again when some of them have ended")
    # Unlike other quotas, this one has room again by itself.
    problem.retryable = True
    return problem
