"""How many files are on their way at this moment: nobody with a link takes all that the server can do."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from workbench.core.mount_requests import FileLink
from workbench.errors import Conflict, QuotaExceeded

_MOST_PIECE, _LEAST_PIECE = 1024 * 1024, 64 * 1024
# What all of them together hold in memory, about.
_MEMORY = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """At once, in each direction: who only reads leaves room for who writes."""

    of_a_link: int = 16
    of_a_session: int = 32
    of_a_project: int = 128
    of_all: int = 256


class Transfers:
    """Counts them, and has the threads for them. One per app, which closes it."""

    def __init__(self, most: Most | None = None) -> None:
        self._most = most or Most()
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._gone_on_with: set[str] = set()
        self._all = 0
        # Idle ones are used again: there are as many as were needed at once.
        self.threads = ThreadPoolExecutor(2 * self._most.of_all, thread_name_prefix="transfers")

    @contextlib.contextmanager
    def one(self, link: FileLink, signature: str) -> Iterator[None]:
        """By that link, until it ends.

        Raises:
            QuotaExceeded: there are too many already.
        """
        way, most = str(link.action), self._most
        # BARRIER: one link, which anybody may have, would hold all connections and threads; held by
        # tests/unit/server/test_files.py and tests/server/test_files_links.py.
        bounds = (
            ((way, "link", signature), most.of_a_link, f"{way}s by this link"),
            ((way, "session", link.project, link.session), most.of_a_session, f"{way}s of this session"),
            ((way, "project", link.project), most.of_a_project, f"{way}s of this project"),
            ((way, "all"), most.of_all, f"{way}s of all sessions"),
        )
        for whose, count, which in bounds:
            if self._counts[whose] >= count:
                raise _too_many(f"{count} {which}")
        keys = [whose for whose, _, _ in bounds]
        self._counts.update(keys)
        self._all += 1
        try:
            yield
        finally:
            self._all -= 1
            self._counts.subtract(keys)
            # Without those that are none: there are as many links as anybody likes.
            for whose in keys:
                if not self._counts[whose]:
                    del self._counts[whose]

    @contextlib.contextmanager
    def alone(self, signature: str) -> Iterator[None]:
        """The only one that goes on with the upload of that link. The store sees to that as well while it is written,
        but not in the moment between a file that is in its place and the word of it.

        Raises:
            Conflict: another does.
        """
        if signature in self._gone_on_with:
            raise Conflict("this upload is being written by another connection just now; wait for its end")
        self._gone_on_with.add(signature)
        try:
            yield
        finally:
            self._gone_on_with.discard(signature)

    def piece_bytes(self) -> int:
        """How much of a file one of them should have in memory at once."""
        return max(_LEAST_PIECE, min(_MOST_PIECE, _MEMORY // max(self._all, 1)))

    async def aclose(self) -> None:
        """When none is on its way."""
        await asyncio.to_thread(self.threads.shutdown)


def _too_many(which: str) -> QuotaExceeded:
    problem = QuotaExceeded(f"{which} are on their way, the most at once; send this again when some have ended")
    # Unlike other quotas, this one has room again by itself.
    problem.retryable = True
    return problem
