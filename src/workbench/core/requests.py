"""One value for each operation of the workbench, and for the answers that the model has no value for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from workbench.model.execution import DEFAULT_LIMIT_S, Piece
from workbench.model.ids import CellId, SessionId, new_cell_id, new_session_id
from workbench.model.session import SessionDescription
from workbench.model.tier import STANDARD, Tier

OnPiece = Callable[[Piece], Awaitable[None]]
OnDropped = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession:
    """A new session."""

    session: SessionId = field(default_factory=new_session_id)
    user: str = "local"
    tier: Tier = STANDARD
    env: dict[str, str] = field(default_factory=dict)
    start_up: str = ""
    working_folder: str = "/home/user"
    snapshots: bool = True
    """keep its memory between cells"""
    eager: bool = False
    """make the sandbox and run the start-up code now, and not with the first call"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSession:
    """How it is; changes nothing and starts nothing."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessions:
    """A page of a user's sessions, by name."""

    user: str = "local"
    after: SessionId | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Some of them."""

    sessions: tuple[SessionDescription, ...]
    next_after: SessionId | None
    """where the next page begins; None if there is none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSession:
    """End it and drop its files and its record."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTier:
    """Another size, at once if it lives."""

    session: SessionId
    tier: Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSnapshots:
    """Keep its memory between cells from now on, or keep nothing of it."""

    session: SessionId
    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoCells:
    """Back to the memory from before the last cells; files stay as they are."""

    session: SessionId
    cells: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A session that went back."""

    described: SessionDescription
    not_carried: str
    """what of the earlier memory no snapshot can carry, in words; empty if there was nothing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchSession:
    """A second session with the same memory."""

    session: SessionId
    branch: SessionId = field(default_factory=new_session_id)
    """its name"""
    copy: bool = False
    """in a sandbox of its own, with files and variables copied; else in the same sandbox, with the same files"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """A new branch, in the sandbox of what it was branched from."""

    described: SessionDescription
    not_carried: str
    """what of the memory a branch cannot have, in words; empty if there was nothing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSession:
    """A new session with copies of another's files and variables."""

    described: SessionDescription
    carried: tuple[str, ...]
    """variables that arrived"""
    not_carried: dict[str, str]
    """those that did not, each with its reason"""
    files_note: str
    """what is to be known about the files; empty if all arrived"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartKernel:
    """A new memory in the same sandbox."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptKernel:
    """Interrupt what its kernel runs."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ListVariables:
    """Names of its memory."""

    session: SessionId
    most: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProcesses:
    """What runs in its background."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachKernel:
    """A door for Jupyter clients."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """Who wants to hear of output as it comes; whoever is slow is waited for, and nothing is lost by it."""

    on_piece: OnPiece
    on_dropped: OnDropped
    """told once, at the end, how many bytes the host could not keep, if there are any"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCell:
    """Run code in its kernel, after what is queued there already."""

    session: SessionId
    code: str
    limit_s: float = DEFAULT_LIMIT_S
    store_history: bool = True
    cell: CellId = field(default_factory=new_cell_id)
    """chosen by the caller, so that it can be stopped and asked for again"""
    follower: Follower | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Run a command line by bash, beside what the kernel does."""

    session: SessionId
    command: str
    limit_s: float = DEFAULT_LIMIT_S
    cwd: str = "/home/user"
    cell: CellId = field(default_factory=new_cell_id)
    follower: Follower | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelCell:
    """Take a waiting cell out of the queue."""

    session: SessionId
    cell: CellId


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCell:
    """End this cell and no other: cancelled if it waits, interrupted if it runs."""

    session: SessionId
    cell: CellId


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCommand:
    """Interrupt this command."""

    session: SessionId
    cell: CellId
