"""A session: what a caller comes back to. It outlives its kernels, its sandboxes and the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.model.configuration import SessionConfig
from workbench.model.execution import QueuedCell, SnapshotState
from workbench.model.ids import DEFAULT_PROJECT, KernelId, MountId, ProjectId, SandboxId, SessionId
from workbench.model.records import Progress
from workbench.model.runtime import PYTHON
from workbench.model.tier import STANDARD, Tier

MAIN_KERNEL = KernelId("main")
WITHOUT_TOOLS = {"WORKBENCH_TOOL_EXECUTION": "false"}
"""the variable by which code inside knows that helpers for tools, the model and the search are off"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLimits:
    """After how many seconds without a call, a running cell or a running command something is done; 0 is never, and
    None is what the server has set.
    """

    freeze_after_s: int | None = None
    """it stands still, and goes on with the next call"""
    end_after_s: int | None = None
    """its sandbox is ended, with its memory; files in /mnt/files are kept"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """What a session is made with."""

    id: SessionId
    project: ProjectId = DEFAULT_PROJECT
    """whose keys may touch it; to those of others it does not exist"""
    user: str = "local"
    runtime: str = PYTHON
    """the language of its kernel, by the name of its runtime; it stays"""
    tier: Tier = STANDARD
    env: dict[str, str] = field(default_factory=dict)
    """variables of everything that runs in it"""
    start_up: str = ""
    """code that is run in every new kernel memory before the first cell"""
    working_folder: str = "/home/user"
    """where cells start; made if it is missing"""
    snapshots: bool = True
    """keep its memory between cells, so that it can be undone, branched, and restored after a loss"""
    idle: IdleLimits = field(default_factory=IdleLimits)
    config: SessionConfig = field(default_factory=SessionConfig)
    """what it may reach, and how"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The record of one.

    A session, its branches and the contexts of each are a family: they share one mount and one sandbox, with a kernel
    for each. Mount, tier and sandbox are the same in all their records, and go with the last of them.
    """

    spec: SessionSpec
    created_at: str
    """ISO 8601, UTC"""
    used_at: str
    mount: MountId
    """the files of its family"""
    principal: SessionId
    """the root of its family, be it deleted or not: on whose behalf everything in it acts"""
    parent: SessionId | None = None
    """what it was branched or copied from, be it deleted or not"""
    context_of: SessionId | None = None
    """the session that it is a further kernel of, and goes with"""
    kernel: KernelId = MAIN_KERNEL
    """its own, within the sandbox"""
    sandbox: SandboxId
    """the one it has now, or whose name is chosen for the next call that needs one"""
    begun: bool = False
    """the sandbox was made and a kernel started in it: there is something to lose"""
    epoch: int = 1
    """the last that a caller was told, or that was promised to a kernel; never given twice"""
    config_version: int = 1
    """of the spec's `config`: one more with each change of it"""
    configured_at: str = ""
    """since when it is that one; empty if since it was made"""
    last_loss: str = ""
    """why the memory before this epoch is gone, until a receipt has told it"""
    unfinished: bool = False
    """a branch or copy whose memory is not there yet, and never will be if its maker was ended; nothing begins in it"""
    ending: bool = False
    """it is being deleted, and nothing begins in it any more"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDescription:
    """A session as it is now."""

    session: Session
    state: str
    """`cold` (no sandbox), `idle`, `busy`, `frozen` (thawed by the next call), `lost` (its sandbox ended; the next call
    makes a new one), `unreachable`, `unfinished` (a branch in the making) or `ending`"""
    detail: str = ""
    """why, for `lost` and `unreachable`"""
    execution_count: int = 0
    queue: tuple[QueuedCell, ...] = ()
    memory_bytes: int = 0
    start_up_error: str = ""
    """what the start-up code raised in the present memory"""
    warning: str = ""
    """what is weak about its isolation"""
    snapshots: SnapshotState = field(default_factory=SnapshotState)
    """what is kept of its memory"""
    shared_with: tuple[SessionId, ...] = ()
    """others of its family, by name"""
    progress: Progress = field(default_factory=Progress)
    """what its latest cells said about where they are"""
