"""Sessions of Node.js and of R: to their first answer and in memory, beside the kernels of others for these languages.

python -m bench.runtimes [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.command import main
from bench.hosts import host, until_ahead, until_pooled
from bench.sessions import Session, outside_pid
from bench.stock import started
from bench.table import Row, p50, spread
from workbench.host_client.connection import HostConnection
from workbench.settings import Settings

_PEERS = Path(__file__).parent / "node_peers" / "node_modules"
_IRKERNEL = Path("/usr/lib/R/site-library/IRkernel")
_FILE = "{connection_file}"
_FIRST = "1 + 1"
_ALIVE = 8
_OUTPUT_BYTES = 50_000_000
_FLOOD = f"for (let i = 0; i < {_OUTPUT_BYTES} / 10; i++) process.stdout.write(String(i).padStart(9, '0') + '\\n')"
_WHO = "process.pid + ' ' + require('fs').statSync('/proc/self/ns/pid').ino"


@dataclass(frozen=True, slots=True)
class Peer:
    """A kernel of somebody else's, as its documentation has it started."""

    name: str
    argv: tuple[str, ...]
    transport: str

    async def first(self) -> float:
        """Milliseconds to the answer of its first cell."""
        began = time.perf_counter()
        async with started(self.argv, env={}, transport=self.transport) as kernel:
            await kernel.run(_FIRST)
            return (time.perf_counter() - began) * 1000

    async def memory_mib(self, alive: int) -> float:
        """What one has for itself, and its share of what all have in common, with so many alive."""
        async with AsyncExitStack() as all_of_them:
            pids = []
            for _ in range(alive):
                kernel = await all_of_them.enter_async_context(started(self.argv, env={}, transport=self.transport))
                await kernel.run(_FIRST)
                pids += _tree(kernel.pid)
            return _pss_mib(pids) / alive


DENO = Peer("deno jupyter", (str(_PEERS / ".bin/deno"), "jupyter", "--kernel", "--conn", _FILE), "tcp")
TSLAB = Peer("tslab", (str(_PEERS / ".bin/tslab"), "kernel", "--config-path", _FILE, "--js"), "tcp")
IRKERNEL = Peer("IRkernel", ("R", "--slave", "-e", "IRkernel::main()", "--args", _FILE), "ipc")


@dataclass(slots=True)
class Times:
    """Milliseconds of each, taken in turns so that noise falls on all alike."""

    node: list[float] = field(default_factory=list)
    """with nothing kept ready, not even a sandbox"""
    r: list[float] = field(default_factory=list)
    """the same"""
    waiting: dict[str, list[float]] = field(default_factory=dict)
    """by runtime, of kernels that were started before they were asked for"""
    peers: dict[str, list[float]] = field(default_factory=dict)


async def _first(connection: HostConnection, runtime: str) -> float:
    began = time.perf_counter()
    session = await Session.open(connection, runtime=runtime)
    answer = await session.value(_FIRST)
    took = (time.perf_counter() - began) * 1000
    await session.close()
    if answer not in ("2", "[1] 2"):
        raise AssertionError(f"a wrong answer: {answer!r}")
    return took


async def latency(settings: Settings, peers: tuple[Peer, ...], rounds: int) -> Times:
    """New sessions, one at a time."""
    languages = ("node", "r") if IRKERNEL in peers else ("node",)
    times = Times(peers={peer.name: [] for peer in peers}, waiting={language: [] for language in languages})
    async with host(settings, pool_size=2) as connection, host(settings, pool_size=0) as cold:

        async def waiting(language: str) -> float:
            await until_ahead(connection, len(languages))
            return await _first(connection, language)

        # Those that ask, so that one of each waits.
        for language in languages:
            await _first(connection, language)
        turns: list[tuple[list[float], Callable[[], Awaitable[float]]]] = [
            *((samples, functools.partial(_first, cold, one)) for samples, one in ((times.node, "node"), (times.r, "r"))
              if one in languages),
            *((times.waiting[language], functools.partial(waiting, language)) for language in languages),
            *((times.peers[peer.name], peer.first) for peer in peers),
        ]  # fmt: skip
        # The first of each reads from the disk, and is not counted.
        for number in range(rounds + 1):
            for samples, take in turns:
                await until_pooled(connection, settle_s=0.3)
                took = await take()
                if number:
                    samples.append(took)
    return times


async def memory(settings: Settings, alive: int) -> tuple[float, float, float]:
    """MiB of one session of Node with so many alive: of its kernel, with its keeper, and with all of its sandbox."""
    async with host(settings, pool_size=2) as connection:
        whole, kept, alone = [], [], []
        for _ in range(alive):
            session = await Session.open(connection, runtime="node")
            inside, namespace = (int(part) for part in (await session.value(_WHO)).strip("'").split())
            kernel = await asyncio.to_thread(outside_pid, inside, namespace)
            assert kernel is not None
            alone.append(kernel)
            kept += [kernel, _parent(kernel)]
            whole += _of_namespace(namespace)
        return _pss_mib(alone) / alive, _pss_mib(kept) / alive, _pss_mib(whole) / alive


async def flood(settings: Settings) -> int:
    """Characters of 50 MB that arrived."""
    async with host(settings, pool_size=1) as connection:
        session = await Session.open(connection, runtime="node")
        return len(await session.stream(_FLOOD))


def _parent(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("PPid:")).split()[1])


def _tree(pid: int) -> list[int]:
    children = [
        child for thread in Path(f"/proc/{pid}/task").iterdir() for child in (thread / "children").read_text().split()
    ]
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _of_namespace(namespace: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}/ns/pid").st_ino == namespace:
                    found.append(int(name))
            except OSError:
                continue
    return found


def _pss_mib(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    node_peers = tuple(peer for peer in (DENO, TSLAB) if Path(peer.argv[0]).exists())
    peers = (*node_peers, *((IRKERNEL,) if _IRKERNEL.is_dir() else ()))
    times = await latency(settings, peers, 1 if quick else 10)
    first = "to its first answer, beside"
    rows = [
        _faster(f"a session of Node.js {first} {peer.name}", times.node, times.peers[peer.name], must)
        for peer, must in ((DENO, 3), (TSLAB, 8))
        if peer in node_peers
    ]
    if IRKERNEL in peers:
        rows += [
            _faster(f"a session of R {first} stock IRkernel, nothing kept ready", times.r, times.peers["IRkernel"], 4),
            _faster(f"the same from the pool, {first} stock IRkernel", times.waiting["r"], times.peers["IRkernel"], 4),
        ]
    rows += [
        _within(f"a session of {title} to its first answer, from the pool", times.waiting[language], must_ms, notes)
        for language, title, must_ms, notes in (
            ("node", "Node.js", 50, f"without a pool {spread(times.node)}"),
            ("r", "R", 150, ""),
        )
        if language in times.waiting
    ]
    rows += await _memory_rows(settings, node_peers, 2 if quick else _ALIVE)
    arrived = await flood(settings)
    rows.append(
        Row(
            what="50 MB of text printed by Node.js", seen=f"{arrived:,} characters", must="all", aim="",
            passed=arrived == _OUTPUT_BYTES, aimed=arrived == _OUTPUT_BYTES, fatal=True,
        )
    )  # fmt: skip
    return rows


def _faster(what: str, ours: list[float], theirs: list[float], must: float) -> Row:
    ratio = p50(theirs) / p50(ours)
    return Row(
        what=what, seen=f"{ratio:.1f} times faster: {spread(ours)} against {spread(theirs)}", must=f"{must:g} times",
        aim="", passed=ratio >= must, aimed=ratio >= must,
    )  # fmt: skip


def _within(what: str, ours: list[float], must_ms: float, notes: str) -> Row:
    passed = p50(ours) <= must_ms
    return Row(what=what, seen=spread(ours), must=f"{must_ms:g} ms", aim="", passed=passed, aimed=passed, notes=notes)


async def _memory_rows(settings: Settings, peers: tuple[Peer, ...], alive: int) -> list[Row]:
    alone, kept, whole = await memory(settings, alive)
    rows = []
    for peer in peers:
        theirs = await peer.memory_mib(alive)
        what = f"memory of a kernel of Node.js with {alive} alive, beside {peer.name}"
        notes = f"with all of its sandbox, of which peers have none, {whole:.1f} MiB"
        rows += [
            _third(what, alone, theirs, ""),
            _third(f"the same with our keeper, beside {peer.name}", kept, theirs, notes),
        ]
    return rows


def _third(what: str, ours: float, theirs: float, notes: str) -> Row:
    share = ours / theirs
    return Row(
        what=what, seen=f"{share:.2f} of it: {ours:.1f} against {theirs:.1f} MiB", must="a third", aim="",
        passed=share <= 1 / 3, aimed=share <= 1 / 3, notes=notes,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("Runtimes", __doc__, measure))
