"""Starts Jupyter kernels in sandboxes: listening sockets of ours are passed in, so the guest never names a path."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zmq

from workbench.contracts.engine import Ahead, HeadStart, Process, Sandbox
from workbench.contracts.kernel import Carried, KernelStart, Turn, process_of
from workbench.errors import InvalidRequest, KernelUnavailable
from workbench.kernels.jupyter import JupyterKernel, Sockets
from workbench.kernels.last_words import LastWords
from workbench.kernels.needs import check_needs
from workbench.kernels.packing import pack
from workbench.kernels.program_words import ProgramWords
from workbench.kernels.relay import Relay
from workbench.model.ids import KernelId, SandboxId
from workbench.model.process import ProcessSpec
from workbench.model.runtime import Runtime
from workbench_guest.kernel.flight_recorder import TOTAL_BYTES

_KEEPER = "program_kernel"
_CHANNELS = ("shell", "stdin", "control", "iopub")
_BACKLOG = 8
# A fork of a warm interpreter is up in milliseconds; a cold one, on the engine that isolates nothing, in seconds.
_READY_TIMEOUT_S = 60.0
# One that is up already answers in milliseconds; whatever is wrong with it, another one is started then.
_WAITING_TIMEOUT_S = 5.0
# A pipe for what libraries and children print; the default would stop them at 64 KiB until we have read it.
_PIPE_BYTES = 1024 * 1024
_SET_PIPE_SIZE = 1031


class JupyterLauncher:
    """One per host; `folder` is the host's alone, and goes with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 65535)
        self._doors: dict[tuple[SandboxId, KernelId], Relay] = {}
        # However deep the folder lies, a socket below it has a short name.
        self._reach = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    async def start(self, sandbox: Sandbox, start: KernelStart) -> JupyterKernel:
        """As the contract says."""
        check_needs(start.runtime, isolated=sandbox.description.isolated)
        kernel = await self._start_waiting(sandbox, start)
        if kernel is None:
            name = f"{sandbox.description.id}.{start.id}.{start.generation}"
            parts = self._make_parts(name, shared=start.runtime.forked)
            kernel = await self._start(sandbox, start, parts, _READY_TIMEOUT_S)
        key_of_door = (sandbox.description.id, start.id)
        if (relay := self._doors.get(key_of_door)) is not None:
            kernel.plug_into(relay)
        return kernel

    async def _start_waiting(self, sandbox: Sandbox, start: KernelStart) -> JupyterKernel | None:
        """The one whose program is up in the sandbox already; None if there is none, or it is none any more."""
        taken = sandbox.take_head_start()
        if taken is None:
            return None
        waiting = taken.made
        if not isinstance(waiting, _Waiting) or waiting.runtime != start.runtime:
            taken.close()
            return None
        with contextlib.suppress(KernelUnavailable):
            return await self._start(sandbox, start, waiting.parts, _WAITING_TIMEOUT_S, waiting.name)
        return None

    async def _start(
        self, sandbox: Sandbox, start: KernelStart, parts: _Parts, within_s: float, name: str | None = None
    ) -> JupyterKernel:
        """`name` is the one by which a program that waits knows itself. The parts are used up."""
        try:
            if start.runtime.forked:
                process = await _started(sandbox, _forked(sandbox, start, parts.key), parts.passed)
                words = LastWords(process, parts.readers, parts.memory)
            else:
                process = await _started(sandbox, _kept(start, parts.key, name), parts.passed_to_keeper)
                words = ProgramWords(process, parts.readers)
            parts.close_far()
            open_door = functools.partial(self._open_door, (sandbox.description.id, start.id))
            sockets = Sockets(self._context, parts.short, parts.place)
            kernel = JupyterKernel(process, sockets, words, parts.key, open_door, start.runtime)
            parts.kept = True
        finally:
            parts.close()
        await self._until_ready(kernel, process, within_s)
        return kernel

    def _make_parts(self, name: str, *, shared: bool) -> _Parts:
        place = self._folder / name
        place.mkdir(mode=0o700)
        return _Parts(place, f"/proc/self/fd/{self._reach}/{name}", shared=shared)

    def ahead(self, runtime: Runtime) -> Ahead | None:
        """As the contract says."""
        if not runtime.pooled or runtime.forked:
            return None
        try:
            check_needs(runtime, isolated=True)
        except KernelUnavailable:
            return None
        return _Ahead(self, runtime)

    def begin_ahead(self, runtime: Runtime) -> HeadStart:
        """A kernel of it, without a sandbox or a session."""
        name = f"ahead-{secrets.token_hex(8)}"
        parts = self._make_parts(name, shared=False)
        return HeadStart(
            entry=_KEEPER,
            payload=_order(runtime, parts.key, name, ""),
            env=dict(runtime.env),
            passed=tuple(parts.passed_to_keeper[len(_CHANNELS) :]),
            close=parts.close,
            made=_Waiting(runtime, name, parts),
        )

    async def pack(self, sandbox: Sandbox, snapshot: str, path: str) -> Carried:
        """As the contract says."""
        return await pack(sandbox, snapshot, path)

    def _open_door(self, key: tuple[SandboxId, KernelId], turn: Turn) -> Relay:
        relay = Relay(self._context, self._folder / f"{key[0]}.{key[1]}", turn)
        self._doors[key] = relay
        return relay

    def forget(self, sandbox: SandboxId, kernel: KernelId | None = None) -> None:
        """As the contract says."""
        for key in [key for key in self._doors if key[0] == sandbox and kernel in (None, key[1])]:
            self._doors.pop(key).close()
            shutil.rmtree(self._folder / f"{key[0]}.{key[1]}", ignore_errors=True)

    async def _until_ready(self, kernel: JupyterKernel, process: Process, within_s: float) -> None:
        ready = False
        try:
            async with asyncio.timeout(within_s):
                ready = await kernel.ready()
                if not ready:
                    raise KernelUnavailable(f"the kernel ended while it started: {await _why(kernel, process)}")
        except TimeoutError:
            raise KernelUnavailable(f"the kernel did not come up in {within_s:.0f} s") from None
        finally:
            # Whatever came between, a wish to give up as well: nobody else knows of it yet.
            if not ready:
                await asyncio.shield(kernel.aclose())

    async def aclose(self) -> None:
        """As the contract says."""
        for sandbox, _ in list(self._doors):
            self.forget(sandbox)
        os.close(self._reach)
        await asyncio.to_thread(self._context.destroy, 0)
        shutil.rmtree(self._folder, ignore_errors=True)


class _Parts:
    """What is made for one kernel: its key, four listening sockets, two pipes, memory for the last words if it is
    `shared`.
    """

    def __init__(self, place: Path, short: str, *, shared: bool) -> None:
        self.kept = False
        self.key = secrets.token_hex(16)
        self.place = place
        self.short = short
        self._far: list[int] = []
        self.passed: list[int] = []
        self.readers: list[int] = []
        self.memory = 0
        try:
            for name in _CHANNELS:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as listening:
                    listening.bind(f"{short}/{name}")
                    listening.listen(_BACKLOG)
                    self._far.append(listening.detach())
            self.passed = [*self._far]
            for _ in ("stdout", "stderr"):
                reader, writer = os.pipe2(os.O_CLOEXEC)
                self.readers.append(reader)
                self._far.append(writer)
                self.passed += [reader, writer]
                with contextlib.suppress(OSError):
                    _widen(reader)
            if shared:
                self.memory = os.memfd_create("last words", os.MFD_CLOEXEC)
                self.passed.append(self.memory)
                os.ftruncate(self.memory, TOTAL_BYTES)
        except BaseException:
            self.close()
            raise

    @property
    def passed_to_keeper(self) -> list[int]:
        """The sockets, and the writing ends alone: the host reads what a program prints."""
        return [*self._far]

    def close_far(self) -> None:
        """What only the guest has from now on."""
        while self._far:
            os.close(self._far.pop())

    def close(self) -> None:
        """Everything, unless a kernel keeps it."""
        self.close_far()
        if not self.kept:
            for descriptor in (*self.readers, *filter(None, (self.memory,))):
                os.close(descriptor)
            self.readers, self.memory = [], 0
            shutil.rmtree(self.place, ignore_errors=True)


class _Waiting(NamedTuple):
    """A kernel whose program is up in a sandbox that nobody has."""

    runtime: Runtime
    name: str
    parts: _Parts


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Equal for equal runtimes."""

    launcher: JupyterLauncher
    runtime: Runtime

    def begin(self) -> HeadStart:
        """As the contract says."""
        return self.launcher.begin_ahead(self.runtime)


def _forked(sandbox: Sandbox, start: KernelStart, key: str) -> ProcessSpec:
    return ProcessSpec(
        id=process_of(start.id, start.generation),
        entry="kernel",
        payload=msgspec.json.encode({"key": key, "working_folder": start.working_folder}),
        may_snapshot=sandbox.description.snapshots,
        snapshot=start.snapshot,
    )


def _kept(start: KernelStart, key: str, name: str | None) -> ProcessSpec:
    return ProcessSpec(
        id=process_of(start.id, start.generation),
        entry=_KEEPER,
        payload=_order(start.runtime, key, name or start.id, start.working_folder),
        env=dict(start.runtime.env),
    )


def _order(runtime: Runtime, key: str, name: str, working_folder: str) -> bytes:
    order = {
        "key": key,
        "working_folder": working_folder,
        "kernel": name,
        "name": runtime.kernelspec,
        "argv": runtime.argv,
        "read_at_start": runtime.read_at_start,
    }
    return msgspec.json.encode(order)


async def _started(sandbox: Sandbox, spec: ProcessSpec, passed: list[int]) -> Process:
    try:
        return await sandbox.start(spec, passed)
    except InvalidRequest as problem:
        # What we ask for is right; so something has happened to who was to become it.
        what = "the snapshot" if spec.snapshot is not None else "the waiting interpreter"
        raise KernelUnavailable(f"{what} cannot be used: {problem.message}") from problem


async def _why(kernel: JupyterKernel, process: Process) -> str:
    end = await process.wait()
    how = end.reason or (f"signal {end.signal}" if end.signal else f"exit code {end.code}")
    limits = "".join(f"; {limit.value}" for limit in end.limits)
    return f"{how}{limits}{await kernel.last_said()}"


def _widen(pipe: int) -> None:
    fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
