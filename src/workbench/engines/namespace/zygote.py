"""A zygote as the host sees it: started with nothing of ours, asked for clones, ended when it has served its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Protocol

import workbench_guest
from workbench.engines.namespace.channel import ChannelClosed, HostChannel
from workbench.engines.namespace.view import zygote_plan
from workbench.errors import IsolationTooWeak, SandboxUnavailable
from workbench.model.image import Image
from workbench_guest.messages import Done, Failed, Grow, Message, ZygotePlan, ZygoteReady

# Importing pandas and matplotlib on a cold disk or an emulated machine takes this long at the very worst.
START_TIMEOUT_S = 180.0
REQUEST_TIMEOUT_S = 20.0
_STOP_TIMEOUT_S = 5.0
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from workbench_guest.zygote import main; main()"


class _Process(Protocol):
    """What a zygote runs in: one that we executed, or a copy of that."""

    pid: int

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Zygote:
    """Owned by the engine. `alive` turns false for good when the process is gone."""

    def __init__(self, image: Image, process: _Process, channel: HostChannel, ready: ZygoteReady) -> None:
        self.image = image
        self._process = process
        self._channel = channel
        self._one_at_a_time = asyncio.Lock()
        self.started = time.monotonic()
        self.clones = 0
        self.resident_bytes = ready.resident_bytes
        self.grown_from: Zygote | None = None
        """the one that this is a copy of; slots of both have their mounts in the same place"""
        self.alive = True

    @property
    def pid(self) -> int:
        """On the host."""
        return self._process.pid

    @classmethod
    async def start(
        cls, image: Image, *, staging: Path, files_root: Path, packages_root: Path, userns: int | None
    ) -> Zygote:
        """Start one and wait until it is warm.

        Raises:
            IsolationTooWeak: it could not be; `context["step"]` says where.
        """
        channel, theirs = HostChannel.pair()
        try:
            process = _spawn(image, theirs.fileno(), userns)
        except OSError as problem:
            channel.close()
            raise _too_weak("execute the image's interpreter", str(problem)) from problem
        finally:
            theirs.close()
        try:
            plan = zygote_plan(image, staging=staging, files_root=files_root, packages_root=packages_root)
            answer = await _warm(channel, plan)
        except BaseException:
            _end(process)
            channel.close()
            raise
        return cls(image, process, channel, answer)

    async def grow(self, modules: tuple[str, ...]) -> Zygote:
        """A second one that has imported these as well: a copy, which shares all that this one has in memory, and
        makes slots as this one does. It is as old as this one, as its clones have the same layout.

        Raises:
            SandboxUnavailable: it could not be; `context["step"]` says where.
        """
        channel, theirs = HostChannel.pair()
        try:
            with theirs:
                done = await self.ask(Grow(modules=modules), (theirs.fileno(),))
            assert done.pid is not None
            process = _Copy(done.pid)
        except BaseException:
            channel.close()
            raise
        try:
            answer = await _ready(channel, modules)
        except BaseException as problem:
            _end(process)
            channel.close()
            if isinstance(problem, IsolationTooWeak):
                raise SandboxUnavailable(problem.message, problem.context) from problem
            raise
        grown = Zygote(self.image, process, channel, answer)
        grown.started, grown.grown_from = self.started, self
        return grown

    async def ask(self, request: Message, descriptors: tuple[int, ...] = ()) -> Done:
        """One request. A caller that is cancelled still waits for the answer, or the next one would be given it.

        Raises:
            SandboxUnavailable: it failed, or the zygote is gone.
        """
        exchange = asyncio.ensure_future(self._exchange(request, descriptors))
        try:
            return await asyncio.shield(exchange)
        except asyncio.CancelledError:
            await asyncio.wait([exchange])
            raise

    async def _exchange(self, request: Message, descriptors: tuple[int, ...]) -> Done:
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
                    await self._channel.send(request, descriptors)
                    answer, _ = await self._channel.receive()
            except (TimeoutError, ChannelClosed) as problem:
                self.end()
                raise SandboxUnavailable("the zygote is gone; another one is started", {"step": "zygote"}) from problem
            finally:
                if not self.alive:
                    self._channel.close()
        if isinstance(answer, Failed):
            raise SandboxUnavailable(f"{answer.step}: {answer.error}", {"step": answer.step})
        assert isinstance(answer, Done)
        return answer

    def end(self) -> None:
        """Kill it; what it made lives on. May be called twice."""
        if self.alive:
            self.alive = False
            _end(self._process)
            # Who waits for an answer sees the end of the channel, and closes it.
            if not self._one_at_a_time.locked():
                self._channel.close()

    def check(self) -> bool:
        """Whether it still runs."""
        if self.alive and self._process.poll() is not None:
            self.end()
        return self.alive


class _Copy:
    """A process that another started, and whose parent we are nevertheless."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Reaps it once it has ended."""
        if self._code is None and select.select([self._pidfd], [], [], 0)[0]:
            self._reap()
        return self._code

    def kill(self) -> None:
        """At once; nothing happens when it has ended."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """As of one that we started."""
        if self._code is None:
            if not select.select([self._pidfd], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"zygote {self.pid}", timeout or 0.0)
            self._reap()
        assert self._code is not None
        return self._code

    def _reap(self) -> None:
        status = 0
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        os.close(self._pidfd)


async def _warm(channel: HostChannel, plan: ZygotePlan) -> ZygoteReady:
    return await _ready(channel, plan.preload, plan)


async def _ready(channel: HostChannel, imported: tuple[str, ...], plan: ZygotePlan | None = None) -> ZygoteReady:
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            if plan is not None:
                await channel.send(plan)
            answer, _ = await channel.receive()
    except (TimeoutError, ChannelClosed) as problem:
        raise _too_weak("start the zygote", str(problem) or "no answer in time") from problem
    if not isinstance(answer, ZygoteReady):
        step, error = (answer.step, answer.error) if isinstance(answer, Failed) else ("start", repr(answer))
        raise _too_weak(step, error)
    if answer.threads != 1:
        # A fork takes one thread along, and whatever lock another one held stays locked for ever.
        names = ", ".join(imported) or "nothing"
        raise _too_weak(
            "import the image's libraries",
            f"{answer.threads} threads run where there must be one; one of the image's preload starts them: {names}",
        )
    return answer


def _spawn(image: Image, control: int, userns: int | None) -> subprocess.Popen[bytes]:
    """BARRIER: executed, not forked, with an environment of our making: nothing of the host's memory or variables can
    be found in a sandbox; held by tests/security/test_no_inheritance.py."""
    guest_root = str(Path(workbench_guest.__file__).resolve().parent.parent)
    descriptors = [control] if userns is None else [control, userns]
    return subprocess.Popen(
        [image.python, "-I", "-B", "-c", _BOOT, guest_root, *map(str, descriptors)],
        env=_environment(image),
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _environment(image: Image) -> dict[str, str]:
    # One thread while importing: a fork takes only the calling thread along.
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # The allocator that pyarrow brings and does not use by default, and that pandas loads with it.
    single["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **single, **dict(image.env)}


def _too_weak(step: str, error: str) -> IsolationTooWeak:
    return IsolationTooWeak(
        f"the namespace engine cannot work here: {step}: {error}; `workbench doctor` says what to do",
        {"step": step, "error": error},
    )


def _end(process: _Process) -> None:
    process.kill()
    process.wait(_STOP_TIMEOUT_S)
