"""A claimed slot, as the Sandbox of the contract: starts processes, follows their ends, names the limits they met."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence

from workbench.contracts.engine import HeadStart, OverQuota, RunningProcess, SandboxDescription, SandboxSpec, Usage
from workbench.engines import proc
from workbench.engines.admission import check_alive, check_start
from workbench.engines.environment import joined
from workbench.engines.namespace.channel import ChannelClosed, MessageTooLong
from workbench.engines.namespace.dormant import DormantProcesses
from workbench.engines.namespace.freezing import Freezing
from workbench.engines.namespace.limits.keeper import Counters
from workbench.engines.namespace.quota import FilesQuota
from workbench.engines.namespace.slot import END_TIMEOUT_S, Slot
from workbench.engines.namespace.sweeping import end_newer
from workbench.engines.pidfd import exited
from workbench.engines.pipes import PipedProcess, Pipes
from workbench.errors import InvalidRequest, QuotaExceeded, SandboxUnavailable
from workbench.model.ids import ProcessId
from workbench.model.process import Limit, ProcessExit, ProcessSpec
from workbench.model.tier import Tier, thread_variables
from workbench_guest.messages import (
    OWN_NAME,
    Configure,
    Discard,
    Exited,
    Failed,
    NotStarted,
    Offered,
    Signal,
    Start,
    Started,
    Unprepared,
    Withdrawn,
)

_START_TIMEOUT_S = 30.0
# Characters of what pid 1 says of its own failure.
_MOST_LAST_WORDS = 300
# Of one process; longer lines of them are made only to be long.
_MOST_ANCESTORS = 64
# A page: less than this left of a folder in memory means that a write was refused.
_FULL_BYTES = 4096
# For a look at files for a result; a million of them take longer, and are told as they were last seen.
_LOOK_S = 1.0


class NamespaceSandbox:
    """Owned by its creator. `resize`, `look_at_files` and `on_gone` are the engine's."""

    def __init__(
        self,
        *,
        spec: SandboxSpec,
        slot: Slot,
        limits_by: str,
        base_env: dict[str, str],
        cpus: int,
        quota: FilesQuota,
        resize: Callable[[Slot, Tier], Awaitable[None]],
        look_at_files: Callable[[NamespaceSandbox], Awaitable[None]],
        on_gone: Callable[[NamespaceSandbox], None],
    ) -> None:
        self._spec = spec
        self._tier = spec.tier
        self.slot = slot
        self._limits_by = limits_by
        self._base_env = base_env
        self._cpus = cpus
        self.quota = quota
        self._resize = resize
        self._look_at_files = look_at_files
        self._on_gone = on_gone
        self._starting: dict[str, asyncio.Future[Started | NotStarted]] = {}
        self._running: dict[str, tuple[PipedProcess, Counters]] = {}
        self._unread: list[PipedProcess] = []
        self._pids: dict[str, int] = {}
        """of what runs, as pid 1 counts"""
        self._groups: frozenset[int] = frozenset()
        """of programs that were started, also of those that have ended and left something in the background"""
        self._sweeping = asyncio.Lock()
        self._dormant = DormantProcesses(slot.pid)
        self._resizing = asyncio.Lock()
        self._freezing = Freezing(slot, self._is_changing)
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reason = ""
        self._failed = ""
        self._follower: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def description(self) -> SandboxDescription:
        """As the contract says."""
        return SandboxDescription(
            id=self._spec.id,
            engine="namespace",
            tier=self._tier.name,
            isolated=True,
            limits_by=self._limits_by,
            root_pid=self.slot.pid,
            snapshots=True,
        )

    @property
    def tier(self) -> Tier:
        """The one in force."""
        return self._tier

    @property
    def spec(self) -> SandboxSpec:
        """As it was asked for."""
        return self._spec

    @property
    def root_pid(self) -> int:
        """Of pid 1, on the host."""
        return self.slot.pid

    @property
    def calls(self) -> int:
        """As the contract says. It listens in a network that nobody else is in."""
        return self.slot.calls

    def started_as(self, pid: int) -> ProcessId | None:
        """As the contract says. By the session it leads or is in, which outlives its leader; then by its ancestors."""
        started = {inside: ProcessId(name) for name, inside in self._pids.items()}
        if (name := started.get(proc.numbers(pid, "NSsid:")[-1])) is not None:
            return name
        for _ in range(_MOST_ANCESTORS):
            if (name := started.get(proc.numbers(pid, "NSpid:")[-1])) is not None:
                return name
            if (above := proc.parent(pid)) is None or above == self.slot.pid:
                break
            pid = above
        return None

    async def open(self) -> None:
        """Tell pid 1 its environment and start listening to it. Called once, by the engine."""
        try:
            await self.slot.channel.send(self._configuration())
        except ChannelClosed as problem:
            raise SandboxUnavailable("the sandbox ended before it was used", {"step": "configure"}) from problem
        except MessageTooLong as problem:
            raise InvalidRequest(f"the variables of the sandbox are too large: {problem}") from problem
        self._follower = asyncio.create_task(self._follow(), name=f"follow {self._spec.id}")

    def _configuration(self) -> Configure:
        threads = thread_variables(min(self._tier.vcpus, self._cpus))
        return Configure(
            env=joined({**self._base_env, **threads}, self._spec.env), keep_prepared=self._spec.first_entry
        )

    async def start(self, spec: ProcessSpec, passed: Sequence[int] = ()) -> PipedProcess:
        """As the contract says."""
        # Nothing is started while what a lost cell left is ended.
        async with self._sweeping:
            pass
        # From here to the entry in `_starting`, which keeps it thawed, nothing may come between.
        await self.thaw()
        check_start(spec, self._spec.id, self._why_gone, self._running)
        pipes = Pipes(stdin=spec.stdin)
        process = PipedProcess(pipes, lambda number: self._send(Signal(process=spec.id, number=number)))
        answer: asyncio.Future[Started | NotStarted] = asyncio.get_running_loop().create_future()
        self._starting[spec.id] = answer
        # Known before it runs: it may end before its start is told.
        self._running[spec.id] = (process, self.slot.group.counters())
        try:
            await self._send_start(spec, pipes, passed)
            async with asyncio.timeout(_START_TIMEOUT_S):
                told = await answer
            if isinstance(told, NotStarted):
                raise _refusal(told)
            if spec.id in self._running:
                self._pids[spec.id] = told.pid
            if spec.entry is None:
                self._groups |= {told.pid}
            if spec.snapshot is not None:
                self._dormant.woken(spec.snapshot)
        except BaseException as problem:
            self._running.pop(spec.id, None)
            pipes.close()
            await self._take_back(spec, problem)
            raise
        finally:
            pipes.close_far()
            self._starting.pop(spec.id, None)
        self._unread = [*(other for other in self._unread if other.pipes.is_open), process]
        return process

    async def _take_back(self, spec: ProcessSpec, problem: BaseException) -> None:
        """A start that failed, in the words of the contract; what may have begun all the same is ended."""
        if isinstance(problem, MessageTooLong):
            raise InvalidRequest(f"arguments and variables are too large: {problem}; use a file") from problem
        if isinstance(problem, TimeoutError | asyncio.CancelledError):
            await self._send(Signal(process=spec.id, number=signal.SIGKILL))
        if isinstance(problem, TimeoutError | ChannelClosed):
            raise SandboxUnavailable("the sandbox does not answer", {"step": "start"}) from problem

    async def _send_start(self, spec: ProcessSpec, pipes: Pipes, passed: Sequence[int]) -> None:
        order = Start(
            process=spec.id,
            argv=spec.argv,
            entry=spec.entry,
            env=spec.env,
            cwd=spec.cwd,
            line=spec.may_snapshot,
            snapshot=spec.snapshot,
        )
        if spec.entry is None:
            await self.slot.channel.send(order, tuple(pipes.far))
            return
        payload = os.memfd_create("payload", os.MFD_CLOEXEC)
        try:
            os.write(payload, spec.payload)
            os.lseek(payload, 0, os.SEEK_SET)
            await self.slot.channel.send(order, (*pipes.far, payload, *passed))
        finally:
            os.close(payload)

    async def _send(self, message: Signal | Configure | Discard) -> None:
        with contextlib.suppress(ChannelClosed):
            await self.slot.channel.send(message)

    async def change_tier(self, tier: Tier) -> None:
        """As the contract says."""
        async with self._resizing:
            check_alive(self._spec.id, self._why_gone)
            try:
                await self._fit(tier, shrinking=tier.memory_bytes < self._tier.memory_bytes)
            except BaseException:
                # Back to what held before; if the sandbox has died meanwhile, there is nothing to hold.
                with contextlib.suppress(QuotaExceeded, SandboxUnavailable, OSError):
                    await self._fit(self._tier, shrinking=False)
                raise
            self._tier = tier
            await self._send(self._configuration())

    async def _fit(self, tier: Tier, *, shrinking: bool) -> None:
        if shrinking:
            # Files first: they are part of the memory, and refusing them changes nothing.
            await self._resize(self.slot, tier)
        self.slot.group.apply(tier)
        if not shrinking:
            await self._resize(self.slot, tier)

    async def usage(self) -> Usage:
        """As the contract says."""
        check_alive(self._spec.id, self._why_gone)
        return self.slot.group.usage()

    async def over_quota(self) -> OverQuota | None:
        """As the contract says."""
        if self._why_gone is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._look_at_files(self)
        if (gone := self._why_gone) is not None:
            raise SandboxUnavailable(f"sandbox {self._spec.id} is gone: {gone}", {"gone": gone})
        return self.quota.over

    async def wait_over_quota(self) -> OverQuota:
        """As the contract says."""
        return await self.quota.wait()

    async def processes(self) -> tuple[RunningProcess, ...]:
        """As the contract says. Pid 1 and the interpreters that wait in its care are the engine's own."""
        check_alive(self._spec.id, self._why_gone)
        return await asyncio.to_thread(self._look_at_processes)

    def _look_at_processes(self) -> tuple[RunningProcess, ...]:
        started = {pid: ProcessId(name) for name, pid in self._pids.items()}
        numbers = {pid: proc.numbers(pid, "NSpid:")[-1] for pid in proc.tree(self.slot.pid)}
        found = []
        for pid, inside in list(numbers.items())[1:]:
            if inside and (inside in started or proc.name(pid) != OWN_NAME):
                found.append(
                    RunningProcess(
                        pid=inside,
                        group=proc.group(pid),
                        parent=numbers.get(proc.parent(pid) or 0, 0),
                        started_as=started.get(inside),
                        command=proc.command(pid),
                        for_s=proc.age_s(pid),
                        memory_bytes=proc.resident_bytes(pid),
                    )
                )
        return tuple(sorted(found, key=lambda one: -one.for_s))

    def take_head_start(self) -> HeadStart | None:
        """As the contract says."""
        return self.slot.take_head_start()

    @property
    def snapshots(self) -> frozenset[str]:
        """As the contract says."""
        return self._dormant.names

    def expect(self, snapshot: str) -> None:
        """As the contract says."""
        self._dormant.expect(snapshot)

    async def snapshot_offered(self, snapshot: str, within_s: float) -> bool:
        """As the contract says."""
        return await self._dormant.wait(snapshot, within_s)

    async def resident_bytes(self) -> int:
        """As the contract says."""
        return await asyncio.to_thread(self._dormant.resident_bytes_of_others)

    async def let_go_first(self, snapshot: str) -> None:
        """As the contract says."""
        self._dormant.let_go_first(snapshot)

    async def discard(self, snapshot: str) -> None:
        """As the contract says."""
        self._dormant.discarded(snapshot)
        await self._send(Discard(snapshot=snapshot))

    async def sweep(self, newer_than_s: float) -> int:
        """As the contract says."""
        # In a task of its own: who gives up waiting must not let others start before it is over.
        return await asyncio.shield(asyncio.create_task(self._sweep(newer_than_s), name=f"sweep {self._spec.id}"))

    async def _sweep(self, newer_than_s: float) -> int:
        async with self._sweeping:
            await self.thaw()
            # One that is just being started is not known by its pid yet.
            if starting := list(self._starting.values()):
                await asyncio.wait(starting, timeout=_START_TIMEOUT_S)
            theirs = frozenset(self._pids.values()) | self._groups
            ended, self._groups = await asyncio.to_thread(end_newer, self.slot.pid, newer_than_s, theirs)
            return ended

    @property
    def frozen(self) -> bool:
        """As the contract says."""
        return self._freezing.frozen

    async def freeze(self) -> bool:
        """As the contract says."""
        check_alive(self._spec.id, self._why_gone)
        return await self._freezing.freeze()

    def _is_changing(self) -> bool:
        return bool(self._starting) or self._sweeping.locked() or self._resizing.locked()

    async def thaw(self) -> None:
        """As the contract says."""
        await self._freezing.thaw()

    def stay_frozen(self) -> None:
        """For the watchdog: if it is frozen, whatever woke itself is stopped again."""
        self._freezing.again()

    async def wait_gone(self) -> str:
        """As the contract says."""
        return await asyncio.shield(self._gone)

    def end_soon(self, reason: str) -> None:
        """For the watchdog: kill it now; who owns it still closes it."""
        self._reason = self._reason or reason
        self.slot.kill()

    async def aclose(self) -> None:
        """As the contract says."""
        self._reason = self._reason or "closed"
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._spec.id}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.slot.kill()
        if self._follower is not None:
            # The follower sees the end of the channel and settles what was running.
            await asyncio.wait([self._follower], timeout=END_TIMEOUT_S)
            self._follower.cancel()
        self._settle()
        for process in self._unread:
            process.pipes.keep_unread()
        # Whoever changes its sizes holds its descriptors.
        async with self._resizing:
            await self.slot.end()
        self._on_gone(self)

    async def _follow(self) -> None:
        """Until pid 1 is gone; whatever it said last, everything that was running is told."""
        try:
            await self._listen()
            self.slot.kill()
            await exited(self.slot.pidfd, within_s=END_TIMEOUT_S)
        finally:
            self._settle()

    async def _listen(self) -> None:
        """Hand each message of pid 1 to who waits for it, until there are no more or one that it would never send."""
        # An OverflowError is a number that no wait status can be.
        with contextlib.suppress(ChannelClosed, OverflowError, ValueError):
            while True:
                message, descriptors = await self.slot.channel.receive()
                # Whoever speaks for pid 1 may not choose how long we are busy: neither by one message after the other,
                # nor by a descriptor whose closing takes as long as its owner set.
                await asyncio.sleep(0)
                for descriptor in descriptors:
                    await asyncio.to_thread(os.close, descriptor)
                match message:
                    case Started() | NotStarted():
                        answer = self._starting.get(message.process)
                        if answer is not None and not answer.done():
                            answer.set_result(message)
                    case Exited():
                        self._exited(message)
                    case Offered():
                        if not self._dormant.offered(message.snapshot, message.pid):
                            await self._send(Discard(snapshot=message.snapshot))
                    case Withdrawn():
                        self._dormant.gone(message.snapshot)
                    case Unprepared():
                        # A start forks another one.
                        pass
                    case Failed():
                        # Its last words: what it did not know how to go on from.
                        self._failed = message.error[:_MOST_LAST_WORDS]
                        return
                    case _:
                        # Nothing else is ever said by pid 1: someone speaks in its place.
                        return

    def _exited(self, message: Exited) -> None:
        known = self._running.get(message.process)
        if known is None:
            return
        process, before = known
        if not (0 <= message.peak_bytes < 2**63 and 0 <= message.cpu_s < 2**63):
            raise ValueError("no process took that much, and no caller could be told so")
        code, number = (None, os.WTERMSIG(message.status)) if os.WIFSIGNALED(message.status) else (
            os.WEXITSTATUS(message.status), None)  # fmt: skip
        how = ProcessExit(
            code=code,
            signal=number,
            limits=self._limits_met(before, message),
            cpu_s=message.cpu_s,
            peak_bytes=message.peak_bytes,
        )
        # Only now: had one of the numbers been none, `_settle` would still have to end it.
        del self._running[message.process]
        self._pids.pop(message.process, None)
        process.ended(how)

    def _limits_met(self, before: Counters, message: Exited) -> tuple[Limit, ...]:
        now = self.slot.group.counters()
        met = []
        if now.memory_kills > before.memory_kills:
            met.append(Limit.MEMORY)
        if now.process_refusals > before.process_refusals:
            met.append(Limit.PROCESSES)
        if message.scratch_free_bytes < _FULL_BYTES or message.scratch_free_inodes == 0:
            met.append(Limit.DISK)
        return tuple(met)

    def _settle(self) -> None:
        """Everything that was running or starting learns that the sandbox is gone. May be called twice."""
        reason = self._reason or self._cause()
        for answer in self._starting.values():
            if not answer.done():
                answer.set_exception(ChannelClosed(reason))
        for process, before in self._running.values():
            killed = self.slot.group.counters().memory_kills > before.memory_kills
            limits = (Limit.MEMORY,) if killed else ()
            process.ended(ProcessExit(code=None, lost=True, limits=limits, reason=reason))
        self._running.clear()
        self._dormant.close()
        if not self._gone.done():
            self._gone.set_result(reason)

    def _cause(self) -> str:
        if self._failed:
            return f"the sandbox's first process failed: {self._failed}"
        if self.slot.group.counters().memory_kills:
            return "out of memory: the sandbox itself was ended"
        return "the sandbox ended by itself"

    @property
    def _why_gone(self) -> str | None:
        if self._gone.done():
            return self._reason or self._gone.result()
        return self._reason or None


def _refusal(told: NotStarted) -> InvalidRequest | QuotaExceeded:
    error = told.error.encode(errors="replace").decode()
    if error.startswith("too many processes"):
        return QuotaExceeded(error, {"limit": Limit.PROCESSES})
    return InvalidRequest(error)
