"""Command lines for bash, beside what the kernels do; several may run at once. What they leave behind lives on."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.contracts.engine import Process, RunningProcess, Sandbox
from workbench.errors import Cancelled, HostError, WorkbenchError
from workbench.host.calls.tally import CallTally
from workbench.host.cells.measuring import Meter
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.results import command_result
from workbench.host.cells.tracked import Shelf, State, Tracked
from workbench.host.cells.words import Place, how_it_ended, sandbox_ended
from workbench.model.execution import (
    BackgroundProcess,
    Command,
    CorrectionKind,
    MemoryState,
    Outcome,
    Piece,
    PieceKind,
    Receipt,
)
from workbench.model.ids import CellId, KernelId, ProcessId, new_process_id
from workbench.model.process import ProcessExit, ProcessSpec, Stream

_log = logging.getLogger(__name__)
# For results to be written down when the sandbox closes.
_CLOSE_S = 30.0
_KINDS = {Stream.STDOUT: PieceKind.STDOUT, Stream.STDERR: PieceKind.STDERR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """How long each step of an end takes at most; tests are in a hurry."""

    term_s: float = 2.0
    """after SIGTERM, to clean up"""
    kill_s: float = 5.0
    """after SIGKILL; what lives longer is stuck in the system"""
    drain_s: float = 0.2
    """without a word after the exit: what was printed before it is read, what a background process says is not"""
    drain_most_s: float = 2.0
    """for one that goes on talking"""
    look_s: float = 0.1
    """between two looks at a group that is ending"""


class _Listener:
    """Reads for as long as anyone may write: a closed pipe would kill what runs in the background."""

    def __init__(self, process: Process, keep: Callable[[Piece], None]) -> None:
        self._process = process
        self._keep = keep
        self._decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in Stream}
        self._is_over = False
        self._heard_at = time.monotonic()

    async def listen(self) -> None:
        async for chunk in self._process.output():
            self._heard_at = time.monotonic()
            if not self._is_over:
                self._tell(chunk.stream, self._decoders[chunk.stream].decode(chunk.data))

    def _tell(self, stream: Stream, text: str) -> None:
        if text:
            self._keep(Piece(kind=_KINDS[stream], text=text))

    async def drained(self, listening: asyncio.Task[None], grace: Grace) -> None:
        """Both pipes are closed, or nothing came for a moment."""
        since = time.monotonic()
        until = since + grace.drain_most_s
        while not listening.done():
            now = time.monotonic()
            left = min(max(self._heard_at, since) + grace.drain_s, until) - now
            if left <= 0:
                return
            await asyncio.wait([listening], timeout=left)

    def stop(self) -> None:
        """What comes from here on is not the command's."""
        for stream, decoder in self._decoders.items():
            self._tell(stream, decoder.decode(b"", final=True))
        self._is_over = True


@dataclass(slots=True)
class _UnderWay:
    process: Process
    identity: ProcessId
    was_interrupted: bool = False
    why_interrupted: str = ""


class Commands:
    """Of one sandbox."""

    def __init__(
        self,
        *,
        sandbox: Sandbox,
        shelf: Shelf,
        mount: Mount,
        meter: Meter,
        place: Place,
        tally: CallTally,
        grace: Grace | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._shelf = shelf
        self._mount = mount
        self._meter = meter
        self._place = place
        self._tally = tally
        self._grace = grace or Grace()
        self._under_way: dict[Tracked, _UnderWay] = {}
        self._kernels: dict[Tracked, KernelId] = {}
        """of the sessions that asked for them"""
        self._stopped_early: set[Tracked] = set()
        """interrupted before there was a process to interrupt"""
        self._running: set[asyncio.Task[None]] = set()
        self._listening: set[asyncio.Task[None]] = set()

    def running_as(self, process: ProcessId) -> tuple[CellId, KernelId] | None:
        """The command whose process it is, and the kernel of its session."""
        for tracked, under_way in self._under_way.items():
            if under_way.identity == process:
                return tracked.id, self._kernels[tracked]
        return None

    def submit(self, tracked: Tracked, kernel: KernelId, memory: Callable[[], Awaitable[Receipt]]) -> None:
        """Start it; the shelf has it from here on. `memory` tells how its session's kernel is when it has ended."""
        assert isinstance(tracked.asked, Command)
        self._kernels[tracked] = kernel
        self._shelf.add(tracked)
        _own(self._running, self._live(tracked, tracked.asked, memory), f"command {tracked.id}")

    async def _live(self, tracked: Tracked, command: Command, memory: Callable[[], Awaitable[Receipt]]) -> None:
        try:
            await self._run(tracked, command, memory)
        except WorkbenchError as problem:
            tracked.fail(problem)
        except asyncio.CancelledError:
            tracked.fail(Cancelled("the sandbox was closed"))
            raise
        except Exception:  # noqa: BLE001
            _log.exception("command %s failed", tracked.id)
            tracked.fail(HostError("the host failed; its log has the reason"))
        finally:
            self._under_way.pop(tracked, None)
            self._kernels.pop(tracked, None)
            self._stopped_early.discard(tracked)
            self._shelf.ended(tracked)

    async def _run(self, tracked: Tracked, command: Command, memory: Callable[[], Awaitable[Receipt]]) -> None:
        measured = await self._meter.start()
        identity = new_process_id()
        spec = ProcessSpec(id=identity, argv=("/bin/bash", "-c", command.command), cwd=command.cwd)
        process = await self._sandbox.start(spec)
        tracked.state = State.RUNNING
        under_way = self._under_way[tracked] = _UnderWay(process, identity)
        listener = _Listener(process, tracked.output.add)
        listening = _own(self._listening, listener.listen(), f"output of command {tracked.id}")
        if tracked in self._stopped_early:
            await self.interrupt(tracked)
        end, in_time = await self._until_it_ends(under_way, command.limit_s)
        await listener.drained(listening, self._grace)
        listener.stop()
        outcome = _outcome(end, in_time=in_time, was_interrupted=under_way.was_interrupted)
        cost = await measured.stop()
        receipt = await memory()
        if end.lost or cost.gone:
            reason = how_it_ended(end if end.lost else sandbox_ended(cost.gone))
            receipt = replace(receipt, state=MemoryState.LOST, reason=reason)
        asked = self._tally.take(tracked.id)
        receipt = replace(
            receipt,
            working_folder=command.cwd,
            peak_memory_bytes=cost.peak_memory_bytes,
            cpu_s=cost.cpu_s,
            wall_s=cost.wall_s,
            helpers=asked.helpers,
            corrections=asked.corrections.texts(CorrectionKind.CORRECTED),
            installs=asked.corrections.texts(CorrectionKind.INSTALLED),
        )
        await tracked.output.keep_whole(self._mount)
        why = under_way.why_interrupted
        told = (receipt, asked.corrections, tracked.output, self._place, cost, why)
        tracked.end(command_result(command, outcome, end, *told))

    async def _until_it_ends(self, under_way: _UnderWay, limit_s: float) -> tuple[ProcessExit, bool]:
        end = await _exit_within(under_way.process, limit_s)
        if end is not None:
            return end, True
        return await self._end_group(under_way), False

    async def _end_group(self, under_way: _UnderWay) -> ProcessExit:
        """Ask, wait, then do: the whole group, also those that outlive bash itself."""
        process, grace = under_way.process, self._grace
        group = await self._group_of(under_way.identity)
        deadline = time.monotonic() + grace.term_s
        await _signal(process, signal.SIGTERM)
        end = await _exit_within(process, grace.term_s)
        if end is None:
            await _signal(process, signal.SIGKILL)
            end = await _exit_within(process, grace.kill_s)
        if group is not None:
            await self._end_rest(group, deadline)
        return end or ProcessExit(code=None, signal=signal.SIGKILL)

    async def _group_of(self, identity: ProcessId) -> int | None:
        with contextlib.suppress(WorkbenchError):
            for one in await self._sandbox.processes():
                if one.started_as == identity:
                    return one.pid
        return None

    async def _end_rest(self, group: int, deadline: float) -> None:
        """A process that ended takes no more signals, and bash ends at the first one: its children may not."""
        with contextlib.suppress(WorkbenchError):
            while any(one.group == group for one in await self._sandbox.processes()):
                if time.monotonic() >= deadline:
                    spec = ProcessSpec(id=new_process_id(), argv=("/bin/bash", "-c", f"kill -KILL -- -{group}"))
                    await _exit_within(await self._sandbox.start(spec), self._grace.kill_s)
                    return
                await asyncio.sleep(self._grace.look_s)

    async def interrupt_all(self, why: str) -> None:
        """What runs now, for this reason."""
        for tracked in list(self._under_way):
            await self.interrupt(tracked, why)

    async def interrupt(self, tracked: Tracked, why: str = "") -> None:
        """SIGINT to its group, by request or for this reason; nothing happens if it has ended."""
        if (under_way := self._under_way.get(tracked)) is not None:
            # The last one counts: what ran on after those before it was not ended by them.
            under_way.was_interrupted, under_way.why_interrupted = True, why
            await _signal(under_way.process, signal.SIGINT)
        elif tracked.state is State.WAITING:
            self._stopped_early.add(tracked)

    async def background(self, below: Callable[[ProcessId], int]) -> tuple[BackgroundProcess, ...]:
        """What runs and is neither started by a request nor part of a command under way, nor of a kernel.

        Args:
            below: how many belong to a process that was started, each started by the one before.

        Raises:
            SandboxUnavailable: the sandbox is gone.
        """
        found = await self._sandbox.processes()
        commands = {one.identity for one in self._under_way.values()}
        groups = {one.pid for one in found if one.started_as in commands}
        kernels = _belonging(found, below)
        return tuple(
            BackgroundProcess(pid=one.pid, command=one.command, for_s=one.for_s, memory_bytes=one.memory_bytes)
            for one in found
            if one.started_as is None and one.group not in groups and one.pid not in kernels
        )

    async def aclose(self) -> None:
        """The sandbox has ended, and with it all of them: wait until they are written down. May be called twice."""
        await _finish(self._running, _CLOSE_S)
        await _finish(self._listening, 0)


def _belonging(found: Sequence[RunningProcess], below: Callable[[ProcessId], int]) -> set[int]:
    """Those below the started ones that are not what code has started: an agent that tidies up would end its memory."""
    belonging: set[int] = set()
    left = {one.pid: below(one.started_as) for one in found if one.started_as is not None}
    while left := {one.pid: left[one.parent] - 1 for one in found if left.get(one.parent, 0) > 0}:
        belonging |= left.keys()
    return belonging


def _outcome(end: ProcessExit, *, in_time: bool, was_interrupted: bool) -> Outcome:
    if end.lost:
        return Outcome.LOST
    if not in_time:
        return Outcome.TIMED_OUT
    if end.code == 0:
        return Outcome.OK
    return Outcome.INTERRUPTED if was_interrupted else Outcome.RAISED


async def _exit_within(process: Process, timeout_s: float) -> ProcessExit | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        return None


async def _signal(process: Process, number: int) -> None:
    # Gone already, which its end will tell.
    with contextlib.suppress(WorkbenchError):
        await process.signal(number)


def _own(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    task = asyncio.create_task(work, name=name)
    tasks.add(task)

    def done(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("%s: %r", name, problem)

    task.add_done_callback(done)
    return task


async def _finish(tasks: set[asyncio.Task[None]], timeout_s: float) -> None:
    if tasks:
        _, late = await asyncio.wait(set(tasks), timeout=timeout_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
