"""Text out of files inside a real sandbox of the standard tier: how much of it is found, how long, how much memory.

python -m bench.extract [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.command import main
from bench.documents import SCANS, Made, Scan, digital, many_pages, many_scans, scanned
from bench.documents import found as words_found
from bench.hosts import host
from bench.sessions import Session
from bench.table import Row
from workbench.engines.namespace.view import GUEST_ROOT
from workbench.settings import Settings

_MOUNT = "bench"
_DEFINE = """
import json, os, subprocess, sys, time
def extract(name):
    began = time.perf_counter()
    env = {**os.environ, "PYTHONPATH": GUEST_ROOT}
    run = subprocess.Popen([sys.executable, "-m", "workbench_guest.extract", "/mnt/files/" + name], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = run.stdout.read()
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    told = json.loads(said)
    told.update(seconds=time.perf_counter() - began, cpu_s=used.ru_utime + used.ru_stime, peak_kib=used.ru_maxrss)
    with open("/mnt/files/answer.json", "w") as file:
        json.dump(told, file)
    return run.returncode
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one file gave."""

    made: Made
    text: str
    error: str
    pages: int
    seconds: float
    cpu_s: float
    peak_kib: int

    @property
    def share(self) -> float:
        """Of the words that were written."""
        return words_found(self.text, self.made.words) / len(self.made.words)


async def read_all(settings: Settings, make: Sequence[Made], folder: Path) -> list[Seen]:
    """Each of them, one after the other, by one session whose mount the files lie in."""
    seen: list[Seen] = []
    async with host(settings, pool_size=1, folder=folder) as connection:
        session = await Session.open(connection, files=_MOUNT)
        await session.run(f"GUEST_ROOT = {GUEST_ROOT!r}\n{_DEFINE}")
        for made in make:
            code = await session.value(f"extract({made.path.name!r})")
            told = json.loads((made.path.parent / "answer.json").read_text(encoding="utf-8"))
            if code != "0":
                raise AssertionError(f"{made.name}: the program ended with {code}")
            fields = ("text", "error", "pages", "seconds", "cpu_s", "peak_kib")
            seen.append(Seen(made=made, **{name: told[name] for name in fields}))
        await session.close()
    return seen


def mount_folder() -> tuple[Path, Path]:
    """A data folder for a host, and the folder of the mount in it."""
    folder = Path(tempfile.mkdtemp(prefix="wb-bench-"))
    mount = folder / "files" / _MOUNT
    mount.mkdir(parents=True)
    return folder, mount


async def digital_files(settings: Settings) -> list[Seen]:
    """One of every kind that carries its text."""
    folder, mount = mount_folder()
    return await read_all(settings, digital(mount), folder)


async def scans(settings: Settings, which: Sequence[Scan] = SCANS) -> list[Seen]:
    """Pages that are pictures."""
    folder, mount = mount_folder()
    return await read_all(settings, [scanned(mount, scan) for scan in which], folder)


async def long_files(settings: Settings, pages: int, scanned_pages: int) -> tuple[Seen, Seen]:
    """Many pages with a text layer, and many without."""
    folder, mount = mount_folder()
    born, drawn = await read_all(settings, [many_pages(mount, pages), many_scans(mount, scanned_pages)], folder)
    return born, drawn


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _digital_rows(seen: Sequence[Seen]) -> list[Row]:
    return [
        Row(
            what=f"words found in {one.made.name}", seen=f"{_percent(one.share)} of {len(one.made.words)}",
            must="98 %", aim="100 %", passed=one.share >= 0.98 and not one.error, aimed=one.share == 1.0, fatal=True,
            notes=one.error or f"{one.seconds:.2f} s",
        )
        for one in seen
    ]  # fmt: skip


def _scan_rows(seen: Sequence[Seen]) -> list[Row]:
    return [
        Row(
            what=f"words found in the scan {one.made.name}", seen=f"{_percent(one.share)} of {len(one.made.words)}",
            must="90 %", aim="98 %", passed=one.share >= 0.90 and not one.error, aimed=one.share >= 0.98, fatal=True,
            notes=one.error or f"{one.seconds:.1f} s, of which {one.cpu_s:.1f} s of the CPU",
        )
        for one in seen
    ]  # fmt: skip


def _cost_rows(all_scans: Sequence[Seen], born: Seen, drawn: Seen) -> list[Row]:
    slowest = max(all_scans, key=lambda one: one.seconds / one.pages)
    worst_s = slowest.seconds / slowest.pages
    page_s, page_ms = drawn.seconds / drawn.pages, born.seconds / born.pages * 1000
    most = max((*all_scans, born, drawn), key=lambda one: one.peak_kib)
    peak = most.peak_kib / 1024
    return [
        Row(
            what="the slowest scan of one page, from start to answer", seen=f"{worst_s:.1f} s ({slowest.made.name})",
            must="5 s", aim="3 s", passed=worst_s <= 5, aimed=worst_s <= 3,
            notes=f"{slowest.cpu_s:.1f} s of the sandbox's one CPU; the rest is waiting for it on a busy machine",
        ),
        Row(
            what=f"a page of a scan of {drawn.pages} pages", seen=f"{page_s:.2f} s", must="5 s", aim="2 s",
            passed=page_s <= 5, aimed=page_s <= 2,
            notes=f"{drawn.cpu_s / drawn.pages:.2f} s of the CPU; {_percent(drawn.share)} of its words found",
        ),
        Row(
            what=f"a page of a PDF of {born.pages} pages with a text layer", seen=f"{page_ms:.1f} ms", must="100 ms",
            aim="30 ms", passed=page_ms <= 100, aimed=page_ms <= 30,
            notes=f"{_percent(born.share)} of its words found",
        ),
        Row(
            what="the most memory of any of these processes", seen=f"{peak:.0f} MB ({most.made.name})", must="400 MB",
            aim="250 MB", passed=peak <= 400, aimed=peak <= 250, fatal=True,
            notes="as the kernel counts at its end; never below what the cell that started it held itself",
        ),
    ]  # fmt: skip


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    all_scans = await scans(settings, SCANS[2:6:3] + SCANS[-1:] if quick else SCANS)
    born, drawn = await long_files(settings, *((20, 2) if quick else (200, 20)))
    return [*_digital_rows(await digital_files(settings)), *_scan_rows(all_scans), *_cost_rows(all_scans, born, drawn)]


if __name__ == "__main__":
    sys.exit(main("Text out of files", __doc__, measure))
