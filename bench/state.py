"""What it costs to keep a kernel's memory, and what it gives: after a loss, by an undo, by a branch; beside stock.

python -m bench.state [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

# The same way of counting memory as there.
from bench.kernel import _held_kib as held_kib
from bench.hosts import available_kib, host
from bench.sessions import KERNEL, LIMIT_S, Session, cpu_ms
from bench.stock import stock
from bench.table import Row, exit_code, keep, machine, p50, render
from workbench.host_client.connection import HostConnection
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.execution import CellResult, MemoryState, SnapshotState
from workbench.model.ids import new_cell_id, new_kernel_id, new_sandbox_id
from workbench.model.image import Image
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

# What an agent needs, at the least, to read an answer and send the next cell.
THINK_S = 0.1
TRIVIAL = "1 + 1"
LARGE_MB = 200
# Three cells of an ordinary session. Without snapshots they are what has to be run again.
SCRIPT = (
    "import numpy as np, pandas as pd",
    "df = pd.DataFrame({'key': np.arange(200_000) % 7, 'n': np.arange(200_000)})",
    "df['square'] = df.n ** 2; turn = 0",
)
STATE = "turn, int(df.square.iloc[-1])"
LAST_SQUARE = 199_999**2
_LARGE = f"import numpy as np, pandas as pd; df = pd.DataFrame({{'n': np.arange({LARGE_MB * 10**6 // 8})}}); turn = 0"
_LARGE_STATE = "turn, int(df.n.iloc[-1])"
_LAST_OF_LARGE = LARGE_MB * 10**6 // 8 - 1
# When it died, told by itself: the clock is the machine's, and the file outlives the kernel.
_STAMP = "import os, pathlib, time; pathlib.Path('/home/user/died').write_text(repr(time.monotonic()))"
_DIED = "float(pathlib.Path('/home/user/died').read_text())"
_SEGFAULT = f"import ctypes; {_STAMP}; ctypes.string_at(0)"
_EXIT = f"{_STAMP}; os._exit(1)"
# Deaf to interrupts, it writes the time down every half millisecond until it is killed.
_DEAF = """\
import mmap, pathlib, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
pathlib.Path('/home/user/died').write_bytes(b' ' * 64)
with open('/home/user/died', 'r+b') as file:
    memory = mmap.mmap(file.fileno(), 64)
while True:
    memory[:] = repr(time.monotonic()).encode().ljust(64)
    time.sleep(0.0005)
"""
_DEAF_LIMIT_S = 0.1
DEATHS = {"segfault": (_SEGFAULT, LIMIT_S), "os._exit": (_EXIT, LIMIT_S), "ignored interrupt": (_DEAF, _DEAF_LIMIT_S)}
_BARE_FORK = """\
import os, time
def bare_fork():
    began = time.perf_counter()
    if (child := os.fork()) == 0:
        os._exit(0)
    returned = time.perf_counter()
    os.waitpid(child, 0)
    return (returned - began) * 1000, (time.perf_counter() - began) * 1000
[bare_fork() for _ in range(15)]
"""
_KEPT_S = 10.0


class Kept(Session):
    """A session whose memory is kept, or, to compare with, is not."""

    @classmethod
    async def begin(cls, connection: HostConnection, *, snapshots: bool = True) -> Kept:
        """A new one, ready for cells."""
        sandbox = new_sandbox_id()
        await connection.ask(wire.CreateSandbox(sandbox=sandbox, kernel=True), wire.SandboxReport)
        start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, snapshots=snapshots)
        await connection.ask(start, kernels.KernelReport)
        return cls(connection, sandbox)

    async def ended(self, code: str, limit_s: float = LIMIT_S, kernel: str = KERNEL) -> CellResult:
        """One cell, however it ends."""
        request = kernels.RunCell(
            sandbox=self.sandbox, kernel=kernel, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=LIMIT_S
        )
        report = await self._connection.ask(request, kernels.CellReport)
        assert report.result is not None
        return report.result

    async def kept(self) -> SnapshotState:
        """Once there is a snapshot of the memory as it is, or has been declined."""
        deadline = time.monotonic() + _KEPT_S
        while time.monotonic() < deadline:
            ask = kernels.DescribeKernel(sandbox=self.sandbox, kernel=KERNEL)
            state = (await self._connection.ask(ask, kernels.KernelReport)).snapshots
            if state.current or state.reason != "not taken yet":
                return state
            await asyncio.sleep(0.01)
        raise TimeoutError("there is neither a snapshot nor a reason")

    async def until_kept(self, code: str) -> int:
        """Run a cell that may be run again until its memory is kept; how often it was declined."""
        declined = 0
        while True:
            await self.run(code)
            if (await self.kept()).current:
                return declined
            declined += 1
            # A dear one is taken again when ten times its time has passed.
            await asyncio.sleep(1.0)
            if declined > 10:
                raise AssertionError("no snapshot is taken here")

    async def undo(self) -> float:
        """Over one cell, in milliseconds."""
        began = time.perf_counter()
        await self._connection.ask(kernels.UndoCells(sandbox=self.sandbox, kernel=KERNEL), kernels.UndoReport)
        return (time.perf_counter() - began) * 1000

    async def branch(self, code: str) -> tuple[float, str]:
        """To a branch's first answer, in milliseconds; and the answer. The branch is ended."""
        name = new_kernel_id()
        began = time.perf_counter()
        request = kernels.BranchKernel(sandbox=self.sandbox, kernel=KERNEL, branch=name, epoch=1)
        await self._connection.ask(request, kernels.BranchReport)
        answer = (await self.ended(code, kernel=name)).results.text
        took = (time.perf_counter() - began) * 1000
        await self._connection.ask(kernels.EndKernel(sandbox=self.sandbox, kernel=name), wire.Done)
        return took, answer

    async def cpu_s(self) -> float:
        """Of the whole sandbox so far, ended processes too."""
        return (await self._connection.ask(wire.MeasureSandbox(sandbox=self.sandbox), wire.UsageReport)).cpu_s


def spread(samples: Sequence[float]) -> str:
    """As elsewhere, with the worst."""
    return f"{p50(samples):.1f} ms (min {min(samples):.1f}, max {max(samples):.1f}, n {len(samples)})"


# A loss


@dataclass(slots=True)
class Losses:
    """Milliseconds from a death to the next answer that has the state."""

    ours: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in DEATHS})
    stock: list[float] = field(default_factory=list)
    declined: int = 0


async def losses(settings: Settings, image: Image, n: int) -> Losses:
    """One session that dies in every way, again and again, and stock in between."""
    seen = Losses()
    async with host(settings) as connection:
        session = await Kept.begin(connection)
        for cell in SCRIPT:
            await session.run(cell)
        for turn in range(1, n + 1):
            for kind, samples in seen.ours.items():
                seen.declined += await session.until_kept(f"turn = {turn}")
                samples.append(await _die(session, kind, (turn, LAST_SQUARE)))
            seen.stock.append(await _stock_again(image))
        await session.close()
    return seen


async def _die(session: Kept, kind: str, right: tuple[int, int]) -> float:
    code, limit_s = DEATHS[kind]
    result = await session.ended(code, limit_s)
    answer = await session.value(f"import pathlib; ({STATE}, {_DIED})")
    now = time.monotonic()
    *state, died = ast.literal_eval(answer)
    if result.receipt.state is not MemoryState.RESTORED or tuple(state) != right:
        raise AssertionError(f"not restored: {answer} after {result}")
    return (now - died) * 1000


async def _stock_again(image: Image) -> float:
    """What is done without snapshots, by one who learns of the death at once: another kernel, all cells again."""
    began = time.perf_counter()
    async with stock(image) as kernel:
        for cell in SCRIPT:
            await kernel.run(cell)
        answer, _ = await kernel.run(STATE)
        took = (time.perf_counter() - began) * 1000
    if answer != str((0, LAST_SQUARE)):
        raise AssertionError(f"a wrong answer: {answer!r}")
    return took


# What every cell pays


@dataclass(slots=True)
class Cells:
    """Trivial cells in a session with snapshots and in one without."""

    after_thought: list[float] = field(default_factory=list)
    in_a_row: list[float] = field(default_factory=list)
    cpu_ms: float = 0.0
    host_ms: float = 0.0
    snapshots: int = 0
    """that there were after the cells with a thought between"""


async def cells(settings: Settings, n: int) -> tuple[Cells, Cells]:
    """Milliseconds and CPU, with and without snapshots, in turns of ten."""
    seen = Cells(), Cells()
    async with host(settings) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        sessions = [await Kept.begin(connection, snapshots=on) for on in (True, False)]
        for session in sessions:
            for _ in range(20):
                await session.run(TRIVIAL)
        for _ in range(n // 10):
            for session, samples in zip(sessions, seen, strict=True):
                await _with_thought(session, samples, status.pid)
            for session, samples in zip(sessions, seen, strict=True):
                await asyncio.sleep(THINK_S)
                samples.in_a_row += [await _timed(session) for _ in range(10)]
        for session in sessions:
            await session.close()
    return seen


async def _with_thought(session: Kept, samples: Cells, host_pid: int) -> None:
    await asyncio.sleep(THINK_S)
    cpu_s, host_cpu = await session.cpu_s(), cpu_ms(host_pid)
    for _ in range(10):
        samples.after_thought.append(await _timed(session))
        await asyncio.sleep(THINK_S)
        samples.snapshots += (await session.kept()).current
    samples.cpu_ms += (await session.cpu_s() - cpu_s) * 1000
    samples.host_ms += cpu_ms(host_pid) - host_cpu


async def _timed(session: Kept) -> float:
    began = time.perf_counter()
    await session.run(TRIVIAL)
    return (time.perf_counter() - began) * 1000


# Going back, and aside


@dataclass(slots=True)
class Moves:
    """With a large frame alive, in milliseconds."""

    fork: list[float] = field(default_factory=list)
    fork_and_end: list[float] = field(default_factory=list)
    undo: list[float] = field(default_factory=list)
    branch: list[float] = field(default_factory=list)
    declined: int = 0


async def moves(settings: Settings, n: int) -> Moves:
    """Undo and branch in turns, and bare forks of the same process around them."""
    seen = Moves()
    async with host(settings) as connection:
        session = await Kept.begin(connection)
        await session.until_kept(_LARGE)
        await _fork(session, seen)
        for turn in range(1, n + 1):
            seen.declined += await session.until_kept(f"turn = {turn}")
            seen.declined += await session.until_kept("turn = -1")
            seen.undo.append(await session.undo())
            _check(await session.value(_LARGE_STATE), turn)
            took, answer = await session.branch(_LARGE_STATE)
            _check(answer, turn)
            seen.branch.append(took)
        await _fork(session, seen)
        await session.close()
    return seen


async def _fork(session: Kept, seen: Moves) -> None:
    for returned, ended in ast.literal_eval(await session.value(_BARE_FORK)):
        seen.fork.append(returned)
        seen.fork_and_end.append(ended)


def _check(answer: str, turn: int) -> None:
    if answer != str((turn, _LAST_OF_LARGE)):
        raise AssertionError(f"a wrong answer: {answer!r}, not turn {turn}")


# Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Many sessions that wait, each after one cell and with its snapshot."""

    each_mib: float
    """what one more adds"""
    all_mib: float
    """with the host and what they share"""
    machine_mib: float
    """by what MemAvailable fell"""
    full_mib: float
    """what one adds when it has as many snapshots as are ever kept"""
    wrong: int
    """that had no snapshot, or did not answer with their own state afterwards"""


async def idle(settings: Settings, count: int) -> Idle:
    """Of all pages that the host, its zygote and its sandboxes hold, each counted once; as in the bench of kernels."""
    async with host(settings, pool_size=0) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        for _ in range(5):
            await (await _idle(connection, 0)).close()
        before, available = held_kib(status.pid), available_kib()
        sessions = [await _idle(connection, number) for number in range(count)]
        after, left = held_kib(status.pid), available_kib()
        kept = [await session.kept() for session in sessions]
        answers = [await session.value("mine") for session in sessions]
        wrong = sum(not state.current or answer != str(number) for number, (state, answer) in enumerate(zip(kept, answers, strict=True)))
        for session in sessions:
            await session.until_kept(TRIVIAL)
        full = held_kib(status.pid)
        await asyncio.gather(*(session.close() for session in sessions))
    return Idle(
        each_mib=(after - before) / 1024 / count,
        all_mib=after / 1024,
        machine_mib=(available - left) / 1024,
        full_mib=(full - before) / 1024 / count,
        wrong=wrong,
    )


async def _idle(connection: HostConnection, number: int) -> Kept:
    session = await Kept.begin(connection)
    await session.until_kept(f"mine = {number}\n1 + 1")
    return session
