"""A session: what a caller comes back to. It outlives its kernels, its sandboxes and the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.model.execution import QueuedCell
from workbench.model.ids import KernelId, MountId, SandboxId, SessionId
from workbench.model.tier import STANDARD, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """What a session is made with."""

    id: SessionId
    user: str = "local"
    tier: Tier = STANDARD
    env: dict[str, str] = field(default_factory=dict)
    """variables of everything that runs in it"""
    start_up: str = ""
    """code that is run in every new kernel memory before the first cell"""
    working_folder: str = "/home/user"
    """where cells start; made if it is missing"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The record of one. Its files are the mount of the same name; everything else belongs to the sandbox."""

    spec: SessionSpec
    created_at: str
    """ISO 8601, UTC"""
    used_at: str
    sandbox: SandboxId
    """the one it has now, or whose name is chosen for the next call that needs one"""
    begun: bool = False
    """the sandbox was made and a kernel started in it: there is something to lose"""
    epoch: int = 1
    """the last that a caller was told, or that was promised to a kernel; never given twice"""
    last_loss: str = ""
    """why the memory before this epoch is gone, until a receipt has told it"""
    ending: bool = False
    """it is being deleted, and nothing begins in it any more"""

    @property
    def mount(self) -> MountId:
        """Its files."""
        return MountId(self.spec.id)

    @property
    def kernel(self) -> KernelId:
        """Its Python kernel, within its sandbox."""
        return KernelId("main")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDescription:
    """A session as it is now."""

    session: Session
    state: str
    """`cold` (no sandbox), `idle`, `busy`, or `lost` (its sandbox ended; the next call makes a new one)"""
    detail: str = ""
    """why, for `lost`"""
    execution_count: int = 0
    queue: tuple[QueuedCell, ...] = ()
    memory_bytes: int = 0
    start_up_error: str = ""
    """what the start-up code raised in the present memory"""
    warning: str = ""
    """what is weak about its isolation"""
