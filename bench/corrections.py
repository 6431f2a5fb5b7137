"""Corrections: what they cost a cell that needs none, and whether one is ever wrong on damaged copies of real code.

python -m bench.corrections [--quick] [--folder FOLDER]... [--write bench/RESULTS.md]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.command import main
from bench.damage import LOST, MENDABLE, Seen, Untouched, cells, damaged, own_folders, untouched
from bench.hosts import host
from bench.sessions import KERNEL, Session, cpu_ms
from bench.table import Row, p50
from workbench.host_client.connection import HostConnection
from workbench.model.corrections import VARIABLE
from workbench.model.ids import new_sandbox_id
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

TRIVIAL = "1 + 1"
_MUST_MS, _AIM_MS, _MUST_TIMES, _AIM_TIMES = 2.0, 1.0, 1.5, 1.2
_WARM = 30
_CELLS, _CELLS_QUICK = 2000, 60
_SAMPLES, _SAMPLES_QUICK = 300, 40
_FILES_QUICK = 150


async def opened(connection: HostConnection, switches: str | None) -> Session:
    """A session with these switches on; the usual ones with None."""
    sandbox = new_sandbox_id()
    env = {} if switches is None else {VARIABLE: switches}
    await connection.ask(wire.CreateSandbox(sandbox=sandbox, kernel=True, env=env), wire.SandboxReport)
    start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, snapshots=False)
    await connection.ask(start, kernels.KernelReport)
    return Session(connection, sandbox)


async def cost(settings: Settings, samples: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the kernel's CPU for a trivial cell, with the rules and without, in turns."""
    taken: tuple[list[float], list[float]] = ([], [])
    async with host(settings, pool_size=2) as connection:
        both = [await opened(connection, None), await opened(connection, "none")]
        pids = [await session.pid() for session in both]
        for session in both:
            for _ in range(_WARM):
                await session.run(TRIVIAL)
        for number in range(samples * 2):
            which = number % 2
            before = cpu_ms(pids[which])
            await both[which].run(TRIVIAL)
            taken[which].append(cpu_ms(pids[which]) - before)
        for session in both:
            await session.close()
    return taken


def _cost_rows(on: Sequence[float], off: Sequence[float]) -> list[Row]:
    more, times = p50(on) - p50(off), p50(on) / p50(off)
    return [
        Row(
            what="CPU that the rules add to a trivial cell, p50", seen=f"{more:+.2f} ms", must=f"{_MUST_MS:g} ms",
            aim=f"{_AIM_MS:g} ms", passed=more <= _MUST_MS, aimed=more <= _AIM_MS,
            notes=f"{p50(on):.2f} ms with, {p50(off):.2f} ms without; n {len(on)} each, in turns",
        ),
        Row(
            what="its CPU beside a session with all rules off", seen=f"{times:.2f} times",
            must=f"{_MUST_TIMES:g} times", aim=f"{_AIM_TIMES:g} times", passed=times <= _MUST_TIMES,
            aimed=times <= _AIM_TIMES,
        ),
    ]  # fmt: skip


def _damage_rows(some: int, mendable: dict[str, Seen], lost: dict[str, Seen], where: str) -> list[Row]:
    copies = sum(one.copies for one in mendable.values())
    right = sum(one.right for one in mendable.values())
    wrong = sum(len(one.wrong) for one in mendable.values())
    cut, acted = (sum(one.copies for one in lost.values()), sum(one.copies - one.declined for one in lost.values()))
    kinds = ", ".join(f"{kind} {one.right} of {one.copies}" for kind, one in mendable.items())
    return [
        Row(
            what=f"wrong corrections of {some:,} cells of {where}, damaged in {len(mendable)} ways",
            seen=f"{wrong} of {copies:,} copies", must="0", aim="0", passed=wrong == 0, aimed=wrong == 0, fatal=True,
        ),
        Row(
            what="those copies that became what they were", seen=f"{right / max(1, copies):.1%}", must="80 %",
            aim="95 %", passed=right >= 0.8 * copies, aimed=right >= 0.95 * copies,
            notes=f"the others are left alone; {kinds}",
        ),
        Row(
            what="copies that are cut off, and that something was done to", seen=f"{acted} of {cut:,}", must="0",
            aim="0", passed=acted == 0, aimed=acted == 0, fatal=True,
        ),
    ]  # fmt: skip


def _valid_row(found: Untouched, where: str) -> Row:
    some = ", ".join(f"{path.name}: {rule}" for path, rule in found.touched[:5])
    return Row(
        what=f"valid files of {where} that a rule acts on", seen=f"{len(found.touched)} of {found.files:,}", must="0",
        aim="0", passed=not found.touched, aimed=not found.touched, fatal=True, notes=some,
    )  # fmt: skip


async def _measured(settings: Settings, folders: Sequence[Path], *, quick: bool) -> list[Row]:
    on, off = await cost(settings, _SAMPLES_QUICK if quick else _SAMPLES)
    rows = _cost_rows(on, off)
    for where, these in (
        ("the standard library and site-packages", own_folders()),
        *((folder.name, (folder,)) for folder in folders),
    ):
        some = cells(these, _CELLS_QUICK if quick else _CELLS)
        rows += _damage_rows(len(some), damaged(some, MENDABLE), damaged(some, LOST), where)
        rows.append(_valid_row(untouched(these, _FILES_QUICK if quick else None), where))
    return rows


def _folders() -> list[Path]:
    """Those that are asked for; taken out of the arguments, which the other benches have in common."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--folder", type=Path, action="append", default=[])
    known, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return list(known.folder)


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    return await _measured(settings, FOLDERS, quick=quick)


FOLDERS: list[Path] = []

if __name__ == "__main__":
    os.nice(5)
    FOLDERS += _folders()
    sys.exit(main("Corrections", __doc__, measure))
