"""What the server is given: the service that was wired, and what it is told about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from workbench.core.access import Access
from workbench.core.caretaker import Caretaker
from workbench.core.connection_links import ConnectionLinks
from workbench.core.connections import Connections
from workbench.core.guest_calls import CallDone
from workbench.core.router.router import Router
from workbench.core.toolkits import Toolkits
from workbench.core.workbench import Workbench
from workbench.mcp.families import DEFAULT_FAMILIES, Families
from workbench.model.ids import ProjectId
from workbench.server.logs import Log


class Service(Protocol):
    """Every operation there is. Owned by who wired it."""

    @property
    def access(self) -> Access:
        """Keys, tokens, and who did what."""
        ...

    @property
    def caretaker(self) -> Caretaker:
        """Who looks after sessions that nobody uses."""
        ...

    @property
    def connections(self) -> Connections:
        """Accounts of users with services."""
        ...

    @property
    def links(self) -> ConnectionLinks:
        """By which they are connected."""
        ...

    @property
    def toolkits(self) -> Toolkits:
        """Which ones were added."""
        ...

    @property
    def router(self) -> Router:
        """Tools, and who runs them."""
        ...

    async def answer_calls(self, *, address: str, tell: Callable[[CallDone], None]) -> None:
        """Until it is cancelled: answer what code in sandboxes asks. `address` is where links to files lead."""
        ...

    def workbench(self, project: ProjectId) -> Workbench:
        """The operations on sessions of a project."""
        ...

    async def check(self) -> dict[str, str]:
        """Whether it can work: `ok` for each part, or what is wrong with it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What of the settings concerns the app, and what depends on where it listens."""

    url: str = ""
    """by which others reach it; empty if that is the address they asked"""
    public_url: str = ""
    """by which everybody reaches it, if who runs it said so"""
    links_url: str = ""
    """by which links to files lead to it, if that is another"""
    max_body_bytes: int = 8 * 1024 * 1024
    cell_limit_max_s: int = 3600
    """the longest time limit that the host grants, for the document that describes us"""
    runtimes: tuple[str, ...] = ()
    """the languages that there are, for the same"""
    metrics_open: bool = False
    """to whoever is on this machine: it listens at no other address"""
    families: Families = DEFAULT_FAMILIES
    """of tools that MCP clients see, unless their address names others"""
    names: frozenset[str] | None = None
    """hosts by which MCP clients may ask for it, beside this machine's own; None if by any"""
    mcp_connections: int = 1000
    """of MCP clients that keep one, at once; each costs about 40 KB"""
    mcp_connections_of_key: int = 100
    """of those, with one key"""
    mcp_connections_of_token: int = 5
    """of those, with the token of a session"""
    log: Log = field(default_factory=Log)
