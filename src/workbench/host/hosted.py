"""What a host keeps of one sandbox: its files, its processes, its cells."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from workbench.contracts.engine import Ahead, Process, Sandbox, SandboxSpec
from workbench.errors import SandboxUnavailable
from workbench.guest_trees import remove_tree
from workbench.host.calls.door import CallDoor
from workbench.host.cells.sandbox_cells import SandboxCells
from workbench.host.freezing import Freezer
from workbench.host.spool import Spool
from workbench.model.ids import ProcessId, sandbox_id
from workbench.model.process import ProcessExit, ProcessSpec
from workbench.model.runtime import PYTHON
from workbench.model.tier import Tier
from workbench.wire import host as wire


@dataclass(slots=True)
class Running:
    """A process and its output; kept after its end, until it is forgotten."""

    process: Process
    spool: Spool
    filling: asyncio.Task[None]
    ending: asyncio.Task[ProcessExit]

    async def drop(self) -> None:
        """Forget its output."""
        self.filling.cancel()
        self.ending.cancel()
        await asyncio.wait([self.filling, self.ending])
        self.spool.close()


@dataclass(slots=True)
class Files:
    """A folder for /mnt/files: a mount, whose lock is held, or one that goes with the sandbox."""

    path: Path
    lock: int | None

    async def release(self) -> None:
        """Once, when nobody uses them any more."""
        if self.lock is None:
            # As large and as deep as a guest liked to make it.
            await asyncio.to_thread(remove_tree, self.path)
        else:
            os.close(self.lock)


@dataclass(slots=True, kw_only=True)
class Hosted:
    """One sandbox that a client has not closed."""

    request: wire.CreateSandbox
    sandbox: Sandbox
    files: Files
    cells: SandboxCells
    door: CallDoor
    made: float
    processes: dict[ProcessId, Running] = field(default_factory=dict)
    follower: asyncio.Task[None] | None = None
    gone: str = ""
    freezer: Freezer = field(init=False)

    def __post_init__(self) -> None:
        self.freezer = Freezer(self.sandbox, self._is_busy)

    def _is_busy(self) -> bool:
        return self.cells.busy or any(not running.ending.done() for running in self.processes.values())

    def check_living(self) -> None:
        """Raises: SandboxUnavailable if it is gone, with the reason."""
        if self.gone:
            raise gone(self.request.sandbox, self.gone)


def spec_of(
    request: wire.CreateSandbox, tier: Tier, files: Path, packages: Path | None, ahead: Ahead | None
) -> SandboxSpec:
    """What the engine is asked for."""
    first_entry = ("kernel" if request.runtime == PYTHON else "program_kernel") if request.kernel else None
    return SandboxSpec(
        id=sandbox_id(request.sandbox),
        tier=tier,
        files=files,
        packages=packages,
        env=request.env,
        first_entry=first_entry,
        warm=request.warm,
        ahead=ahead,
    )


def check_env(env: dict[str, str]) -> None:
    """Raises: InvalidRequest as for a process's own variables."""
    ProcessSpec(id=ProcessId("env"), argv=("true",), env=env).checked()


def gone(sandbox: str, reason: str) -> SandboxUnavailable:
    """The error for one that ended."""
    return SandboxUnavailable(f"sandbox {sandbox} is gone: {reason}", {"sandbox": sandbox, "gone": reason})
