"""A sandbox and a kernel that do what the test says, in the events of the contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from workbench.contracts.engine import OutputChunk, OverQuota, RunningProcess, SandboxDescription, Usage
from workbench.contracts.kernel import (
    AttachPoint,
    Began,
    Carried,
    Finished,
    KernelEvent,
    KernelGone,
    KernelStart,
    Names,
    SnapshotAnswer,
    Turn,
    Visit,
)
from workbench.errors import KernelUnavailable, SandboxUnavailable
from workbench.host.cells.cell_run import Ladder
from workbench.host.cells.commands import Grace
from workbench.host.cells.memory import Patience
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.sandbox_cells import CellOptions, SandboxCells
from workbench.model.execution import Cell, CellError, Display, Piece, PieceKind, Variable
from workbench.model.ids import KernelId, ProcessId, SandboxId
from workbench.model.process import ProcessExit, ProcessSpec, Stream
from workbench.model.runtime import Runtime
from workbench.model.tier import Tier

BOUND_S = 20.0
QUICK = Patience(start_s=5.0, pause_s=0.01, settled_s=5.0, ladder=Ladder(pause_s=0.05, begin_s=5.0, close_s=5.0))
QUICK_GRACE = Grace(term_s=0.2, kill_s=5.0, drain_s=0.05, drain_most_s=0.5, look_s=0.01)
KEYBOARD_INTERRUPT = CellError(name="KeyboardInterrupt", message="", traceback="\x1b[31mKeyboardInterrupt\x1b[0m: ")


async def eventually(condition: Callable[[], object]) -> None:
    """Wait for it, within bounds."""
    async with asyncio.timeout(BOUND_S):
        while not condition():
            await asyncio.sleep(0.001)


def stdout(text: str) -> Piece:
    return Piece(kind=PieceKind.STDOUT, text=text)


def stderr(text: str) -> Piece:
    return Piece(kind=PieceKind.STDERR, text=text)


def shown(display_id: str = "", is_result: bool = False, kind: PieceKind = PieceKind.DISPLAY, **data: str) -> Piece:
    formats = {name.replace("_", "/"): value for name, value in data.items()}
    return Piece(kind=kind, display=Display(data=formats, display_id=display_id, is_result=is_result))


class ScriptedKernel:
    """Runs cells of one word, or those that `scripts` has pieces for."""

    def __init__(self, start: KernelStart, launcher: ScriptedLauncher) -> None:
        self.start = start
        self.ran: list[str] = []
        self.interrupts = 0
        self.threads = 0
        self.closed = False
        self._launcher = launcher
        self._count = launcher.dormant.pop(start.snapshot or "", 0)
        self._interrupted = asyncio.Event()
        self._end: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()

    async def execute(self, cell: Cell) -> AsyncIterator[KernelEvent]:
        self._interrupted.clear()
        word, _, rest = cell.code.partition(" ")
        if word == "vanish":
            self.die(ProcessExit(code=1))
            raise KernelGone(await self._end)
        self._launcher.ran.append(cell.code)
        self._count += cell.store_history
        yield Began(execution_count=self._count)
        for piece in self._launcher.scripts.get(cell.code, ()):
            yield piece
        ok = True
        match word:
            case "print":
                yield stdout(rest)
            case "raise":
                yield Piece(
                    kind=PieceKind.ERROR, error=CellError(name="ValueError", message=rest, traceback="\x1b[1mx")
                )
                ok = False
            case "wait":
                await self._wait_for(self._launcher.gate)
            case "hang" | "late":
                await self._wait_for(self._interrupted)
                ok = word == "late"
                if not ok:
                    yield Piece(kind=PieceKind.ERROR, error=KEYBOARD_INTERRUPT)
            case "stubborn":
                await self._wait_for(asyncio.Event())
            case "die":
                self.die(ProcessExit(code=None, signal=int(rest)))
                await self._wait_for(asyncio.Event())
        yield Finished(ok=ok, execution_count=self._count, names=Names(added=(word,)), working_folder="/home/user")

    async def _wait_for(self, event: asyncio.Event) -> None:
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait((waiting, self._end), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._end.done():
            raise KernelGone(self._end.result())

    def die(self, end: ProcessExit) -> None:
        if not self._end.done():
            self._end.set_result(end)

    async def variables(self, most: int) -> tuple[Variable, ...]:
        return (Variable(name="x", type="int", size="", preview="1"),)[:most]

    async def snapshot(self, name: str, most_bytes: int) -> SnapshotAnswer:
        self._launcher.asked_to_copy.append(most_bytes)
        if self._end.done():
            raise KernelGone(self._end.result())
        answer = self._launcher.snapshot_answer
        if not answer.declined:
            self._launcher.dormant[name] = self._count
        return answer

    async def unpack(self, path: str, working_folder: str) -> Carried:
        raise NotImplementedError

    async def use_threads(self, count: int) -> None:
        self.threads = count

    async def interrupt(self) -> None:
        self.interrupts += 1
        self._interrupted.set()

    async def attach(self, turn: Turn, visit: Visit | None = None) -> AttachPoint:
        self._launcher.turn, self._launcher.visit = turn, visit
        return AttachPoint(connection_file="/nowhere/kernel.json", info={"key": "k"})

    async def wait(self) -> ProcessExit:
        return await asyncio.shield(self._end)

    def left_over(self) -> tuple[Piece, ...]:
        return ()

    async def aclose(self) -> None:
        self.closed = True
        self.die(ProcessExit(code=None, signal=9))


class ScriptedLauncher:
    """Gives kernels, and remembers them."""

    def __init__(self) -> None:
        self.kernels: list[ScriptedKernel] = []
        self.ran: list[str] = []
        self.scripts: dict[str, Sequence[Piece]] = {}
        self.gate = asyncio.Event()
        self.refuses = ""
        self.dormant: dict[str, int] = {}
        """snapshots, with the count of the last cell that each remembers"""
        self.snapshot_answer = SnapshotAnswer(cost_s=0.01)
        self.cannot_wake = False
        self.asked_to_copy: list[int] = []
        """with how much room"""
        self.dies_at_once = False
        self.turn: Turn | None = None
        self.visit: Visit | None = None

    async def start(self, sandbox: object, start: KernelStart) -> ScriptedKernel:
        if isinstance(sandbox, StandInSandbox) and sandbox.gone:
            raise SandboxUnavailable(f"the sandbox is gone: {sandbox.gone}")
        if self.refuses:
            raise KernelUnavailable(self.refuses)
        if start.snapshot is not None and (self.cannot_wake or start.snapshot not in self.dormant):
            raise KernelUnavailable("the snapshot cannot be used")
        kernel = ScriptedKernel(start, self)
        self.kernels.append(kernel)
        if self.dies_at_once:
            kernel.die(ProcessExit(code=3))
        return kernel

    async def pack(self, sandbox: object, snapshot: str, path: str) -> Carried:
        raise NotImplementedError

    def ahead(self, runtime: Runtime) -> None:
        return None

    def forget(self, sandbox: SandboxId, kernel: KernelId | None = None) -> None:
        pass

    async def aclose(self) -> None:
        pass

    @property
    def last(self) -> ScriptedKernel:
        return self.kernels[-1]


class StandInProcess:
    """Says what it is told, and ends when it is told."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self.signals: list[int] = []
        self.dies_of: set[int] = {2, 9, 15}
        self._end: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()
        self._chunks: asyncio.Queue[OutputChunk | None] = asyncio.Queue()

    def say(self, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        self._chunks.put_nowait(OutputChunk(stream=stream, data=data))

    def close(self) -> None:
        self._chunks.put_nowait(None)

    def end(self, code: int | None = 0, number: int | None = None, reason: str = "") -> None:
        if not self._end.done():
            self._end.set_result(ProcessExit(code=code, signal=number, lost=bool(reason), reason=reason))

    async def output(self) -> AsyncIterator[OutputChunk]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    async def wait(self) -> ProcessExit:
        return await asyncio.shield(self._end)

    async def write_stdin(self, data: bytes) -> None:
        raise NotImplementedError

    async def close_stdin(self) -> None:
        raise NotImplementedError

    async def signal(self, number: int) -> None:
        self.signals.append(number)
        if number in self.dies_of:
            self.end(None, number)


class StandInSandbox:
    """Has processes that only the test moves."""

    def __init__(self, launcher: ScriptedLauncher | None = None) -> None:
        self._launcher = launcher or ScriptedLauncher()
        self.memory_bytes = 1
        self.snapshot_holds = 0
        self.offers = True
        self.offer_gate: asyncio.Event | None = None
        self.swept: list[float] = []
        self.first_to_go: list[str] = []
        self.cpu_s = 0.0
        self.frozen = False
        self.over: OverQuota | None = None
        self.over_told: asyncio.Queue[OverQuota] = asyncio.Queue()
        self.gone = ""
        self.started: list[StandInProcess] = []
        self.listed: tuple[RunningProcess, ...] = ()
        self.description = SandboxDescription(
            id=SandboxId("sb"),
            engine="none",
            tier="standard",
            isolated=False,
            limits_by="nothing",
            snapshots=launcher is not None,
        )

    @property
    def calls(self) -> int:
        raise NotImplementedError

    def started_as(self, pid: int) -> ProcessId | None:
        raise NotImplementedError

    async def start(self, spec: ProcessSpec, passed: Sequence[int] = ()) -> StandInProcess:
        if self.gone:
            raise SandboxUnavailable(self.gone)
        self.started.append(StandInProcess(spec))
        return self.started[-1]

    async def usage(self) -> Usage:
        if self.gone:
            raise SandboxUnavailable(self.gone)
        self.cpu_s += 0.25
        return Usage(memory_bytes=self.memory_bytes, peak_memory_bytes=7, cpu_s=self.cpu_s, processes=1)

    async def over_quota(self) -> OverQuota | None:
        if self.gone:
            raise SandboxUnavailable(self.gone, {"gone": self.gone})
        return self.over

    async def wait_over_quota(self) -> OverQuota:
        return await self.over_told.get()

    async def processes(self) -> tuple[RunningProcess, ...]:
        return self.listed

    def take_head_start(self) -> None:
        return None

    @property
    def snapshots(self) -> frozenset[str]:
        return frozenset(self._launcher.dormant)

    def expect(self, snapshot: str) -> None:
        pass

    async def snapshot_offered(self, snapshot: str, within_s: float) -> bool:
        if self.offer_gate is not None:
            await self.offer_gate.wait()
        return self.offers and snapshot in self._launcher.dormant

    async def resident_bytes(self) -> int:
        return self.memory_bytes - self.snapshot_holds

    async def let_go_first(self, snapshot: str) -> None:
        self.first_to_go.append(snapshot)

    async def discard(self, snapshot: str) -> None:
        self._launcher.dormant.pop(snapshot, None)

    async def sweep(self, newer_than_s: float) -> int:
        self.swept.append(newer_than_s)
        return 0

    async def freeze(self) -> bool:
        self.frozen = True
        return True

    async def thaw(self) -> None:
        self.frozen = False

    async def change_tier(self, tier: Tier) -> None:
        raise NotImplementedError

    async def wait_gone(self) -> str:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError

    def check_living(self) -> None:
        if self.gone:
            raise SandboxUnavailable(f"sandbox sb is gone: {self.gone}")


class Bench:
    """The cells of one stand-in sandbox, with folders of the test's."""

    def __init__(
        self, folder: Path, *, spool_max_bytes: int = 2**28, mount_bytes: int = 2**30, snapshots: bool = False
    ) -> None:
        self.launcher = ScriptedLauncher()
        self.sandbox = StandInSandbox(self.launcher if snapshots else None)
        self.files = folder / "files"
        self.spool = folder / "spool"
        self.files.mkdir()
        self.spool.mkdir()
        options = CellOptions(self.launcher, self.spool, spool_max_bytes, 3600.0, QUICK, QUICK_GRACE)
        self.cells = SandboxCells(
            self.sandbox,
            Mount(self.files, mount_bytes, 1000),
            options,
            files_kept=True,
            check_living=self.sandbox.check_living,
        )
