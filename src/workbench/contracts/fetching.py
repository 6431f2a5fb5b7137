"""Fetching: what lies behind a URL that a caller gave.

For the author of the next one: a caller's URL is hostile. It must not lead to what only this machine can reach, also
not by a redirect or by a name that changes its address; and what comes is bounded in size and time. Both the call and
the reading may raise:

* `InvalidRequest`: the URL cannot be asked for, or redirects to one that cannot.
* `Denied`: it leads to an address that is not to be connected to.
* `TooLarge`: there are more bytes than were asked for.
* `UpstreamFailed`: the server behind it did not answer, answered with another status, or broke off.
* `QuotaExceeded`: too many are fetched at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Fetched(Protocol):
    """An answer whose body is still to come."""

    @property
    def name(self) -> str:
        """What the file might be called: one name, without folders; never empty."""
        ...

    @property
    def content_type(self) -> str:
        """As the server says, without its parameters; empty if it does not."""
        ...

    @property
    def size(self) -> int | None:
        """How many bytes will come, if the server says so; then fewer are an error."""
        ...

    @property
    def url(self) -> str:
        """Where it came from in the end, after redirects. There may be a secret in it: not for logs."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The bytes as they are, also if they are compressed. Once, and within the context that gave it."""
        ...


class Fetching(Protocol):
    """Owned by who wired it."""

    def fetch(self, url: str, *, most_bytes: int) -> AbstractAsyncContextManager[Fetched]:
        """Ask for it. Leaving the context ends the connection, whether all was read or not."""
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...
