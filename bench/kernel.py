"""What a session costs: to its first answer, with the libraries, in memory, per cell, in output; beside stock Jupyter.

python -m bench.kernel [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.command import main
from bench.hosts import host, until_pooled
from bench.sessions import Session, cpu_ms
from bench.soak.leaks import descendants
from bench.stock import stock
from bench.table import Row, p50, spread
from workbench.host_client.connection import HostConnection
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.image import Image
from workbench.settings import Settings
from workbench.wire import host as wire

FIRST = ("1 + 1", "2")
LIBRARIES = (
    "import numpy as np, pandas as pd, matplotlib.pyplot as plt\nint(pd.Series(np.arange(4)).sum())",
    "6",
)
TRIVIAL = "1 + 1"
OUTPUT_BYTES = 50_000_000
_MAKE_TEXT = f"text = '\\n'.join(f'{{number:09d}}' for number in range({OUTPUT_BYTES // 10}))"
_WARM_CELLS = 20


@dataclass(slots=True)
class Times:
    """Milliseconds of each way, taken in turns so that noise falls on all alike."""

    first: list[float] = field(default_factory=list)
    first_stock: list[float] = field(default_factory=list)
    first_impatient: list[float] = field(default_factory=list)
    pooled: list[float] = field(default_factory=list)
    unpooled: list[float] = field(default_factory=list)
    stock: list[float] = field(default_factory=list)


async def ours(connection: HostConnection, task: tuple[str, str]) -> float:
    """From asking for a session to the answer of its first cell."""
    code, right = task
    began = time.perf_counter()
    session = await Session.open(connection)
    answer = await session.value(code)
    took = (time.perf_counter() - began) * 1000
    await session.close()
    _check(answer, right)
    return took


async def theirs(image: Image, task: tuple[str, str]) -> float:
    """The same for stock."""
    code, right = task
    began = time.perf_counter()
    async with stock(image) as kernel:
        answer, _ = await kernel.run(code)
        took = (time.perf_counter() - began) * 1000
    _check(answer, right)
    return took


async def theirs_impatient(image: Image) -> float:
    """Stock with a client that does without `wait_for_ready`, of which 0.2 s are a look for stray messages."""
    began = time.perf_counter()
    async with stock(image, patient=False) as kernel:
        answer = await kernel.evaluate(FIRST[0])
        took = (time.perf_counter() - began) * 1000
    _check(answer, FIRST[1])
    return took


def _check(answer: str, right: str) -> None:
    if answer != right:
        raise AssertionError(f"a wrong answer: {answer!r}")


async def latency(settings: Settings, image: Image, n: int) -> Times:
    """New sessions, one at a time."""
    times = Times()
    async with host(settings, pool_size=2) as warm, host(settings, pool_size=0) as cold:
        turns: tuple[tuple[list[float], Callable[[], Awaitable[float]]], ...] = (
            (times.first, lambda: ours(warm, FIRST)),
            (times.first_stock, lambda: theirs(image, FIRST)),
            (times.pooled, lambda: ours(warm, LIBRARIES)),
            (times.unpooled, lambda: ours(cold, LIBRARIES)),
            (times.stock, lambda: theirs(image, LIBRARIES)),
            (times.first_impatient, lambda: theirs_impatient(image)),
        )
        for _ in range(n):
            for samples, take in turns:
                # The warm host fills its pool in the background; nothing is to be measured on top of that.
                await until_pooled(warm, settle_s=0.3)
                samples.append(await take())
    return times


async def at_once(settings: Settings, image: Image, count: int, rounds: int) -> tuple[list[float], list[float], int]:
    """Seconds until the last of `count` has the libraries, for ours and stock; and how many of ours never had."""
    mine: list[float] = []
    peer: list[float] = []
    failed = 0
    for _ in range(rounds):
        async with host(settings) as connection:
            await until_pooled(connection, settle_s=0.3)
            began = time.perf_counter()
            answers = await asyncio.gather(*(_usable(connection) for _ in range(count)), return_exceptions=True)
            mine.append(time.perf_counter() - began)
            failed += sum(isinstance(answer, BaseException) for answer in answers)
        async with AsyncExitStack() as all_of_them:
            began = time.perf_counter()
            await asyncio.gather(*(_stock_usable(image, all_of_them) for _ in range(count)))
            peer.append(time.perf_counter() - began)
    return mine, peer, failed


async def _usable(connection: HostConnection) -> None:
    """Left open, and ended with its host."""
    session = await Session.open(connection)
    _check(await session.value(LIBRARIES[0]), LIBRARIES[1])


async def _stock_usable(image: Image, until_all_are: AsyncExitStack) -> None:
    kernel = await until_all_are.enter_async_context(stock(image))
    answer, _ = await kernel.run(LIBRARIES[0])
    _check(answer, LIBRARIES[1])


async def memory_slope_mib(settings: Settings, count: int) -> float:
    """What one more session costs after a cell that has the libraries: of all pages that the host, its zygote and its
    sandboxes hold, each counted once however many share it, and of their page tables. What else moves on the machine
    meanwhile, which MemAvailable would count as well, is not in it; nor are the kernel's own records of a process.
    """
    async with host(settings, pool_size=0) as connection:
        for _ in range(5):
            await ours(connection, LIBRARIES)
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        gc.collect()
        before = held_kib(status.pid)
        made = [await _used(connection) for _ in range(count)]
        slope = (held_kib(status.pid) - before) / 1024 / count
        await asyncio.gather(*(session.close() for session in made))
    return slope


async def _used(connection: HostConnection) -> Session:
    session = await Session.open(connection)
    _check(await session.value(LIBRARIES[0]), LIBRARIES[1])
    return session


def held_kib(host_pid: int) -> int:
    """Of a host and everything below it: memory that no file is behind, shared pages in proportion, and page tables."""
    everyone = [str(pid) for pid in (host_pid, *descendants(host_pid))]
    return sum(_kib(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:") + _kib(pid, "status", "VmPTE:") for pid in everyone)


async def cpu_per_cell(settings: Settings, image: Image, cells: int) -> tuple[float, float]:
    """CPU milliseconds that the kernel's process burns on one trivial cell: ours, stock."""
    async with host(settings) as connection, stock(image) as peer:
        session = await Session.open(connection)
        pids = (await session.pid(), peer.pid)
        spent = [0.0, 0.0]
        batch = max(1, cells // 10)
        for turn in range(-1, 10):
            for which, run in enumerate((session.value, peer.run)):
                before = cpu_ms(pids[which])
                for _ in range(_WARM_CELLS if turn < 0 else batch):
                    await run(TRIVIAL)
                if turn >= 0:
                    spent[which] += cpu_ms(pids[which]) - before
        await session.close()
    return spent[0] / (10 * batch), spent[1] / (10 * batch)


async def output(settings: Settings, image: Image, n: int) -> tuple[list[float], list[float], int]:
    """Milliseconds until the reader has all of a long text, ours and stock; and how many of ours were not the text."""
    right = hashlib.sha256("\n".join(f"{number:09d}" for number in range(OUTPUT_BYTES // 10)).encode()).digest()
    mine: list[float] = []
    peer: list[float] = []
    wrong = 0
    async with host(settings) as connection, stock(image) as other:
        session = await Session.open(connection)
        await session.run(_MAKE_TEXT)
        await other.run(_MAKE_TEXT)
        for _ in range(n):
            began = time.perf_counter()
            text = await session.stream("print(text, end='')")
            mine.append((time.perf_counter() - began) * 1000)
            wrong += hashlib.sha256(text.encode()).digest() != right
            began = time.perf_counter()
            await other.run("print(text, end='')")
            peer.append((time.perf_counter() - began) * 1000)
        await session.close()
    return mine, peer, wrong


def _latency_rows(times: Times) -> list[Row]:
    ratio = p50(times.first_impatient) / p50(times.first)
    impatient = f"stock without its wait for ready: {spread(times.first_impatient)}, {ratio:.0f} times"
    rows = (
        ("new session to its first `1 + 1`, from the pool", times.first, times.first_stock, 25, 40, impatient),
        ("new session to numpy, pandas, pyplot usable, empty pool", times.unpooled, times.stock, 12, 20, ""),
        ("the same from the pool", times.pooled, times.stock, 30, 60, ""),
    )
    return [
        Row(
            what=what,
            seen=f"{spread(mine)} against {spread(peer)}: {(ratio := p50(peer) / p50(mine)):.0f} times faster",
            must=f"{must} times faster", aim=f"{aim} times", passed=ratio >= must, aimed=ratio >= aim, notes=notes,
        )
        for what, mine, peer, must, aim, notes in rows
    ]  # fmt: skip


async def _at_once_row(settings: Settings, image: Image, count: int, rounds: int) -> Row:
    mine, peer, failed = await at_once(settings, image, count, rounds)
    ratio = p50(peer) / p50(mine)
    return Row(
        what=f"{count} at once, usable with the libraries",
        seen=f"{p50(mine):.2f} s against {p50(peer):.1f} s: {ratio:.0f} times faster",
        must="15 times faster", aim="29 times", passed=ratio >= 15 and not failed, aimed=ratio >= 29 and not failed,
        fatal=failed > 0, notes=f"{failed} of {rounds * count} failed; best of {rounds} rounds {min(mine):.2f} s",
    )  # fmt: skip


async def _memory_row(settings: Settings, count: int) -> Row:
    slope = await memory_slope_mib(settings, count)
    once = await zygote_mib(settings)
    return Row(
        what=f"memory a session adds after one cell with the libraries (slope over {count})",
        seen=f"{slope:.1f} MB", must="15 MB", aim="12 MB", passed=slope <= 15, aimed=slope <= 12, fatal=False,
        notes="pages of the host, the zygote and all sandboxes, each counted once, and page tables; the zygote that "
              f"they share takes {once:.0f} MB once",
    )  # fmt: skip


async def zygote_mib(settings: Settings) -> float:
    """What the warm interpreter itself takes, whatever the number of sessions."""
    async with host(settings, pool_size=0) as connection:
        status = await connection.ask(wire.Status(), wire.StatusAnswer)
        children = Path(f"/proc/{status.pid}/task/{status.pid}/children").read_text().split()
        names = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
        zygotes = [pid for pid, command in names.items() if b"workbench_guest.zygote" in command]
        kib = sum(_kib(pid, "smaps_rollup", "Private_", "Shared_Dirty") for pid in zygotes)
    return kib / 1024


def _kib(pid: str, file: str, *names: str) -> int:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(names))


async def _cpu_row(settings: Settings, image: Image, cells: int) -> Row:
    mine, peer = await cpu_per_cell(settings, image, cells)
    share = mine / peer * 100
    return Row(
        what="CPU the kernel burns on a trivial cell",
        seen=f"{mine:.2f} ms against {peer:.2f} ms: {share:.0f} %",
        must="60 % of stock", aim="40 %", passed=share <= 60, aimed=share <= 40,
        notes=f"schedstat of all threads of the process, over {cells} cells each",
    )  # fmt: skip


async def _output_row(settings: Settings, image: Image, n: int) -> Row:
    mine, peer, wrong = await output(settings, image, n)
    ratio = p50(mine) / p50(peer)
    return Row(
        what="50 MB of text, complete, in the reader's hands",
        seen=f"{spread(mine)} against {spread(peer)}: {ratio * 100:.0f} %; {n - wrong} of {n} byte for byte",
        must="complete, not slower", aim="half", passed=not wrong and ratio <= 1, aimed=not wrong and ratio <= 0.5,
        fatal=wrong > 0, notes="ours is on the host's disk by then as well, and in a file of the session's",
    )  # fmt: skip


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    image = find_image(settings.images_dir, load_recipe("python"))
    return [
        *_latency_rows(await latency(settings, image, 2 if quick else 20)),
        await _at_once_row(settings, image, *((4, 1) if quick else (32, 3))),
        await _memory_row(settings, 20 if quick else 100),
        await _cpu_row(settings, image, 50 if quick else 200),
        await _output_row(settings, image, 1 if quick else 7),
    ]


if __name__ == "__main__":
    sys.exit(main("Kernel", __doc__, measure))
