"""Code that fills /mnt/files beyond a small quota, in real kernels of a real engine: interrupted, told, and only then
ended.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.conftest import MakeEngineOptions
from tests.host.support import WAIT_S

from workbench.contracts.engine import Sandbox, SandboxSpec
from workbench.engines.namespace import files_watch
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.sandbox_cells import CellOptions, SandboxCells
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.execution import CellResult, CommandResult, MemoryState, Outcome
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.model.tier import STANDARD
from workbench.wire import kernels as wire

pytestmark = pytest.mark.isolation
MIB = 2**20
QUOTA = 1024 * MIB
TIER = replace(STANDARD, files_bytes=QUOTA, files_inodes=2000)
OVER = "/mnt/files is over its quota: it holds "
# Real blocks, of which none is written.
KEEP = """
import os, time
def keep(name, mib):
    file = os.open('/mnt/files/' + name, os.O_CREAT | os.O_WRONLY)
    os.posix_fallocate(file, 0, mib * 2**20)
    os.close(file)
kept = 'what was there'
"""
Open = Callable[[Path], AbstractAsyncContextManager["Place"]]


@dataclass(frozen=True)
class Place:
    """A sandbox whose mount has a small quota."""

    sandbox: Sandbox
    cells: SandboxCells

    async def run(self, code: str) -> CellResult:
        request = wire.RunCell(
            sandbox="sb", kernel="main", cell=new_cell_id(), code=code, limit_s=WAIT_S, wait_s=WAIT_S
        )
        report = await self.cells.run_cell(request)
        assert report.result is not None, report.state
        return report.result

    async def command(self, command: str) -> CommandResult:
        request = wire.RunCommand(sandbox="sb", cell=new_cell_id(), command=command, limit_s=WAIT_S, wait_s=WAIT_S)
        report = await self.cells.run_command(request)
        assert report.command_result is not None, report.state
        return report.command_result


@pytest.fixture
async def engine(
    short_dir: Path, make_engine_options: MakeEngineOptions, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[NamespaceEngine]:
    """One that looks also when little was written, and when others of this machine gave as much back."""
    monkeypatch.setattr(files_watch, "_STEP_BYTES", 4 * MIB)
    monkeypatch.setattr(files_watch, "_ROUND_S", 1.0)
    engine = NamespaceEngine(make_engine_options(short_dir))
    await engine.start()
    yield engine
    await engine.aclose()


@pytest.fixture
def files(engine: NamespaceEngine, short_dir: Path) -> Path:
    """What is /mnt/files inside."""
    folder = short_dir / "files" / "m"
    folder.mkdir()
    return folder


@pytest.fixture
async def open_place(short_dir: Path, engine: NamespaceEngine) -> AsyncIterator[Open]:
    """Sandboxes, one after the other."""
    launcher = JupyterLauncher(short_dir / "kernels")
    spool = short_dir / "spool"
    spool.mkdir()

    @asynccontextmanager
    async def opened(files: Path) -> AsyncIterator[Place]:
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=TIER, files=files, first_entry="kernel"))
        mount = Mount(files, TIER.files_bytes, TIER.files_inodes)
        options = CellOptions(launcher, spool, 2**26, 3600.0)
        cells = SandboxCells(sandbox, mount, options, files_kept=True, check_living=lambda: None)
        cells.open()
        try:
            await cells.start_kernel(wire.StartKernel(sandbox="sb", kernel="main", epoch=1))
            yield Place(sandbox, cells)
        finally:
            cells.close()
            await sandbox.aclose()
            await cells.aclose()

    yield opened
    await launcher.aclose()


async def test_a_cell_that_fills_the_files_is_interrupted_told_why_and_loses_nothing(
    open_place: Open, files: Path
) -> None:
    async with open_place(files) as place:
        assert (await place.run(KEEP + "keep('small', 1)")).explanation == ""
        beside = await place.command("sleep 1000 > /dev/null 2>&1 & echo started")
        filled = await place.run("more = 1\nkeep('large', 1030)\ntime.sleep(100)")
        assert filled.outcome is Outcome.INTERRUPTED
        assert filled.explanation.startswith(f"The cell was interrupted: {OVER}1,08")
        assert f" of {QUOTA:,} bytes. Variables keep the values" in filled.explanation
        assert filled.explanation.endswith("Delete files there: until then code runs, and is interrupted when it adds "
                                           "more to them.")  # fmt: skip
        assert (filled.receipt.state, filled.receipt.epoch) == (MemoryState.INTACT, 1)

        meanwhile = await place.run("keep('little', 20)\ntime.sleep(1)\n(kept, more)")
        assert (meanwhile.outcome, meanwhile.results.text) == (Outcome.OK, "('what was there', 1)")
        assert meanwhile.explanation.startswith(f"{OVER}1,10")
        command = await place.command("ls /mnt/files; pgrep -c sleep")
        assert (beside.stdout.text, command.stdout.text) == ("started\n", "large\nlittle\nsmall\n1\n")
        assert command.explanation.startswith(f"{OVER}1,10")

        again = await place.run("keep('little', 90)\ntime.sleep(100)")
        assert (again.outcome, again.receipt.state) == (Outcome.INTERRUPTED, MemoryState.INTACT)

        tidied = await place.run("os.unlink('/mnt/files/large')")
        assert (tidied.outcome, tidied.explanation) == (Outcome.OK, "")
        after = await place.run("kept, len(os.listdir('/mnt/files'))")
        assert (after.results.text, after.explanation) == ("('what was there', 2)", "")


async def test_a_command_that_fills_the_files_is_interrupted_and_told_why(open_place: Open, files: Path) -> None:
    async with open_place(files) as place:
        many = "cd /mnt/files; i=0; while [ $i -lt 2500 ]; do i=$((i+1)); : > f$i; done; sleep 100"
        result = await place.command(many)
        assert result.outcome is Outcome.INTERRUPTED
        assert OVER in result.explanation
        assert " of 2,000 files. Delete files there" in result.explanation
        assert (await place.command("rm /mnt/files/f*")).explanation == ""


async def test_who_takes_far_too_much_at_once_is_told_and_lives_on_while_nothing_is_added(
    open_place: Open, files: Path
) -> None:
    async with open_place(files) as place:
        told = await place.run(f"{KEEP}keep('large', 1200)")
        assert OVER in told.explanation
        assert told.receipt.state is MemoryState.INTACT
        await asyncio.sleep(1.5)  # several looks
        tidied = await place.run("os.unlink('/mnt/files/large')\nkept")
        assert (tidied.outcome, tidied.results.text, tidied.explanation) == (Outcome.OK, "'what was there'", "")
        assert (await place.run("keep('small', 1)\ntime.sleep(1)")).explanation == ""


async def test_what_goes_on_in_the_background_ends_the_sandbox(open_place: Open, files: Path) -> None:
    async with open_place(files) as place:
        await place.run(KEEP)
        writer = f"{KEEP}for number in range(20):\n    keep(str(number), 100 if number else 1000)\n    time.sleep(0.3)"
        start = f"subprocess.Popen([sys.executable, '-c', {writer!r}], start_new_session=True)"
        lost = await place.run(f"import subprocess, sys\n{start}\ntime.sleep(100)")
        async with asyncio.timeout(WAIT_S):
            reason = await place.sandbox.wait_gone()
        assert reason.startswith("disk full: /mnt/files holds ")
        assert lost.outcome in (Outcome.INTERRUPTED, Outcome.LOST)
        assert QUOTA * 1.1 < _blocks(files) < QUOTA * 1.6


async def test_who_takes_more_than_twice_the_quota_is_told_that_the_sandbox_is_gone(
    open_place: Open, files: Path
) -> None:
    async with open_place(files) as place:
        lost = await place.run(f"{KEEP}keep('large', 2100)")
        async with asyncio.timeout(WAIT_S):
            reason = await place.sandbox.wait_gone()
        assert reason == f"disk full: /mnt/files holds {_blocks(files)} of {QUOTA} bytes"
        assert reason in lost.explanation
        assert "Variables, /home/user and /tmp are gone; /mnt/files is kept." in lost.explanation
        assert "Delete files" not in lost.explanation
        assert lost.receipt.state is MemoryState.LOST


@pytest.mark.parametrize("mib", [1050, 2100])
async def test_files_that_were_left_too_full_are_told_by_the_first_result_and_interrupt_nobody(
    open_place: Open, files: Path, mib: int
) -> None:
    """Nobody here saw who left them, as after a restart of the host."""
    _keep(files / "large", mib)
    async with open_place(files) as place:
        first = await place.run("1")
        assert first.explanation.startswith(OVER)
        assert first.receipt.state is MemoryState.INTACT
        command = await place.command("sleep 0.1")
        assert command.explanation.startswith(OVER)
        innocent = await place.run(f"{KEEP}time.sleep(2.5)\n'done'")
        assert (innocent.outcome, innocent.results.text) == (Outcome.OK, "'done'")
        assert (await place.run("os.unlink('/mnt/files/large')")).explanation == ""
        assert (await place.run("keep('small', 1)\nkept")).explanation == ""


async def test_files_that_someone_else_brought_to_exactly_the_quota_are_no_reason_for_anything(
    open_place: Open, files: Path
) -> None:
    """As uploads do, which are checked where they are made."""
    async with open_place(files) as place:
        await place.run("1")
        running = asyncio.create_task(place.run(f"{KEEP}time.sleep(3)\n'done'"))
        _keep(files / "uploaded", QUOTA // MIB)
        result = await running
        assert (result.outcome, result.results.text, result.explanation) == (Outcome.OK, "'done'", "")


def _keep(path: Path, mib: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, mib * MIB)


def _blocks(files: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in files.iterdir())
