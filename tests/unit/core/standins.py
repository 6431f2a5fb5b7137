"""A host, a clock and mounts in memory: as small as they can be, and as strict as the real ones where the core relies
on it. They can be told to die, to lose an answer, or to hold one back.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from workbench.contracts.clock import Clock
from workbench.contracts.engine import Usage
from workbench.contracts.fetching import Fetched
from workbench.contracts.host import (
    CellAddress,
    CellOrder,
    CommandOrder,
    Copied,
    KernelAddress,
    KernelOrder,
    KernelState,
    Moved,
    OutputPage,
    SandboxOrder,
    SandboxState,
    dropped,
    lost_answer,
    sandbox_gone,
)
from workbench.contracts.kernel import AttachPoint
from workbench.core.caretaker import CarePolicy, Caretaker
from workbench.core.installs import Installs
from workbench.core.languages import Languages
from workbench.core.links import LinkSigner
from workbench.core.workbench import Workbench
from workbench.errors import Conflict, HostUnavailable, NotFound
from workbench.model.execution import (
    BackgroundProcess,
    Cell,
    CellResult,
    CommandResult,
    MemoryState,
    Outcome,
    Piece,
    PieceKind,
    QueuedCell,
    Receipt,
    SnapshotState,
    Text,
    Variable,
)
from workbench.model.ids import DEFAULT_PROJECT, CellId, KernelId, MountId, ProjectId, SandboxId
from workbench.model.packages import PackagePolicy
from workbench.model.session import MAIN_KERNEL
from workbench.model.tier import Tier
from workbench.runtimes.loading import load_runtimes
from workbench.storage.memory import MemoryRecords, MemorySessionStore
from workbench.storage.memory_cells import MemoryCellStore

RUNTIMES = load_runtimes()
HOST_ENDED = "the workbench host that it lived in has ended"


def no_installs(clock: Clock) -> Installs:
    """For a workbench that has no installer."""
    return Installs(policy=PackagePolicy.OFF, lists={}, installers={}, clock=clock)


@dataclass
class FakeKernel:
    order: KernelOrder | None
    """None for one that was branched"""
    epoch: int
    lost_before: str
    snapshots: bool = True
    count: int = 0
    names: dict[str, str] = field(default_factory=dict)
    kept: list[dict[str, str]] = field(default_factory=list)


@dataclass
class FakeSandbox:
    order: SandboxOrder
    tier: Tier
    gone: str = ""
    kernels: dict[KernelId, FakeKernel] = field(default_factory=dict)
    cells: dict[CellId, CellResult] = field(default_factory=dict)
    running: dict[CellId, str] = field(default_factory=dict)
    waiting: list[CellId] = field(default_factory=list)
    of: dict[CellId, KernelId] = field(default_factory=dict)
    """which kernel a cell is for; main, if nobody said"""
    commands: dict[CellId, CommandResult | None] = field(default_factory=dict)
    """None while it runs"""
    dropped: set[CellId] = field(default_factory=set)
    """that ended, and are not known any more"""
    refused: set[CellId] = field(default_factory=set)
    """that never came, and may not come any more"""
    frozen: bool = False

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting or None in self.commands.values())

    @property
    def kernel(self) -> FakeKernel | None:
        return self.kernels.get(MAIN_KERNEL)


class FakeHost:
    """Code is `hang`, `die` (takes the sandbox along), `crash` (the kernel only), `say WORDS`, or NAME=VALUE."""

    def __init__(self) -> None:
        self.sandboxes: dict[SandboxId, FakeSandbox] = {}
        self.made: list[SandboxOrder] = []
        self.started: list[KernelOrder] = []
        self.ran: list[tuple[SandboxId, str]] = []
        self.cells: list[Cell] = []
        self.asked: list[str] = []
        self.interrupted: list[KernelAddress] = []
        self.lose_answers_of: list[str] = []
        self.fail: dict[str, BaseException] = {}
        self.before: Callable[[str], None] | None = None
        self.meanwhile: dict[str, Callable[[], Awaitable[object]]] = {}
        """what happens, once, before something is done"""
        self.afterwards: dict[str, Callable[[], Awaitable[object]]] = {}
        """what happens, once, when it was done and is not answered yet"""
        self.stuck = False
        self.attached = False
        """a notebook is at work, with every kernel"""
        self.attached_idle_s: float | None = None

    def die(self) -> None:
        """The process ends, with everything in it; another one is there for the next request."""
        self.sandboxes.clear()

    def end(self, sandbox: SandboxId, reason: str) -> None:
        self.sandboxes[sandbox].gone = reason

    async def _asked(self, what: str) -> None:
        self.asked.append(what)
        await asyncio.sleep(0)
        if self.before is not None:
            self.before(what)
        if what in self.meanwhile:
            await self.meanwhile.pop(what)()
        if self.stuck:
            raise lost_answer(HostUnavailable("no word for 150 s"))
        if what in self.fail:
            raise self.fail[what]

    async def _answered(self, what: str) -> None:
        if what in self.afterwards:
            await self.afterwards.pop(what)()
        if what in self.lose_answers_of:
            self.lose_answers_of.remove(what)
            raise lost_answer(HostUnavailable("the host went away before it answered"))

    def _known(self, sandbox: SandboxId) -> FakeSandbox:
        if sandbox not in self.sandboxes:
            raise sandbox_gone(sandbox, HOST_ENDED)
        return self.sandboxes[sandbox]

    def _living(self, sandbox: SandboxId, *, looks_only: bool = False) -> FakeSandbox:
        found = self._known(sandbox)
        if found.gone:
            raise sandbox_gone(sandbox, found.gone, began=False)
        found.frozen = found.frozen and looks_only
        return found

    def _kernel(self, at: KernelAddress, *, looks_only: bool = False) -> FakeKernel:
        kernel = self._living(at.sandbox, looks_only=looks_only).kernels.get(at.kernel)
        if kernel is None:
            raise NotFound("no such kernel")
        return kernel

    async def create_sandbox(self, order: SandboxOrder) -> SandboxState:
        await self._asked("create")
        found = self.sandboxes.get(order.sandbox)
        if found is not None:
            if found.gone or found.order != order:
                raise Conflict("there is one already", {"sandbox": order.sandbox})
            return SandboxState(tier=found.tier.name, warning="")
        if any(one.order.mount == order.mount for one in self.sandboxes.values()):
            raise Conflict("the mount is in use", {"mount": order.mount})
        self.made.append(order)
        self.sandboxes[order.sandbox] = FakeSandbox(order=order, tier=order.tier)
        return SandboxState(tier=order.tier.name, warning="")

    async def describe_sandbox(self, sandbox: SandboxId) -> SandboxState:
        await self._asked("describe")
        found = self._known(sandbox)
        return SandboxState(
            tier=found.tier.name,
            warning="",
            gone=found.gone,
            frozen=found.frozen,
            attached_idle_s=self.attached_idle_s,
        )

    async def close_sandbox(self, sandbox: SandboxId, *, if_frozen: bool = False) -> None:
        await self._asked("close")
        found = self.sandboxes.get(sandbox)
        if if_frozen and found is not None and not found.frozen and not found.gone:
            raise Conflict("somebody uses it", {"sandbox": sandbox})
        self.sandboxes.pop(sandbox, None)

    async def freeze_sandbox(self, sandbox: SandboxId) -> bool:
        await self._asked("freeze")
        found = self._living(sandbox, looks_only=True)
        found.frozen = not found.busy and not self.attached
        frozen = found.frozen
        await self._answered("freeze")
        return frozen

    async def thaw_sandbox(self, sandbox: SandboxId) -> None:
        await self._asked("thaw")
        self._living(sandbox)

    async def change_tier(self, sandbox: SandboxId, tier: Tier) -> None:
        await self._asked("tier")
        self._living(sandbox).tier = tier

    async def measure(self, sandbox: SandboxId) -> Usage:
        await self._asked("measure")
        self._living(sandbox, looks_only=True)
        return Usage(memory_bytes=5, peak_memory_bytes=9, cpu_s=0.5, processes=2)

    async def list_processes(self, sandbox: SandboxId) -> tuple[BackgroundProcess, ...]:
        await self._asked("processes")
        self._living(sandbox)
        return (BackgroundProcess(pid=7, command="sleep 9", for_s=1.0, memory_bytes=1),)

    async def start_kernel(self, order: KernelOrder) -> KernelState:
        await self._asked("start")
        sandbox, name = self._living(order.at.sandbox), order.at.kernel
        if name not in sandbox.kernels:
            self.started.append(order)
            sandbox.kernels[name] = FakeKernel(
                order=order, epoch=order.epoch, lost_before=order.lost_before, snapshots=order.snapshots
            )
        elif sandbox.kernels[name].order not in (order, replace(order, snapshots=not order.snapshots)):
            raise Conflict("another kernel of that name")
        state = self._kernel_state(order.at)
        await self._answered("start")
        return state

    def _kernel_state(self, at: KernelAddress) -> KernelState:
        sandbox, kernel = self.sandboxes[at.sandbox], self.sandboxes[at.sandbox].kernels[at.kernel]
        running = [(cell, True) for cell in sandbox.running] + [(cell, False) for cell in sandbox.waiting]
        queue = tuple(
            QueuedCell(cell=cell, origin="session", running=runs, for_s=0.0, first_line="")
            for cell, runs in running
            if sandbox.of.get(cell, MAIN_KERNEL) == at.kernel
        )
        snapshots = SnapshotState(kept=len(kernel.kept), current=bool(kernel.kept))
        return KernelState(epoch=kernel.epoch, execution_count=kernel.count, queue=queue, snapshots=snapshots)

    async def describe_kernel(self, at: KernelAddress) -> KernelState:
        await self._asked("describe kernel")
        self._kernel(at, looks_only=True)
        return self._kernel_state(at)

    async def restart_kernel(self, at: KernelAddress) -> KernelState:
        await self._asked("restart")
        kernel = self._kernel(at)
        self._crash(kernel, "the kernel was restarted by request")
        return self._kernel_state(at)

    async def end_kernel(self, at: KernelAddress) -> None:
        await self._asked("end kernel")
        sandbox = self.sandboxes.get(at.sandbox)
        if sandbox is None or sandbox.kernels.pop(at.kernel, None) is None:
            return
        for cell in [one for one in sandbox.running if sandbox.of.get(one, MAIN_KERNEL) == at.kernel]:
            self._finish(sandbox, cell, Outcome.LOST, Receipt(epoch=1, state=MemoryState.LOST, reason="it was ended"))

    async def set_snapshots(self, at: KernelAddress, *, on: bool) -> None:
        await self._asked("snapshots")
        kernel = self._kernel(at)
        kernel.snapshots = on
        if not on:
            kernel.kept.clear()

    async def undo(self, at: KernelAddress, cells: int) -> Moved:
        await self._asked("undo")
        kernel = self._kernel(at)
        if self._kernel_state(at).queue:
            raise Conflict("a cell runs")
        if cells > len(kernel.kept):
            raise Conflict(f"{len(kernel.kept)} are kept")
        kernel.names = kernel.kept[-cells]
        del kernel.kept[-cells:]
        kernel.epoch += 1
        return Moved(kernel=self._kernel_state(at), not_carried="a thread")

    async def branch(self, at: KernelAddress, branch: KernelId, epoch: int) -> Moved:
        await self._asked("branch")
        origin, sandbox = self._kernel(at), self._living(at.sandbox)
        if branch not in sandbox.kernels:
            sandbox.kernels[branch] = FakeKernel(
                order=None, epoch=epoch, lost_before="", snapshots=origin.snapshots, names=dict(origin.names)
            )
        moved = Moved(
            kernel=self._kernel_state(KernelAddress(sandbox=at.sandbox, kernel=branch)), not_carried="a thread"
        )
        await self._answered("branch")
        return moved

    async def copy_into(self, at: KernelAddress, target: KernelAddress) -> Copied:
        await self._asked("copy")
        origin = self._kernel(at)
        if target.sandbox not in self.sandboxes:
            raise NotFound("no such sandbox", {"sandbox": target.sandbox})
        carried = {name: value for name, value in origin.names.items() if value != "open"}
        self._kernel(target).names |= carried
        left = {name: "an open file" for name in origin.names if name not in carried}
        return Copied(carried=tuple(sorted(carried)), not_carried=left, files_note="one was left out")

    async def interrupt_kernel(self, at: KernelAddress, cell: CellId | None = None) -> None:
        await self._asked("interrupt")
        self._kernel(at)
        if cell is None or cell in self.sandboxes[at.sandbox].running:
            self.interrupted.append(at)

    async def list_variables(self, at: KernelAddress, most: int) -> tuple[Variable, ...]:
        await self._asked("variables")
        names = self._kernel(at).names
        return tuple(Variable(name=one, type="str", size="", preview=names[one]) for one in sorted(names)[:most])

    async def attach(self, at: KernelAddress) -> AttachPoint:
        await self._asked("attach")
        self._kernel(at)
        return AttachPoint(connection_file=f"/run/{at.sandbox}.json", info={})

    def _crash(self, kernel: FakeKernel, reason: str) -> None:
        kernel.epoch += 1
        kernel.names.clear()
        kernel.kept.clear()
        kernel.count = 0
        kernel.lost_before = reason

    async def run_cell(self, order: CellOrder) -> CellResult | None:
        await self._asked("run")
        known = self.sandboxes.get(order.at.sandbox)
        if known is None or order.cell.id not in known.cells.keys() | known.running.keys():
            kernel = self._kernel(order.at)
            if known is not None and order.cell.id in known.refused | known.dropped:
                raise Conflict("choose another id", {"cell": order.cell.id})
            self._begin(self._living(order.at.sandbox), kernel, order)
        await self._answered("run")
        self.asked.append("accepted")
        while order.wait_s and order.cell.id not in self.sandboxes[order.at.sandbox].cells:
            await asyncio.sleep(0)
            if self.stuck or order.at.sandbox not in self.sandboxes:
                raise lost_answer(HostUnavailable("the host went away before it answered"))
        return self.sandboxes[order.at.sandbox].cells.get(order.cell.id)

    def _begin(self, sandbox: FakeSandbox, kernel: FakeKernel, order: CellOrder) -> None:
        cell, code = order.cell.id, order.cell.code
        self.ran.append((order.at.sandbox, code))
        self.cells.append(order.cell)
        sandbox.running[cell] = code
        sandbox.of[cell] = order.at.kernel
        kernel.count += 1
        if kernel.snapshots:
            kernel.kept.append(dict(kernel.names))
        if code == "die":
            sandbox.gone = "the sandbox ended by itself"
            self._finish(sandbox, cell, Outcome.LOST, Receipt(epoch=kernel.epoch + 1, state=MemoryState.LOST))
        elif code == "crash":
            self._crash(kernel, "")
            receipt = Receipt(epoch=kernel.epoch, state=MemoryState.LOST, reason="segmentation fault")
            self._finish(sandbox, cell, Outcome.LOST, receipt)
        elif code != "hang":
            name, equals, value = code.partition("=")
            if equals:
                kernel.names[name] = value
            state = MemoryState.LOST if kernel.lost_before else MemoryState.INTACT
            receipt = Receipt(epoch=kernel.epoch, execution_count=kernel.count, state=state, reason=kernel.lost_before)
            kernel.lost_before = ""
            self._finish(sandbox, cell, Outcome.OK, receipt, code.removeprefix("say "))

    def _finish(self, sandbox: FakeSandbox, cell: CellId, outcome: Outcome, receipt: Receipt, said: str = "") -> None:
        sandbox.running.pop(cell, None)
        stdout = Text(text=said, characters=len(said), lines=1)
        sandbox.cells[cell] = CellResult(cell=cell, outcome=outcome, stdout=stdout, receipt=receipt)

    def finish(self, sandbox: SandboxId, cell: CellId) -> None:
        """A cell that hangs comes to its end."""
        found = self.sandboxes[sandbox]
        assert found.kernel is not None
        self._finish(found, cell, Outcome.OK, Receipt(epoch=found.kernel.epoch), "in the end")

    async def run_command(self, order: CommandOrder) -> CommandResult | None:
        await self._asked("command")
        sandbox = self._living(order.at.sandbox)
        if order.command.id not in sandbox.commands:
            self.ran.append((order.at.sandbox, order.command.command))
            receipt = Receipt(epoch=sandbox.kernel.epoch if sandbox.kernel else order.epoch)
            done = CommandResult(command=order.command.id, outcome=Outcome.OK, exit_code=0, receipt=receipt)
            sandbox.commands[order.command.id] = None if order.command.command == "hang" else done
        self.asked.append("accepted")
        while order.wait_s and sandbox.commands[order.command.id] is None:
            await asyncio.sleep(0)
        return sandbox.commands[order.command.id]

    async def wait_cell(self, at: CellAddress, wait_s: float) -> CellResult | None:
        await self._asked("wait")
        while True:
            sandbox = self._known(at.sandbox)
            if at.cell in sandbox.cells:
                return sandbox.cells[at.cell]
            if at.cell in sandbox.dropped:
                raise NotFound("it ended and was dropped", dropped(at.cell))
            if at.cell not in sandbox.running:
                raise NotFound("no such cell", {"cell": at.cell})
            if not wait_s:
                return None
            await asyncio.sleep(0)

    async def wait_command(self, at: CellAddress, wait_s: float) -> CommandResult | None:
        await self._asked("wait command")
        sandbox = self._known(at.sandbox)
        if at.cell not in sandbox.commands:
            raise NotFound("no such command", {"cell": at.cell})
        while wait_s and sandbox.commands[at.cell] is None:
            await asyncio.sleep(0)
        return sandbox.commands[at.cell]

    async def read_output(self, at: CellAddress, offset: int, wait_s: float) -> OutputPage:
        await self._asked("read")
        result = await self.wait_cell(at, wait_s)
        said = result.stdout.text[offset : offset + 4] if result else ""
        end = offset + len(said)
        pieces = (Piece(kind=PieceKind.STDOUT, text=said),) if said else ()
        ended = result is not None and end == len(result.stdout.text)
        return OutputPage(pieces=pieces, next_offset=end, ended=ended, dropped_bytes=3)

    async def cancel_cell(self, at: CellAddress) -> None:
        await self._asked("cancel")
        sandbox = self._known(at.sandbox)
        if at.cell in sandbox.waiting:
            sandbox.waiting.remove(at.cell)
        elif at.cell in sandbox.cells or at.cell in sandbox.running:
            raise Conflict("it runs or has ended")
        else:
            raise NotFound("no such cell")

    async def interrupt_command(self, at: CellAddress) -> None:
        await self._asked("interrupt command")
        self._living(at.sandbox)

    async def forget_cell(self, at: CellAddress) -> None:
        await self._asked("forget")
        sandbox = self._known(at.sandbox)
        if at.cell in sandbox.running:
            raise Conflict("it has not ended")
        was_there = sandbox.cells.pop(at.cell, None) is not None
        (sandbox.dropped if was_there else sandbox.refused).add(at.cell)


class FakeMounts:
    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.removed: list[MountId] = []
        self.saved: list[MountId] = []
        """that were to be saved, in turn"""

    async def prepare(self, mount: MountId) -> None:
        """There is nothing to bring."""

    async def remove(self, mount: MountId) -> None:
        if any(one.order.mount == mount for one in self._host.sandboxes.values()):
            raise Conflict("in use", {"mount": mount})
        self.removed.append(mount)

    def save_soon(self, mount: MountId) -> None:
        self.saved.append(mount)

    def retry_saves(self) -> tuple[str, ...]:
        return ()

    async def drop_staged(self, older_than_s: float) -> int:
        return 0


class NoFetching:
    """Nothing here is fetched."""

    def fetch(self, url: str, *, most_bytes: int) -> AbstractAsyncContextManager[Fetched]:
        raise NotImplementedError(url, most_bytes)

    async def aclose(self) -> None:
        """There is nothing to close."""


class FakeClock:
    """Goes on by a second a look, and by its pauses, which take no time and can do something instead."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.paused_s = 0.0
        self.meanwhile: Callable[[], None] | None = None

    def now_iso(self) -> str:
        self.seconds += 1
        return self.after(0)

    def after(self, seconds: float) -> str:
        moment = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=self.seconds + seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic(self) -> float:
        return self.seconds

    async def pause(self, seconds: float) -> None:
        self.seconds += seconds
        self.paused_s += seconds
        if self.meanwhile is not None:
            self.meanwhile()
        await asyncio.sleep(0)


class WorldRecords(MemoryRecords):
    """The same parts for all who ask, so that a test can put something in their way."""

    def __init__(self) -> None:
        super().__init__()
        self._of_default = super().sessions(DEFAULT_PROJECT)
        self._cells_of_default = super().cells(DEFAULT_PROJECT)

    def sessions(self, project: ProjectId) -> MemorySessionStore:
        return self._of_default if project == DEFAULT_PROJECT else super().sessions(project)

    def cells(self, project: ProjectId) -> MemoryCellStore:
        return self._cells_of_default if project == DEFAULT_PROJECT else super().cells(project)


@dataclass
class World:
    """Everything below some workbenches, which share it as processes share a machine."""

    host: FakeHost = field(default_factory=FakeHost)
    records: WorldRecords = field(default_factory=WorldRecords)
    clock: FakeClock = field(default_factory=FakeClock)
    free_percent: float = 100.0

    def __post_init__(self) -> None:
        self.mounts = FakeMounts(self.host)
        self.store = self.records.sessions(DEFAULT_PROJECT)
        self.cells = self.records.cells(DEFAULT_PROJECT)

    def bench(self, project: ProjectId = DEFAULT_PROJECT) -> Workbench:
        return Workbench(
            host=self.host,
            records=self.records,
            mounts=self.mounts,  # type: ignore[arg-type]  # of the folders only; files have tests of their own
            fetching=NoFetching(),
            signer=LinkSigner(lambda: b"a secret"),
            clock=self.clock,
            installs=no_installs(self.clock),
            project=project,
            runtimes=RUNTIMES,
        )

    def caretaker(self, policy: CarePolicy | None = None) -> Caretaker:
        return Caretaker(
            host=self.host,
            records=self.records,
            mounts=self.mounts,
            clock=self.clock,
            policy=policy or CarePolicy(),
            free_memory_percent=lambda: self.free_percent,
            languages=Languages(RUNTIMES),
        )
