"""What is written down about cells and commands, and about who did what."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from workbench.errors import WorkbenchError, from_wire
from workbench.model.execution import CellResult, CommandResult
from workbench.model.ids import CellId, KeyId, ProjectId, SandboxId, SessionId


class CellKind(StrEnum):
    """What was run."""

    CELL = "cell"
    COMMAND = "command"


class CellStatus(StrEnum):
    """What is known about its end."""

    PENDING = "pending"
    """it waits for its turn, or runs"""
    ENDED = "ended"
    """it began, and has a result"""
    FAILED = "failed"
    """it never began, and has an error"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error of our tree, kept."""

    code: str
    message: str
    context: dict[str, str]

    @classmethod
    def of(cls, error: WorkbenchError) -> Problem:
        """The record of it."""
        return cls(code=error.code, message=error.message, context=dict(error.context))

    def error(self) -> WorkbenchError:
        """To be raised."""
        return from_wire(self.code, self.message, self.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the agent said about where it is: kept with the cell, shown on the session."""

    thought: str = ""
    current_step: str = ""
    current_step_metric: str = ""
    """`10/100 emails`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """One cell or command of a session, from the moment it was accepted."""

    id: CellId
    session: SessionId
    kind: CellKind
    code: str
    """or the command line"""
    limit_s: float
    progress: Progress = field(default_factory=Progress)
    idempotency_key: str = ""
    """by which a retry is known; one of a session's, or empty"""
    digest: str = ""
    """of the request, so that another one with the same idempotency key is noticed"""
    sandbox: SandboxId
    """where it was sent, and where its output is"""
    created_at: str
    ended_at: str = ""
    status: CellStatus = CellStatus.PENDING
    result: CellResult | CommandResult | None = None
    """if it ended"""
    problem: Problem | None = None
    """if it failed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what. Never what was in it."""

    at: str
    project: ProjectId
    key: KeyId | None
    """None for the owner of the data folder"""
    session: SessionId | None = None
    user: str = ""
    action: str
    """`session.create`, `key.revoke`, …"""
    outcome: str
    """`ok`, or the code of the error"""
    detail: str = ""
    """names and numbers, for people"""
