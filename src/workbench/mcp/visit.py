"""Who calls a tool, and what they may reach. Made by the transport for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.core.router.approving import Answers
from workbench.core.router.router import Router
from workbench.core.workbench import Workbench
from workbench.mcp.families import DEFAULT_FAMILIES, Families
from workbench.model.approval import InputRequired
from workbench.model.ids import KeyId, SessionId
from workbench.model.records import CellRecord

OnProgress = Callable[[float, float | None, str], Awaitable[None]]


class Surroundings(Protocol):
    """What a transport does beside the tools: the log, the counts, the audit."""

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server is about to leave: then nothing is stopped on its callers' behalf."""
        ...

    def keep(self, work: Coroutine[Any, Any, Any], what: str) -> asyncio.Task[Any]:
        """Do it, whoever waits for it."""
        ...

    def ran(self, record: CellRecord) -> None:
        """A cell or command has come to its end."""
        ...

    async def note(self, action: str, session: SessionId, detail: str = "") -> None:
        """For the audit."""
        ...

    def defect(self, what: str, problem: BaseException) -> str:
        """Write down an error of ours; the name under which the log has it."""
        ...


Ask = Callable[[InputRequired], Awaitable[Answers | None]]
"""the person at the client; None if they cannot be asked after all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tooling:
    """Tools of apps, and what the caller may do with them."""

    router: Router
    key: KeyId | None = None
    may_proxy: bool = False
    """raw calls to services"""
    for_code: bool = False
    """the caller has a token of the session, as code has"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One caller."""

    bench: Workbench
    """of the caller's project"""
    around: Surroundings
    default_session: SessionId
    """used when no session is named; made with its first call"""
    own_session: SessionId | None = None
    """the address, or the caller's token, names it: no other can be reached"""
    has_sandbox: bool = True
    """its own session may have one; if not, there is nothing that tools could run in"""
    families: Families = DEFAULT_FAMILIES
    user: str = "mcp"
    """of sessions that are made on the caller's behalf"""
    on_progress: OnProgress | None = None
    """told while something runs; None if nobody wants to know"""
    most_answer_bytes: int = 8 << 20
    """of a whole answer, as the transport carries it; what is over is left out and said"""
    address: str = ""
    """that links to files lead to, if there is a server"""
    tooling: Tooling | None = None
    """None where there are no tools of apps"""
    answers: Answers = field(default_factory=Answers)
    """that came with the call, to what was asked before"""
    ask: Ask | None = None
    """None if nobody can be asked"""
    extra: dict[str, str] = field(default_factory=dict)
    """for the log"""

    @property
    def session(self) -> SessionId:
        """The one that is meant when none is named."""
        return self.own_session or self.default_session
