"""Kernels, cells and commands of one sandbox, in the words of the wire."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from workbench.contracts.engine import Sandbox
from workbench.contracts.kernel import KernelLauncher, Visit, kernel_of
from workbench.errors import Cancelled, Conflict, InvalidRequest, KernelUnavailable, NotFound
from workbench.host.calls.tally import CallTally
from workbench.host.cells.cell_spool import CellSpool
from workbench.host.cells.commands import Commands, Grace
from workbench.host.cells.copy_session import copy_session
from workbench.host.cells.hosted_kernel import HostedKernel
from workbench.host.cells.measuring import Meter
from workbench.host.cells.memory import Patience, Wanted
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.recorder import Recorder
from workbench.host.cells.snapshots import Snapshot, SnapshotPolicy
from workbench.host.cells.tracked import Shelf, State, Tracked
from workbench.host.cells.words import Place, over_quota_words
from workbench.host.waits import MAX_WAIT_S, bounded
from workbench.model.calls import Caller
from workbench.model.execution import Cell, CellResult, Command, CommandResult, Receipt
from workbench.model.ids import KernelId, ProcessId, SandboxId, cell_id, kernel_id
from workbench.model.runtime import Runtime, Runtimes
from workbench.wire import kernels as wire

_log = logging.getLogger(__name__)
_MAX_READ = 4 * 1024 * 1024
_MOST_VARIABLES = 10_000


class CellOptions(NamedTuple):
    """What is the same for all sandboxes of a host."""

    launcher: KernelLauncher
    spool: Path
    spool_max_bytes: int
    limit_max_s: float
    patience: Patience = Patience()
    grace: Grace = Grace()
    policy: SnapshotPolicy = SnapshotPolicy()
    runtimes: Runtimes = Runtimes()


class SandboxCells:
    """Owned by its sandbox's record in the host: closed with it."""

    def __init__(
        self,
        sandbox: Sandbox,
        mount: Mount,
        options: CellOptions,
        *,
        files_kept: bool,
        check_living: Callable[[], None],
        visit: Visit = lambda: None,
    ) -> None:
        """`visit` gives what lets the sandbox run for a notebook, if it does not run now."""
        self._sandbox = sandbox
        self._id: SandboxId = sandbox.description.id
        self._mount = mount
        self._options = options
        self._files_kept = files_kept
        self._check_living = check_living
        self._visit = visit
        self._meter = Meter(sandbox)
        self.tally = CallTally()
        self._shelf = Shelf()
        self._kernels: dict[KernelId, HostedKernel] = {}
        self._unwanted: set[KernelId] = set()
        """that were ended before they began"""
        self._heeding: asyncio.Task[None] | None = None
        self._commands = Commands(
            sandbox=sandbox,
            shelf=self._shelf,
            mount=mount,
            meter=self._meter,
            place=self._place(""),
            tally=self.tally,
            grace=options.grace,
        )

    def open(self) -> None:
        """From here on, what runs is interrupted when it has made /mnt/files too full."""
        self._heeding = asyncio.create_task(self._heed_quota(), name=f"quota of {self._id}")

    async def _heed_quota(self) -> None:
        while True:
            why = over_quota_words(await self._sandbox.wait_over_quota())
            try:
                kernels = [kernel.interrupt(why=why) for kernel in self._kernels.values()]
                await asyncio.gather(self._commands.interrupt_all(why), *kernels)
            except Exception:  # noqa: BLE001  the next one must be heeded all the same
                _log.exception("what runs in %s could not be interrupted", self._id)

    def _place(self, start_up: str) -> Place:
        return Place(files_kept=self._files_kept, has_start_up=bool(start_up), most_s=self._options.limit_max_s)

    def whose(self, pid: int) -> Caller:
        """What a process of the sandbox, by the machine's own pid, runs for.

        Raises:
            Denied: it is none of the sandbox's.
        """
        process = self._sandbox.started_as(pid)
        if process is None:
            return Caller(sandbox=self._id)
        if (command := self._commands.running_as(process)) is not None:
            return Caller(sandbox=self._id, kernel=command[1], cell=command[0])
        kernel = kernel_of(process)
        hosted = self._kernels.get(kernel) if kernel is not None else None
        return Caller(sandbox=self._id, kernel=kernel, cell=hosted.running if hosted is not None else None)

    async def _memory_of(self, kernel: str, epoch: int) -> Receipt:
        """What a command, which runs beside it, can say of a kernel's memory; `epoch` if there is none."""
        found = self._kernels.get(KernelId(kernel))
        return await found.memory_now() if found is not None else Receipt(epoch=epoch)

    async def start_kernel(self, request: wire.StartKernel) -> wire.KernelReport:
        """A kernel; the same request again gives the same one, whatever its epoch is by now."""
        self._check_living()
        wanted = Wanted(
            kernel=kernel_id(request.kernel),
            working_folder=request.working_folder,
            start_up=request.start_up,
            snapshots=request.snapshots,
            runtime=self._runtime(request.runtime),
        )
        kernel = self._kernels.get(wanted.kernel)
        if kernel is None:
            # The same bounds as for any other cell.
            Cell(id=cell_id("start-up"), code=request.start_up).checked(most_s=float("inf"))
            kernel = self._add(wanted, request.epoch, request.lost_before)
        elif replace(kernel.wanted, snapshots=wanted.snapshots) != wanted:
            raise Conflict(f"there is another kernel {wanted.kernel} already", {"kernel": wanted.kernel})
        await self._until_ready(kernel)
        return kernel.report(self._id)

    def _runtime(self, name: str) -> Runtime:
        found = self._options.runtimes.find(name)
        if found is None:
            there = ", ".join(one.name for one in self._options.runtimes.known)
            raise InvalidRequest(f"no such runtime: {name!r}; there are: {there}", {"runtime": name})
        return found

    def _add(self, wanted: Wanted, epoch: int, lost_before: str = "", source: Snapshot | None = None) -> HostedKernel:
        kernel = self._kernels[wanted.kernel] = HostedKernel(
            sandbox=self._sandbox,
            launcher=self._options.launcher,
            wanted=wanted,
            epoch=epoch,
            lost_before=lost_before,
            shelf=self._shelf,
            mount=self._mount,
            meter=self._meter,
            place=self._place(wanted.start_up),
            tally=self.tally,
            policy=self._options.policy,
            visit=self._visit,
            patience=self._options.patience,
            source=source,
        )
        return kernel

    async def end_kernel(self, request: wire.EndKernel) -> None:
        """This one alone."""
        kernel = self._kernels.pop(KernelId(request.kernel), None)
        if kernel is None:
            self._unwanted.add(KernelId(request.kernel))
        else:
            await kernel.aclose()
            self._options.launcher.forget(self._id, kernel.wanted.kernel)

    async def set_snapshots(self, request: wire.SetSnapshots) -> None:
        """From the next cell on, or none from now on."""
        await self._kernel(request.kernel).snapshots.switch(on=request.on)

    async def undo(self, request: wire.UndoCells) -> wire.UndoReport:
        """Back to an earlier memory."""
        if request.cells < 1:
            raise InvalidRequest(f"undo goes back over 1 cell or more, not {request.cells}")
        kernel = self._kernel(request.kernel)
        not_carried = await kernel.between.undo(request.cells)
        return wire.UndoReport(kernel=kernel.report(self._id), not_carried=not_carried)

    async def copy_into(self, request: wire.CopyInto, target: SandboxCells) -> wire.CopyReport:
        """Files and variables."""
        mine, theirs = self._kernel(request.kernel), target._kernel(request.to_kernel)
        if target is self:
            raise InvalidRequest("a copy needs a sandbox of its own", {"sandbox": self._id})
        return await copy_session(
            (self._sandbox, mine.between),
            (target._sandbox, theirs.between),
            self._options.launcher,
            bounded(request.wait_s),
        )

    async def branch(self, request: wire.BranchKernel) -> wire.BranchReport:
        """A second kernel, from the memory of the first."""
        parent, name = self._kernel(request.kernel), kernel_id(request.branch)
        not_carried = ""
        branch = self._kernels.get(name)
        if branch is None:
            source = await parent.between.copy(bounded(request.wait_s))
            # Whoever asked for the same meanwhile was first, or has taken it back.
            branch = self._kernels.get(name)
            if branch is not None or name in self._unwanted:
                await self._sandbox.discard(source.name)
            if branch is None:
                if name in self._unwanted:
                    raise Cancelled(f"branch {name} was ended before it began", {"kernel": name})
                not_carried = source.not_carried
                branch = self._add(
                    replace(parent.wanted, kernel=name, snapshots=parent.snapshots.on), request.epoch, source=source
                )
        try:
            await self._until_ready(branch)
            if branch.memories.current is None:
                raise KernelUnavailable("the branch did not come up in time", {"kernel": name})
        except BaseException:
            await self.end_kernel(wire.EndKernel(sandbox=self._id, kernel=name))
            raise
        return wire.BranchReport(kernel=branch.report(self._id), not_carried=not_carried)

    async def _until_ready(self, kernel: HostedKernel) -> None:
        """Or for as long as a request may take: start-up code may run longer, and cells wait for it."""
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                await kernel.memories.ready()
        except TimeoutError:
            return

    def describe_kernel(self, request: wire.DescribeKernel) -> wire.KernelReport:
        """As it is."""
        return self._kernel(request.kernel).report(self._id)

    async def restart_kernel(self, request: wire.RestartKernel) -> wire.KernelReport:
        """A new memory."""
        kernel = self._kernel(request.kernel)
        await kernel.restart()
        await self._until_ready(kernel)
        return kernel.report(self._id)

    async def interrupt_kernel(self, request: wire.InterruptKernel) -> None:
        """What runs, or only the one that is named."""
        await self._kernel(request.kernel).interrupt(None if request.cell is None else cell_id(request.cell))

    async def list_variables(self, request: wire.ListVariables) -> wire.VariableList:
        """In its turn."""
        if not 1 <= request.most <= _MOST_VARIABLES:
            raise InvalidRequest(f"ask for 1 to {_MOST_VARIABLES} variables, not {request.most}")
        kernel = self._kernel(request.kernel)
        return wire.VariableList(variables=await kernel.between.variables(request.most, bounded(request.wait_s)))

    async def attach_kernel(self, request: wire.AttachKernel) -> wire.AttachReport:
        """A door for notebooks."""
        point = await self._kernel(request.kernel).attach()
        return wire.AttachReport(connection_file=point.connection_file, info=dict(point.info))

    async def run_cell(self, request: wire.RunCell) -> wire.CellReport:
        """Into the queue; or what became of it, for one that is asked for again, however the sandbox is by now."""
        cell = Cell(
            id=cell_id(request.cell),
            code=request.code,
            limit_s=request.limit_s,
            store_history=request.store_history,
        ).checked(self._options.limit_max_s)
        wait_s = bounded(request.wait_s)
        tracked = self._shelf.known(cell, KernelId(request.kernel))
        if tracked is None:
            kernel = self._kernel(request.kernel)
            tracked = Tracked(cell, kernel.wanted.kernel, self._recorder(cell))
            kernel.submit(tracked)
        return await _report(tracked, wait_s)

    async def run_command(self, request: wire.RunCommand) -> wire.CellReport:
        """The same for a command."""
        command = Command(
            id=cell_id(request.cell), command=request.command, limit_s=request.limit_s, cwd=request.cwd
        ).checked(self._options.limit_max_s)
        wait_s = bounded(request.wait_s)
        tracked = self._shelf.known(command, None)
        if tracked is None:
            self._check_living()
            tracked = Tracked(command, None, self._recorder(command))
            self._commands.submit(
                tracked, KernelId(request.kernel), lambda: self._memory_of(request.kernel, request.epoch)
            )
        return await _report(tracked, wait_s)

    def _recorder(self, asked: Cell | Command) -> Recorder:
        most = self._options.spool_max_bytes
        spool = CellSpool(self._options.spool / f"{self._id}.{asked.id}.cell", most)
        return Recorder(asked.id, spool, most)

    async def wait_cell(self, request: wire.WaitCell) -> wire.CellReport:
        """How it is, or its end."""
        return await _report(self._tracked(request.cell), bounded(request.wait_s))

    async def read_cell(self, request: wire.ReadCell) -> wire.CellOutput:
        """Output from an offset."""
        if request.offset < 0 or request.limit < 1:
            raise InvalidRequest("offset must be 0 or more, and limit 1 or more")
        spool = self._tracked(request.cell).output.spool
        page = await spool.read(request.offset, min(request.limit, _MAX_READ), bounded(request.wait_s))
        return wire.CellOutput(
            pieces=page.pieces, next_offset=page.next_offset, ended=page.ended, dropped_bytes=spool.dropped_bytes
        )

    def cancel_cell(self, request: wire.CancelCell) -> None:
        """Out of the queue."""
        tracked = self._tracked(request.cell)
        kernel = self._kernels.get(tracked.kernel) if tracked.kernel else None
        if kernel is None:
            state = "has ended already" if tracked.state is State.ENDED else "is a command and runs: interrupt it"
            raise Conflict(f"{tracked.id} {state}", {"cell": tracked.id})
        kernel.cancel(tracked)

    async def interrupt_command(self, request: wire.InterruptCommand) -> None:
        """Its whole group."""
        await self._commands.interrupt(self._tracked(request.cell))

    def forget_cell(self, request: wire.ForgetCell) -> None:
        """Drop it."""
        self._shelf.forget(cell_id(request.cell))

    async def list_processes(self) -> wire.ProcessList:
        """What runs in the background."""
        self._check_living()
        return wire.ProcessList(processes=await self._commands.background(self._processes_below))

    def _processes_below(self, process: ProcessId) -> int:
        """How many belong to one that was started, each started by the one before: those of a program that is kept."""
        kernel = kernel_of(process)
        hosted = self._kernels.get(kernel) if kernel is not None else None
        runtime = hosted.wanted.runtime if hosted is not None else None
        return 0 if runtime is None or runtime.forked else runtime.processes

    @property
    def busy(self) -> bool:
        """Whether something waits, runs, is being started, copied or ended, or a notebook asked a moment ago."""
        return any(True for _ in self._shelf.live()) or any(kernel.busy for kernel in self._kernels.values())

    @property
    def attached_idle_s(self) -> float | None:
        """Since a notebook last asked something of one of its kernels; None if none ever has."""
        idle = [kernel.attached_idle_s for kernel in self._kernels.values()]
        return min((one for one in idle if one is not None), default=None)

    async def use_threads(self, count: int) -> None:
        """The sandbox has so many CPUs from now on; never more than the machine."""
        count = min(count, len(os.sched_getaffinity(0)))
        await asyncio.gather(*(kernel.use_threads(count) for kernel in self._kernels.values()))

    async def drop_snapshots(self) -> None:
        """Of all kernels."""
        for kernel in list(self._kernels.values()):
            await kernel.snapshots.drop_all()

    def close(self) -> None:
        """Before the sandbox ends: begin nothing more."""
        for kernel in self._kernels.values():
            kernel.close()

    async def aclose(self) -> None:
        """After the sandbox ended: what ran has its result, then everything is dropped. May be called twice."""
        self.close()
        if self._heeding is not None:
            self._heeding.cancel()
            await asyncio.wait([self._heeding])
        # The mount is given back next: no thread of ours may still write into it.
        for tracked in self._shelf.live():
            tracked.output.give_up()
        await asyncio.gather(*(kernel.aclose() for kernel in self._kernels.values()), self._commands.aclose())
        self._shelf.clear()

    def _kernel(self, kernel: str) -> HostedKernel:
        self._check_living()
        found = self._kernels.get(KernelId(kernel))
        if found is None:
            raise NotFound(f"no kernel {kernel!r} in sandbox {self._id}; start it first", {"kernel": kernel})
        return found

    def _tracked(self, cell: str) -> Tracked:
        return self._shelf.find(cell_id(cell))


async def _report(tracked: Tracked, wait_s: float) -> wire.CellReport:
    result = await tracked.result(wait_s)
    return wire.CellReport(
        cell=tracked.id,
        state=tracked.state,
        result=result if isinstance(result, CellResult) else None,
        command_result=result if isinstance(result, CommandResult) else None,
    )
