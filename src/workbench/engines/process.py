"""The process engine: ordinary processes of the host's user, with nothing between them and the machine.

For development and for machines where nothing else works; used only when asked for by name. What a process says and
how it ends is handled as in every other engine; walls and limits there are none.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import workbench_guest
from workbench.contracts.engine import HeadStart, OverQuota, RunningProcess, SandboxDescription, SandboxSpec, Usage
from workbench.engines import proc
from workbench.engines.admission import check_alive, check_start
from workbench.engines.environment import SANDBOX_VARIABLE, base_environment, joined
from workbench.engines.options import EngineOptions
from workbench.engines.pidfd import exited
from workbench.engines.pipes import PipedProcess, Pipes
from workbench.engines.stopping import Stopper
from workbench.errors import Denied, InvalidRequest, QuotaExceeded, SandboxUnavailable
from workbench.guest_trees import remove_tree
from workbench.model.capability import Barrier, Capability, Grade
from workbench.model.ids import ProcessId
from workbench.model.image import Image
from workbench.model.process import Limit, ProcessExit, ProcessSpec
from workbench.model.tier import Tier, thread_variables
from workbench_guest.messages import CALLS_NAME, CALLS_VARIABLE, FILES, HOME

WARNING = (
    "this engine isolates nothing and limits nothing: code runs with all rights of the user that runs the host, "
    "and reaches its files, its network and its other processes"
)
FILES_VARIABLE, PACKAGES_VARIABLE = "WORKBENCH_FILES", "WORKBENCH_PACKAGES_FOLDER"
_GUEST = Path(workbench_guest.__file__).resolve().parent
# What ignores a kill for this long is stuck in the kernel, and no further signal will help.
_KILL_ROUNDS, _KILL_PAUSE_S = 250, 0.02
_FREEZE_S, _FREEZE_PAUSE_S = 0.5, 0.002
_CALLS_BACKLOG, _MOST_ANCESTORS = 128, 64
_BOOT = """\
import importlib, sys
root, entry, payload, *passed = sys.argv[1:]
sys.path.insert(0, root)
with open(int(payload), "rb") as file:
    payload = file.read()
sys.exit(importlib.import_module("workbench_guest.entries." + entry).main(payload, [int(one) for one in passed]))
"""

_log = logging.getLogger(__name__)


class ProcessEngine:
    """One per host."""

    name = "process"
    pooled = 0
    ahead = 0

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._image = options.image
        self._live: set[ProcessSandbox] = set()
        self._closed = False

    async def start(self) -> None:
        """As the contract says; nothing can be too weak for an engine that promises nothing."""
        _log.warning("the process engine was asked for: %s", WARNING)
        _pass_on_no_ignored_signals()
        self._options.files_root.mkdir(parents=True, exist_ok=True)
        self._options.run_dir.mkdir(parents=True, exist_ok=True)

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """None, one by one."""
        return tuple(Capability(barrier=barrier, grade=Grade.ABSENT, by="nothing") for barrier in Barrier)

    async def change_image(self, image: Image) -> None:
        """As the contract says."""
        self._image = image

    async def create(self, spec: SandboxSpec) -> ProcessSandbox:
        """As the contract says."""
        spec.checked()
        if spec.files.parent != self._options.files_root or not spec.files.is_dir():
            raise InvalidRequest(f"not a folder of {self._options.files_root}: {spec.files}")
        if self._closed:
            raise SandboxUnavailable("the engine is closed", {"step": "make its folder"})
        try:
            folder = Path(tempfile.mkdtemp(prefix="sandbox-", dir=self._options.run_dir))
            for name in ("home", "tmp"):
                (folder / name).mkdir()
        except OSError as problem:
            raise SandboxUnavailable(f"no folder for the sandbox: {problem}", {"step": "make its folder"}) from problem
        sandbox = ProcessSandbox(spec, folder, self._image, self._live.discard)
        self._live.add(sandbox)
        return sandbox

    async def aclose(self) -> None:
        """As the contract says."""
        self._closed = True
        await asyncio.gather(*(sandbox.aclose() for sandbox in list(self._live)))


class ProcessSandbox:
    """A folder, and processes that carry the sandbox's id in their environment."""

    def __init__(
        self, spec: SandboxSpec, folder: Path, image: Image, on_gone: Callable[[ProcessSandbox], None]
    ) -> None:
        self._spec = spec
        self._tier = spec.tier
        self._folder = folder
        self._image = image
        self._on_gone = on_gone
        self._running: dict[str, int] = {}
        self._unread: list[PipedProcess] = []
        self._followers: set[asyncio.Task[None]] = set()
        self._gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._closing: asyncio.Task[None] | None = None
        self._peak = 0
        self._spent_by_ended = 0.0
        self._calls_name = f"{CALLS_NAME}-{secrets.token_hex(16)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(f"\0{self._calls_name}")
            listening.listen(_CALLS_BACKLOG)
            self.calls = listening.detach()
            """as the contract says; anybody of the machine may connect, and `started_as` tells"""
        self._stopper = Stopper(lambda: proc.with_variable(self._marker))
        self._frozen = False
        self._thaws = 0
        """how often somebody needed it"""

    @property
    def description(self) -> SandboxDescription:
        """As the contract says."""
        return SandboxDescription(
            id=self._spec.id,
            engine=ProcessEngine.name,
            tier=self._tier.name,
            isolated=False,
            limits_by="nothing",
            warning=WARNING,
        )

    def started_as(self, pid: int) -> ProcessId | None:
        """As the contract says."""
        if not proc.has_variable(pid, self._marker, os.geteuid()):
            raise Denied(f"process {pid} is none of sandbox {self._spec.id}")
        started = {known: ProcessId(name) for name, known in self._running.items()}
        for _ in range(_MOST_ANCESTORS):
            if pid in started:
                return started[pid]
            if (above := proc.parent(pid)) is None:
                break
            pid = above
        return None

    async def start(self, spec: ProcessSpec, passed: Sequence[int] = ()) -> PipedProcess:
        """As the contract says. Never waits: between the spawn and the scope that reaps it nothing can come."""
        check_start(spec, self._spec.id, self._why_gone, self._running)
        await self.thaw()
        if spec.snapshot is not None:
            raise InvalidRequest("the process engine has no snapshots", {"snapshot": spec.snapshot})
        pipes = Pipes(stdin=spec.stdin)
        try:
            pid = self._spawn(spec, pipes, passed)
        except BaseException:
            pipes.close()
            raise
        pipes.close_far()
        process = PipedProcess(pipes, lambda number: _signal_group(pid, number))
        self._running[spec.id] = pid
        self._unread = [*(other for other in self._unread if other.pipes.is_open), process]
        follower = asyncio.create_task(self._follow(spec, process, pid), name=f"follow {spec.id}")
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)
        return process

    def _spawn(self, spec: ProcessSpec, pipes: Pipes, passed: Sequence[int]) -> int:
        cwd = self._outside(spec.cwd)
        if not cwd.is_dir():
            raise InvalidRequest(f"no such working folder: {spec.cwd}")
        if spec.entry is None:
            return _executed(spec.argv, self._environment(spec), cwd, pipes)
        if not spec.entry.isidentifier() or not (_GUEST / "entries" / f"{spec.entry}.py").is_file():
            raise InvalidRequest(f"no such entry in the guest: {spec.entry}")
        payload = os.memfd_create("payload", os.MFD_CLOEXEC)
        try:
            os.write(payload, spec.payload)
            os.lseek(payload, 0, os.SEEK_SET)
            numbers = (str(descriptor) for descriptor in (payload, *passed))
            boot = (self._image.python, "-I", "-B", "-c", _BOOT, str(_GUEST.parent), spec.entry, *numbers)
            return _executed(boot, self._environment(spec), cwd, pipes, payload, *passed)
        finally:
            os.close(payload)

    def _outside(self, path: str) -> Path:
        """Where on this machine the folders are that every sandbox has."""
        for inside, outside in ((HOME, self._folder / "home"), (FILES, self._spec.files)):
            if path == inside or path.startswith(inside + "/"):
                return outside / path[len(inside) :].lstrip("/")
        return Path("/", path)

    def _environment(self, spec: ProcessSpec) -> dict[str, str]:
        home, scratch = str(self._folder / "home"), str(self._folder / "tmp")
        vcpus = min(self._tier.vcpus, len(os.sched_getaffinity(0)))
        packages = str(self._spec.packages or "")
        base = base_environment(
            self._image, home=home, scratch=scratch, guest_root=str(_GUEST.parent), packages=packages
        )
        base |= {
            **thread_variables(vcpus),
            FILES_VARIABLE: str(self._spec.files),
            PACKAGES_VARIABLE: packages,
            CALLS_VARIABLE: f"@{self._calls_name}",
        }
        return {
            **joined(joined(base, self._spec.env), spec.env),
            # Last: what carries it is found by it and ended.
            SANDBOX_VARIABLE: self._spec.id,
        }

    async def _follow(self, spec: ProcessSpec, process: PipedProcess, pid: int) -> None:
        pidfd = os.pidfd_open(pid)
        try:
            await exited(pidfd, within_s=None)
        finally:
            os.close(pidfd)
        status, used = _reaped(pid)
        self._running.pop(spec.id, None)
        cpu_s = used.ru_utime + used.ru_stime
        self._spent_by_ended += cpu_s
        how = ProcessExit(
            code=None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            cpu_s=cpu_s,
            peak_bytes=used.ru_maxrss * 1024,
        )
        if self._closing is not None and how.signal == signal.SIGKILL:
            how = ProcessExit(code=None, lost=True, reason="closed", cpu_s=cpu_s, peak_bytes=how.peak_bytes)
        process.ended(how)

    async def change_tier(self, tier: Tier) -> None:
        """As the contract says: a name, and the variables of what starts from now on."""
        check_alive(self._spec.id, self._why_gone)
        self._tier = tier

    async def usage(self) -> Usage:
        """As the contract says."""
        check_alive(self._spec.id, self._why_gone)
        pids = proc.with_variable(self._marker)
        used = sum(proc.memory(pid).proportional_bytes for pid in pids)
        self._peak = max(self._peak, used)
        return Usage(
            memory_bytes=used,
            peak_memory_bytes=self._peak,
            cpu_s=self._spent_by_ended + sum(proc.cpu_seconds(pid) for pid in pids),
            processes=sum(proc.threads(pid) for pid in pids),
        )

    async def over_quota(self) -> OverQuota | None:
        """As the contract says. Nobody measures files here."""
        return None

    async def wait_over_quota(self) -> OverQuota:
        """As the contract says: never."""
        never: asyncio.Future[OverQuota] = asyncio.get_running_loop().create_future()
        return await never

    async def processes(self) -> tuple[RunningProcess, ...]:
        """As the contract says; inside is outside here."""
        check_alive(self._spec.id, self._why_gone)
        started = {pid: ProcessId(name) for name, pid in self._running.items()}
        found = [
            RunningProcess(
                pid=pid,
                group=proc.group(pid),
                parent=proc.parent(pid) or 0,
                started_as=started.get(pid),
                command=proc.command(pid),
                for_s=proc.age_s(pid),
                memory_bytes=proc.resident_bytes(pid),
            )
            for pid in proc.with_variable(self._marker)
        ]
        return tuple(sorted(found, key=lambda one: -one.for_s))

    def take_head_start(self) -> HeadStart | None:
        """Nothing is kept ready."""
        return None

    @property
    def snapshots(self) -> frozenset[str]:
        """None: there is no pid 1 to keep them."""
        return frozenset()

    def expect(self, snapshot: str) -> None:
        """Nothing."""

    async def snapshot_offered(self, snapshot: str, within_s: float) -> bool:  # noqa: ARG002
        """Never."""
        return False

    async def resident_bytes(self) -> int:
        """As the contract says."""
        return sum(proc.resident_bytes(pid) for pid in self._running.values())

    async def let_go_first(self, snapshot: str) -> None:
        """Nothing."""

    async def discard(self, snapshot: str) -> None:
        """Nothing."""

    async def sweep(self, newer_than_s: float) -> int:  # noqa: ARG002
        """None: whose a process is cannot be told here."""
        return 0

    @property
    def frozen(self) -> bool:
        """As the contract says."""
        return self._frozen and self._closing is None

    async def freeze(self) -> bool:
        """As the contract says. Who thaws it or starts something meanwhile comes first."""
        check_alive(self._spec.id, self._why_gone)
        if self._frozen:
            return True
        until, thaws = time.monotonic() + _FREEZE_S, self._thaws
        try:
            while not self._stopper.stop():
                await asyncio.sleep(_FREEZE_PAUSE_S)
                check_alive(self._spec.id, self._why_gone)
                if self._thaws != thaws or time.monotonic() > until:
                    return False
            self._frozen = True
        finally:
            if not self._frozen:
                self._stopper.go_on()
        return True

    async def thaw(self) -> None:
        """As the contract says. Never waits: what its caller starts next comes before any look of a freeze."""
        self._thaws += 1
        self._frozen = False
        self._stopper.go_on()

    async def wait_gone(self) -> str:
        """As the contract says."""
        return await asyncio.shield(self._gone)

    async def aclose(self) -> None:
        """As the contract says."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._spec.id}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for _ in range(_KILL_ROUNDS):
            # Again until none is found: what is killed may just have forked.
            if not self._kill_all():
                break
            await asyncio.sleep(_KILL_PAUSE_S)
        else:
            _log.error("processes of sandbox %s cannot be ended", self._spec.id)
        if self._followers:
            await asyncio.wait(self._followers, timeout=_KILL_ROUNDS * _KILL_PAUSE_S)
        for process in self._unread:
            process.pipes.keep_unread()
        if not await asyncio.to_thread(remove_tree, self._folder):
            _log.error("the folder of sandbox %s cannot be removed: %s", self._spec.id, self._folder)
        os.close(self.calls)
        if not self._gone.done():
            self._gone.set_result("closed")
        self._on_gone(self)

    @property
    def _marker(self) -> bytes:
        return f"{SANDBOX_VARIABLE}={self._spec.id}".encode()

    def _kill_all(self) -> bool:
        """Whether there was anyone left. Daemons are found by the variable, unless they cleared it."""
        for leader in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader, signal.SIGKILL)
        return proc.kill_marked(self._marker) > 0

    @property
    def _why_gone(self) -> str | None:
        return "closed" if self._closing is not None else None


def _executed(argv: tuple[str, ...], env: dict[str, str], cwd: Path, pipes: Pipes, *passed: int) -> int:
    stdin, stdout, stderr = pipes.far
    try:
        child = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, pass_fds=passed,
                                 start_new_session=True)  # fmt: skip
    except OSError as problem:
        if problem.errno in (errno.EAGAIN, errno.ENOMEM):
            raise QuotaExceeded(f"no more processes here: {problem}", {"limit": Limit.PROCESSES}) from None
        if problem.errno == errno.ENOENT:
            raise InvalidRequest(f"no such program: {argv[0]}") from None
        raise InvalidRequest(str(problem)) from None
    # Reaped by its follower; Popen must not wait for it a second time.
    child.returncode = 0
    return child.pid


def _reaped(pid: int) -> tuple[int, resource.struct_rusage]:
    _, status, used = os.wait4(pid, os.WNOHANG)
    return status, used


def _pass_on_no_ignored_signals() -> None:
    """A shell starts background jobs with interrupts ignored, and programs inherit that; a handler they do not."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


async def _signal_group(pid: int, number: int) -> None:
    # Its number is still its own: it is reaped in one go with telling that it ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
