"""One sandbox of the soak, with as many kernels as are branched off in it, and what is known of it from outside."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.hosts import until
from bench.soak.session import BOUND_S, Hang
from bench.soak.state.model import RAN, START_UP
from bench.soak.state.processes import Processes
from bench.soak.tally import SESSIONS, Tally
from workbench.errors import SandboxUnavailable
from workbench.host_client.connection import HostConnection
from workbench.model.ids import CellId, new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels
from workbench.wire.values import Value

if TYPE_CHECKING:
    from bench.soak.state.kernel import StateKernel

# Interpreters that pid 1 keeps ready: one that can be anything, one for a kernel.
_SPARES = 2
# For what was ended to be gone.
_GONE_S = 20.0
_TRIES = 5

A = TypeVar("A", bound=Value)


class Fault(Exception):
    """An answer that cannot be right; the rest of its place is not looked at."""


class Place:
    """Opened and closed by a lane."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[HostConnection]],
        files: Path,
        tally: Tally,
        seed: str,
    ) -> None:
        self._connect = connect
        self._files = files
        self._connection: HostConnection | None = None
        self._names = itertools.count(1)
        self.tally = tally
        self.seed = seed
        self.luck = random.Random(seed)
        self.sandbox = new_sandbox_id()
        self.has_start_up = self.luck.random() < 0.3
        self.is_rough = self.luck.random() < 0.4
        """processes of it are killed at random: what is lost is not known before it is told"""
        self.is_doomed = False
        """it was killed as a whole, or is about to be"""
        self.is_over = False
        self.processes: Processes | None = None
        self.kernels: list[StateKernel] = []
        self.sent: set[CellId] = set()
        self.finished: set[CellId] = set()
        self.never_began: set[CellId] = set()

    async def open(self) -> None:
        """A sandbox. A zygote that is killed meanwhile may cost a try."""
        for attempt in range(_TRIES):
            try:
                await self.ask(wire.CreateSandbox(sandbox=self.sandbox, kernel=True), wire.SandboxReport)
                break
            except SandboxUnavailable:
                if attempt == _TRIES - 1:
                    raise
                self.tally.done["sandboxes asked for again"] += 1
        self.tally.done[SESSIONS] += 1

    async def start(self, kernel: str, epoch: int) -> kernels.KernelReport:
        """Its first kernel."""
        start_up = START_UP if self.has_start_up else ""
        request = kernels.StartKernel(sandbox=self.sandbox, kernel=kernel, epoch=epoch, start_up=start_up)
        return await self.ask(request, kernels.KernelReport)

    def new_name(self) -> str:
        """For a branch."""
        return f"b{next(self._names)}"

    async def ask(self, request: wire.AnyRequest, answer: type[A]) -> A:
        """Within bounds."""
        try:
            async with asyncio.timeout(BOUND_S):
                if self._connection is None:
                    self._connection = await self._connect()
                return await self._connection.ask(request, answer)
        except TimeoutError:
            raise Hang(f"{self.seed}: {type(request).__name__} took longer than {BOUND_S:g} s: {request}") from None

    async def see(self, namespace: int) -> Processes:
        """From outside; the same after the first look."""
        if self.processes is None:
            self.processes = await asyncio.to_thread(Processes, namespace)
        return self.processes

    def check_what_ran(self) -> None:
        """No cell ran twice; each that ended ran once, and none that was refused."""
        path = next(self._files.glob(f"*{self.sandbox}")) / RAN
        ran = Counter(path.read_text().split()) if path.exists() else Counter()
        faults = [f"{cell} ran {times} times" for cell, times in ran.items() if times > 1]
        faults += [f"{cell} ran, and nobody has sent it" for cell in ran if cell not in self.sent]
        faults += [f"{cell} ended, and never ran" for cell in self.finished if cell not in ran]
        faults += [f"{cell} ran, and was told not to have begun" for cell in self.never_began if cell in ran]
        if faults:
            raise Fault(f"{self.seed} {self.sandbox}: {'; '.join(faults)}")

    async def check_what_is_left(self) -> None:
        """After all kernels have ended: no snapshot and no kernel."""
        processes = self.processes
        if processes is None or self.is_doomed or self.is_over:
            return
        try:
            await until(lambda: processes.count() <= _SPARES, _GONE_S)
        except TimeoutError:
            raise Fault(f"{self.seed} {self.sandbox}: processes are left: {processes.told()}") from None

    async def close(self) -> None:
        """May be called twice."""
        try:
            await self.ask(wire.CloseSandbox(sandbox=self.sandbox), wire.Done)
        finally:
            if self._connection is not None:
                await self._connection.aclose()
                self._connection = None
