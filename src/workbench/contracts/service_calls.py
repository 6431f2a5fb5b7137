"""ServiceCalls: one HTTP call to the service of a toolkit, with a credential of one account.

For the author of the next one: what is asked for comes from agents, and what is answered from anybody. A credential
goes to the hosts of its toolkit and nowhere else, and is taken out of everything that comes back. Every call is bounded
in time and in size, and is sent a second time only where that does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.model.connection import Credential
from workbench.model.toolkit import ReturnedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOrder:
    """A request, as it is to be sent, but for the credential."""

    method: str
    """capital letters"""
    url: str = field(repr=False)
    """absolute"""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    hosts: tuple[str, ...]
    """as `Toolkit.hosts`: nobody else is asked"""
    credential: Credential | None = field(default=None, repr=False)
    may_repeat: bool = False
    """the service takes it only once, however often it is sent; said by a key that goes with it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAnswer:
    """What came of a request that was sent."""

    status: int | None = None
    """None if none came"""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """names in small letters; those that are of use to who called"""
    data: Any = field(default=None, repr=False)
    """JSON, or a text; None if there is none, or it is a file"""
    file: ReturnedFile | None = None
    problem: str = ""
    """why there is no whole answer; whether it was carried out is then not known"""


class ServiceCalls(Protocol):
    """Owned by who wired it. Calls run side by side."""

    async def call(self, order: ServiceOrder) -> ServiceAnswer:
        """Whatever the status. An error means that nothing was sent.

        Raises:
            InvalidRequest: it is no request that can be sent.
            Denied: it would go to a host, or an address, where it may not go.
            UpstreamError: nobody answers there, or it cannot be trusted.
            QuotaExceeded: too many are under way.
        """
        ...
