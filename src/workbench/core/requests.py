"""One value for each operation of the workbench, and for the answers that the model has no value for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from workbench.model.access import Caller, Key, NewKey, Scope
from workbench.model.configuration import ConfigurationRecord, SessionConfig
from workbench.model.execution import DEFAULT_LIMIT_S, Piece
from workbench.model.ids import (
    DEFAULT_PROJECT,
    CellId,
    KeyId,
    MountId,
    ProjectId,
    SessionId,
    new_cell_id,
    new_session_id,
)
from workbench.model.packages import Language
from workbench.model.records import CellRecord, Progress
from workbench.model.runtime import PYTHON
from workbench.model.session import IdleLimits, SessionDescription
from workbench.model.tier import STANDARD, Tier

OnPiece = Callable[[Piece], Awaitable[None]]
OnDropped = Callable[[int], Awaitable[None]]

# In or out at once: a file goes through command lines, and is held in memory here.
MOST_FILE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession:
    """A new session."""

    session: SessionId = field(default_factory=new_session_id)
    user: str = "local"
    runtime: str = PYTHON
    """its language, by any name that the runtime has"""
    tier: Tier = STANDARD
    env: dict[str, str] = field(default_factory=dict)
    start_up: str = ""
    working_folder: str = "/home/user"
    snapshots: bool = True
    """keep its memory between cells"""
    idle: IdleLimits = field(default_factory=IdleLimits)
    config: SessionConfig = field(default_factory=SessionConfig)
    """what it may reach, and how"""
    packages: tuple[str, ...] = ()
    """that its code will need, by name: a guess for what its first sandbox is made with"""
    eager: bool = False
    """make the sandbox and run the start-up code now, and not with the first call"""
    passing: bool = False
    """for a client that named none: it may have a name of that kind, and is deleted when nobody uses it any more"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSession:
    """How it is; changes nothing and starts nothing."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessions:
    """A page of a user's sessions, or of everybody's in the project, by name."""

    user: str | None = "local"
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
class ChangeConfiguration:
    """Another configuration, as a new version; with a tier also another size, at once if it lives."""

    session: SessionId
    change: Callable[[SessionConfig], SessionConfig]
    """from the present one to the next; may be asked again, when somebody else was first"""
    tier: Tier | None = None
    expected_version: int | None = None
    """only if it is still this one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigurations:
    """A page of the versions of a session's configuration, newest first."""

    session: SessionId
    before: int | None = None
    """only older versions than this"""
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationPage:
    """Some of them."""

    items: tuple[ConfigurationRecord, ...]
    next_before: int | None
    """where the next page begins; None if there is none"""
    total: int
    """of all that are kept"""


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
class CreateContext:
    """A further kernel of a session, with an empty memory."""

    session: SessionId
    context: SessionId = field(default_factory=new_session_id)
    """its name"""
    runtime: str = ""
    """its language; empty for the session's"""
    working_folder: str = ""
    """where its cells start; empty for the session's"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListContexts:
    """Those of a session, in the order in which they were made."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartContext:
    """A new memory for one of a session's."""

    session: SessionId
    context: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveContext:
    """End one of a session's, and drop its record."""

    session: SessionId
    context: SessionId


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
    progress: Progress = field(default_factory=Progress)
    """what the agent says about where it is"""
    idempotency_key: str = ""
    """the same request with the same key is one cell: a retry gets its answer"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Run a command line by bash, beside what the kernel does."""

    session: SessionId
    command: str
    limit_s: float = DEFAULT_LIMIT_S
    cwd: str = "/home/user"
    cell: CellId = field(default_factory=new_cell_id)
    follower: Follower | None = None
    progress: Progress = field(default_factory=Progress)
    idempotency_key: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCell:
    """A cell or command as it is, or at its end if that comes within `wait_s`."""

    session: SessionId
    cell: CellId
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOutput:
    """What a cell or command said from `offset` on; waits up to `wait_s` for something new."""

    session: SessionId
    cell: CellId
    offset: int = 0
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCells:
    """A page of a session's history."""

    session: SessionId
    after: tuple[str, CellId] | None = None
    """`created_at` and `id` of the last one seen"""
    limit: int = 100
    newest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPage:
    """Some of them."""

    cells: tuple[CellRecord, ...]
    next_after: tuple[str, CellId] | None
    """where the next page begins; None if there is none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportNotebook:
    """A session's history as a notebook."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """A file inside, whole or not at all; folders are made. A relative path begins at /home/user."""

    session: SessionId
    path: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """What is in a file inside."""

    session: SessionId
    path: str
    most_bytes: int = MOST_FILE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFile:
    """A file inside once more, under another name inside."""

    session: SessionId
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFile:
    """A file inside, without what is in it."""

    session: SessionId
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HasFiles:
    """Whether anything is in its /mnt/files."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """One that is there."""

    path: str
    """absolute, inside"""
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """All that is in one."""

    path: str
    """absolute, inside"""
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FindPackages:
    """Which of these its Python has."""

    session: SessionId
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPackages:
    """Packages for it, beside those that it has."""

    session: SessionId
    requirements: tuple[str, ...]
    """names, each with versions if they matter, in the language's own notation"""
    language: Language = Language.PYTHON


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """Count as used now."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdleLimits:
    """Other limits for when nothing happens in it."""

    session: SessionId
    idle: IdleLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    """All sessions of a user, with their files, and whatever is written down about them."""

    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateKey:
    """A new key."""

    by: Caller
    project: ProjectId = DEFAULT_PROJECT
    label: str = ""
    scopes: frozenset[Scope] = frozenset({Scope.SESSIONS})
    lifetime_s: int | None = None
    """None for one that does not expire"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKeys:
    """Keys of the caller's project; the owner of the data folder sees all."""

    by: Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeKey:
    """From now on it is no good. For tokens as well."""

    by: Caller
    key: KeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateKey:
    """A new key in place of an old one, which stays good for a while."""

    by: Caller
    key: KeyId
    overlap_s: int = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateToken:
    """A token for one session of the caller's project."""

    by: Caller
    session: SessionId
    lifetime_s: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateLocalSandbox:
    """What a box that the caller runs needs to reach one session, which has no sandbox here."""

    by: Caller
    session: SessionId
    lifetime_s: int = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSandbox:
    """That: a token that is good for this session only, and which files are its."""

    token: NewKey
    mount: MountId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPage:
    """All of them."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAudit:
    """Who did what in the caller's project, newest first."""

    by: Caller
    before: str = ""
    """only what came before this time; empty for the newest"""
    session: SessionId | None = None
    """only what was done to, or by, this one"""
    limit: int = 100
