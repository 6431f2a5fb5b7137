"""A Fetcher that is made for the first URL: most commands fetch none, and its libraries take a while to load."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from workbench.egress.policy import AddressPolicy

if TYPE_CHECKING:
    from workbench.egress.fetch import Answer, Fetcher


class FetcherOnDemand:
    """`contracts.fetching.Fetching` with the usual times. `aclose` it."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._fetcher: Fetcher | None = None

    def fetch(self, url: str, *, most_bytes: int) -> AbstractAsyncContextManager[Answer]:
        """As `Fetching` has it."""
        if self._fetcher is None:
            from workbench.egress.fetch import Fetcher

            self._fetcher = Fetcher(self._policy)
        return self._fetcher.fetch(url, most_bytes=most_bytes)

    async def aclose(self) -> None:
        """May be called twice."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            await fetcher.aclose()
