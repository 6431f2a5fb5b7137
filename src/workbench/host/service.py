"""What a host does for its clients: sandboxes and their processes, by id. Every request has one method here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from workbench import __version__
from workbench.contracts.engine import Ahead, Engine
from workbench.contracts.kernel import KernelLauncher
from workbench.data_folder import EPHEMERAL_PREFIX, DataFolder, RunFolder
from workbench.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, SandboxUnavailable
from workbench.host.calls.desk import CallDesk
from workbench.host.calls.door import CallDoor
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.sandbox_cells import CellOptions, SandboxCells
from workbench.host.cells.snapshots import SnapshotPolicy
from workbench.host.hosted import Files, Hosted, Running, check_env, spec_of
from workbench.host.journal import Journal
from workbench.host.kernel_service import KernelService
from workbench.host.losses import read_losses
from workbench.host.spool import Spool
from workbench.host.waits import MAX_WAIT_S, bounded
from workbench.model.capability import Level
from workbench.model.ids import MountId, ProcessId, SandboxId, mount_id, process_id, sandbox_id
from workbench.model.image import Image
from workbench.model.process import ProcessSpec
from workbench.model.runtime import Runtimes
from workbench.model.tier import tier_named
from workbench.wire import host as wire

# Shorter than a client's patience: what could not be made in time must not appear after everyone has left.
_CREATE_TIMEOUT_S = 120.0
_MAX_READ = 4 * 1024 * 1024
# After an exit, what was printed before it is still in the pipe; a background process may hold the pipe open.
_DRAIN_S = 0.2
_LOSSES_TOLD = 100
# For processes that were killed to give their memory back.
_FREED_S = 0.3
_ENDED_REMEMBERED = 1000


class HostService:
    """Owns the engine's sandboxes. One per host process."""

    def __init__(
        self,
        *,
        engine: Engine,
        data: DataFolder,
        run: RunFolder,
        level: Level,
        spool_max_bytes: int,
        limits_by: str,
        find_image: Callable[[], Image],
        launcher: KernelLauncher,
        cell_limit_max_s: float,
        policy: SnapshotPolicy,
        runtimes: Runtimes | None = None,
    ) -> None:
        self._engine = engine
        self._find_image = find_image
        self._image = find_image()
        self._data = data
        self._run = run
        self._level = level
        self._spool_max_bytes = spool_max_bytes
        self._limits_by = limits_by
        self._launcher = launcher
        run.spool.mkdir(exist_ok=True)
        self._cell_options = CellOptions(
            launcher, run.spool, spool_max_bytes, cell_limit_max_s, policy=policy, runtimes=runtimes or Runtimes()
        )
        self.kernels = KernelService(lambda sandbox: self._hosted(sandbox, living=False))
        self.calls = CallDesk()
        self._journal = Journal(run.journal)
        self._sandboxes: dict[SandboxId, Hosted] = {}
        self._making: dict[SandboxId, asyncio.Task[wire.SandboxReport]] = {}
        self._closing: dict[SandboxId, asyncio.Task[None]] = {}
        self._ended: deque[wire.SandboxReport] = deque(maxlen=_ENDED_REMEMBERED)
        self._started = time.monotonic()
        self.draining = False
        self.idle = asyncio.Event()
        """set while there is nothing left to serve"""
        self.idle.set()

    def status(self) -> wire.StatusAnswer:
        """As it is now."""
        losses = read_losses(self._data.losses, _LOSSES_TOLD)
        return wire.StatusAnswer(
            host=self._run.host,
            version=__version__,
            protocol=wire.PROTOCOL,
            pid=os.getpid(),
            engine=self._engine.name,
            level=self._level,
            limits_by=self._limits_by,
            uptime_s=time.monotonic() - self._started,
            sandboxes=len(self._sandboxes),
            pooled=self._engine.pooled,
            ahead=self._engine.ahead,
            draining=self.draining,
            warning="" if self._engine.name != "process" else "engine `process`: nothing is isolated",
            capabilities=tuple(
                wire.CapabilityReport(barrier=held.barrier, grade=held.grade, by=held.by)
                for held in self._engine.capabilities
            ),
            lost=tuple(wire.LostSandbox(sandbox=loss.sandbox, host=loss.host, when=loss.when) for loss in losses),
        )

    async def create(self, request: wire.CreateSandbox) -> wire.SandboxReport:
        """A new sandbox; the same request again gives the same sandbox, so that a lost answer can be asked for."""
        identity = sandbox_id(request.sandbox)
        if (hosted := self._sandboxes.get(identity)) is not None:
            if hosted.request != request or hosted.gone:
                raise Conflict(f"there is a sandbox {identity} already", {"sandbox": identity})
            return self._report(hosted)
        if identity in self._making:
            raise Conflict(f"sandbox {identity} is being made; ask again", {"sandbox": identity})
        if self.draining:
            raise Conflict("this host is leaving and takes no new sandboxes; connect again")
        making = asyncio.create_task(self._create(identity, request), name=f"create {identity}")
        self._making[identity] = making
        self.idle.clear()
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            # Nobody waits for it any more: what is half made is taken down, what is done stays.
            making.cancel()
            await asyncio.wait([making])
            raise
        finally:
            self._making.pop(identity, None)
            self._look_if_idle()

    async def _create(self, identity: SandboxId, request: wire.CreateSandbox) -> wire.SandboxReport:
        tier = tier_named(request.tier)
        check_env(request.env)
        files = self._files(identity, request.files)
        try:
            async with asyncio.timeout(_CREATE_TIMEOUT_S):
                packages, ahead = self._packages(request.files), self._ahead(request)
                sandbox = await self._engine.create(spec_of(request, tier, files.path, packages, ahead))
        except TimeoutError:
            await files.release()
            raise SandboxUnavailable(f"no sandbox could be made in {_CREATE_TIMEOUT_S:.0f} s") from None
        except BaseException:
            await files.release()
            raise
        cells = SandboxCells(
            sandbox,
            Mount(files.path, tier.files_bytes, tier.files_inodes),
            self._cell_options,
            files_kept=request.files is not None,
            check_living=lambda: hosted.check_living(),
            visit=lambda: hosted.freezer.visit(),
        )
        door = CallDoor(identity, self.calls, cells.tally, cells.whose)
        hosted = Hosted(request=request, sandbox=sandbox, files=files, cells=cells, door=door, made=time.monotonic())
        cells.open()
        await door.open(sandbox.calls)
        self._sandboxes[identity] = hosted
        self._journal.made(identity, sandbox.description.root_pid)
        hosted.follower = asyncio.create_task(self._follow(identity, hosted), name=f"until {identity} ends")
        return self._report(hosted)

    def _ahead(self, request: wire.CreateSandbox) -> Ahead | None:
        """What of its first kernel may have begun already."""
        runtime = self._cell_options.runtimes.find(request.runtime) if request.kernel else None
        return None if runtime is None else self._launcher.ahead(runtime)

    def _files(self, identity: SandboxId, mount: str | None) -> Files:
        if mount is None:
            path = self._data.files / f"{self._run.ephemeral_prefix}{identity}"
            path.mkdir(mode=0o700)
            return Files(path, None)
        name = _mount_name(mount)
        lock = self._data.use_mount(name)
        if lock is None:
            users = [one.sandbox.description.id for one in self._sandboxes.values() if one.request.files == mount]
            by = f"sandbox {users[0]}" if users else "a sandbox that is being made, or of another host"
            raise Conflict(f"mount {mount} is in use by {by}: close that one first", {"mount": mount})
        path = self._data.files / name
        path.mkdir(mode=0o700, exist_ok=True)
        return Files(path, lock)

    def _packages(self, mount: str | None) -> Path | None:
        """Where what is installed for those of a mount goes; a sandbox without one has nobody to install for."""
        if mount is None:
            return None
        path = self._data.packages / _mount_name(mount)
        path.mkdir(exist_ok=True)
        # Sandboxes have uids of their own; the folder above is closed to everybody else.
        path.chmod(0o755)
        return path

    async def _follow(self, identity: SandboxId, hosted: Hosted) -> None:
        """Notice a sandbox that ends by itself. Its outputs stay until the client closes it."""
        hosted.gone = await hosted.sandbox.wait_gone()
        await hosted.door.aclose()
        await hosted.sandbox.aclose()
        self._journal.ended(identity, hosted.gone)
        self._look_if_idle()

    def describe(self, request: wire.DescribeSandbox) -> wire.SandboxReport:
        """A living one, or how a dead one ended."""
        identity = SandboxId(request.sandbox)
        if identity in self._sandboxes:
            return self._report(self._sandboxes[identity])
        for report in reversed(self._ended):
            if report.sandbox == identity:
                return report
        raise _no_such_sandbox(identity)

    def list_all(self) -> wire.SandboxList:
        """Those that a client has not closed."""
        return wire.SandboxList(sandboxes=tuple(self._report(hosted) for hosted in self._sandboxes.values()))

    async def close(self, request: wire.CloseSandbox) -> wire.Done:
        """End it and drop its outputs; one that is still being made is ended when it is there."""
        identity = SandboxId(request.sandbox)
        if (making := self._making.get(identity)) is not None:
            await asyncio.wait([making])
        hosted = self._sandboxes.get(identity)
        if hosted is not None:
            if request.if_frozen and not hosted.gone:
                hosted.freezer.check_frozen()
            # Nothing may come between: whoever asks for it from here on finds it gone.
            del self._sandboxes[identity]
            closing = asyncio.create_task(self._close(hosted), name=f"close {identity}")
            # Owned here: whoever asked may go away in the middle.
            self._closing[identity] = closing
            closing.add_done_callback(lambda _: self._closed(identity))
        if (closing_now := self._closing.get(identity)) is not None:
            # Who asks a second time is told when it is done as well: its mount is free then.
            await asyncio.shield(closing_now)
        return wire.Done()

    async def _close(self, hosted: Hosted) -> None:
        try:
            hosted.cells.close()
            await hosted.door.aclose()
            await hosted.sandbox.aclose()
            await hosted.cells.aclose()
            self._launcher.forget(hosted.sandbox.description.id)
            if hosted.follower is not None:
                await asyncio.wait([hosted.follower])
            for running in hosted.processes.values():
                await running.drop()
        finally:
            await hosted.files.release()
            self._ended.append(self._report(hosted))

    def _closed(self, identity: SandboxId) -> None:
        self._closing.pop(identity, None)
        self._look_if_idle()

    def _look_if_idle(self) -> None:
        """A sandbox that is gone waits only for its outputs to be fetched, and keeps no draining host alive."""
        if not (self._making or self._closing or any(not hosted.gone for hosted in self._sandboxes.values())):
            self.idle.set()

    async def freeze(self, request: wire.FreezeSandbox) -> wire.FreezeReport:
        """Let it stand still, if nobody needs it."""
        frozen = await self._hosted(request.sandbox).freezer.freeze()
        return wire.FreezeReport(sandbox=request.sandbox, frozen=frozen)

    async def thaw(self, request: wire.ThawSandbox) -> wire.Done:
        """Let it run again."""
        await self._hosted(request.sandbox).freezer.thaw()
        return wire.Done()

    async def change_tier(self, request: wire.ChangeTier) -> wire.SandboxReport:
        """Other limits."""
        hosted = self._hosted(request.sandbox)
        tier = tier_named(request.tier)
        async with hosted.freezer.in_use():
            try:
                await hosted.sandbox.change_tier(tier)
            except QuotaExceeded:
                # What is kept for undo and for a loss is no reason to refuse; it is taken again after the next cell.
                await hosted.cells.drop_snapshots()
                await asyncio.sleep(_FREED_S)
                await hosted.sandbox.change_tier(tier)
            await hosted.cells.use_threads(min(tier.vcpus, len(os.sched_getaffinity(0))))
        return self._report(hosted)

    async def measure(self, request: wire.MeasureSandbox) -> wire.UsageReport:
        """What it uses."""
        usage = await self._hosted(request.sandbox).sandbox.usage()
        return wire.UsageReport(
            memory_bytes=usage.memory_bytes,
            peak_memory_bytes=usage.peak_memory_bytes,
            cpu_s=usage.cpu_s,
            processes=usage.processes,
        )

    async def start(self, request: wire.StartProcess) -> wire.ProcessReport:
        """Start a process and begin to keep its output."""
        hosted, identity = self._hosted(request.sandbox), process_id(request.process)
        if identity in hosted.processes:
            raise Conflict(f"there is a process {identity} already", {"process": identity})
        spec = ProcessSpec(
            id=identity,
            argv=request.argv,
            entry=request.entry,
            payload=request.payload,
            env=request.env,
            cwd=request.cwd,
            stdin=request.stdin,
        )
        async with hosted.freezer.in_use():
            # Before the process: once that has begun, nothing of ours may fail any more.
            spool = self._spool(request.sandbox, identity)
            try:
                process = await hosted.sandbox.start(spec)
            except BaseException:
                spool.close()
                raise
            filling = asyncio.create_task(spool.fill(process), name=f"spool {identity}")
            ending = asyncio.create_task(process.wait(), name=f"until {identity} ends")
            hosted.processes[identity] = Running(process, spool, filling, ending)
        return wire.ProcessReport(process=identity, running=True)

    def _spool(self, sandbox: str, process: ProcessId) -> Spool:
        try:
            return Spool(self._run.spool / f"{sandbox}.{process}", self._spool_max_bytes)
        except FileExistsError:
            raise Conflict(f"there is a process {process} already", {"process": process}) from None
        except OSError as problem:
            raise SandboxUnavailable(f"output cannot be kept: {problem.strerror}; nothing was started") from problem

    async def write_stdin(self, request: wire.WriteStdin) -> wire.Done:
        """Input; the wait for a process that does not read is bounded."""
        process = self._running(request.sandbox, request.process).process
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                if request.data:
                    await process.write_stdin(request.data)
        except TimeoutError:
            raise Conflict(f"the process has not read its input for {MAX_WAIT_S:.0f} s") from None
        if request.end:
            await process.close_stdin()
        return wire.Done()

    async def signal(self, request: wire.SignalProcess) -> wire.Done:
        """A signal for the group."""
        if not 1 <= request.signal <= 64:
            raise InvalidRequest(f"not a signal: {request.signal}")
        await self._running(request.sandbox, request.process).process.signal(request.signal)
        return wire.Done()

    async def read_output(self, request: wire.ReadOutput) -> wire.OutputReport:
        """A piece of the spool."""
        if request.offset < 0 or request.limit < 1:
            raise InvalidRequest("offset must be 0 or more, and limit 1 or more")
        spool = self._running(request.sandbox, request.process).spool
        limit, wait_s = min(request.limit, _MAX_READ), bounded(request.wait_s)
        data, ended = await spool.read(request.stream, request.offset, limit, wait_s)
        return wire.OutputReport(
            data=data, offset=request.offset, ended=ended, dropped_bytes=spool.dropped[request.stream]
        )

    async def wait(self, request: wire.WaitProcess) -> wire.ProcessReport:
        """Its end, once what it printed is in the spool."""
        running = self._running(request.sandbox, request.process)
        try:
            async with asyncio.timeout(bounded(request.wait_s)):
                end = await running.process.wait()
        except TimeoutError:
            return wire.ProcessReport(process=request.process, running=True)
        await asyncio.wait([running.filling], timeout=_DRAIN_S)
        return wire.ProcessReport(
            process=request.process,
            running=False,
            code=end.code,
            signal=end.signal,
            lost=end.lost,
            reason=end.reason,
            limits=end.limits,
            cpu_s=end.cpu_s,
            peak_bytes=end.peak_bytes,
        )

    async def forget(self, request: wire.ForgetProcess) -> wire.Done:
        """End it and drop its output."""
        hosted = self._hosted(request.sandbox, living=False)
        running = hosted.processes.pop(ProcessId(request.process), None)
        if running is not None:
            with contextlib.suppress(SandboxUnavailable):
                await running.process.signal(9)
            await running.drop()
        return wire.Done()

    async def refresh_image(self) -> wire.Done:
        """Use the image that is there now."""
        image = self._find_image()
        if image != self._image:
            await self._engine.change_image(image)
            self._image = image
        return wire.Done()

    async def aclose(self) -> None:
        """End everything. The engine is closed by who made it."""
        self.draining = True
        for making in list(self._making.values()):
            making.cancel()
            await asyncio.wait([making])
        everything = [self._sandboxes.pop(identity) for identity in list(self._sandboxes)]
        closing = (*(self._close(hosted) for hosted in everything), *self._closing.values())
        await asyncio.gather(*closing, return_exceptions=True)
        await self._launcher.aclose()
        self._journal.close()

    def _hosted(self, sandbox: str, *, living: bool = True) -> Hosted:
        hosted = self._sandboxes.get(SandboxId(sandbox))
        if hosted is None:
            raise _no_such_sandbox(sandbox)
        if living:
            hosted.check_living()
        return hosted

    def _running(self, sandbox: str, process: str) -> Running:
        """Also of a sandbox that is gone: its outputs are still there."""
        running = self._hosted(sandbox, living=False).processes.get(ProcessId(process))
        if running is None:
            raise NotFound(f"no process {process} in sandbox {sandbox}; it was never started or is forgotten")
        return running

    def _report(self, hosted: Hosted) -> wire.SandboxReport:
        known = hosted.sandbox.description
        return wire.SandboxReport(
            sandbox=known.id,
            engine=known.engine,
            tier=known.tier,
            isolated=known.isolated,
            limits_by=known.limits_by,
            files=hosted.request.files,
            warning=known.warning,
            age_s=time.monotonic() - hosted.made,
            gone=hosted.gone,
            frozen=hosted.sandbox.frozen,
            attached_idle_s=hosted.cells.attached_idle_s,
        )


def _no_such_sandbox(sandbox: str) -> NotFound:
    return NotFound(
        f"no sandbox {sandbox!r} on this host: it never was, or ended with an earlier host; see `host status`",
        {"sandbox": sandbox},
    )


def _mount_name(files: str) -> MountId:
    name = mount_id(files)
    if name.startswith(EPHEMERAL_PREFIX):
        raise InvalidRequest(f"a mount's id may not start with {EPHEMERAL_PREFIX!r}: {name}")
    return name
