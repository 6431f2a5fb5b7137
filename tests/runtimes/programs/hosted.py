"""Kernels that are programs, as the host keeps them: real engines, a queue, results."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.engines.options import EngineOptions
from workbench.host.cells.memory import Patience
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.sandbox_cells import CellOptions, SandboxCells
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.execution import CellResult, CommandResult, Piece, PieceKind
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.model.tier import STANDARD
from workbench.runtimes.loading import load_runtimes
from workbench.wire import kernels as wire

WAIT_S = 60.0
STOCK: dict[str, Any] = {
    "name": "stock",
    "title": "Stock IPython",
    "language": "python",
    "kernelspec": "python3",
    "file_extension": ".py",
    # What is written to its descriptors it would print by the protocol and once more where they led before.
    "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}", "--IPKernelApp.capture_fd_output=False"],
    "env": [["OF_THE_DESCRIPTION", "yes"]],
    "no_memory": "nobody has taught it",
}


@dataclass
class Session:
    """One sandbox with one kernel."""

    sandbox: Sandbox
    cells: SandboxCells

    async def start(self, runtime: str, kernel: str = "main") -> wire.KernelReport:
        request = wire.StartKernel(sandbox="sb", kernel=kernel, epoch=1, runtime=runtime)
        return await self.cells.start_kernel(request)

    async def run(self, code: str, limit_s: float = WAIT_S, kernel: str = "main") -> CellResult:
        return await self.result(await self.send(code, limit_s, kernel))

    async def send(self, code: str, limit_s: float = WAIT_S, kernel: str = "main") -> str:
        request = wire.RunCell(sandbox="sb", kernel=kernel, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=0.0)
        await self.cells.run_cell(request)
        return request.cell

    async def begin(self, code: str, limit_s: float = WAIT_S) -> str:
        """Send it, and return once it has said something."""
        cell = await self.send(code, limit_s)
        await self.cells.read_cell(wire.ReadCell(sandbox="sb", cell=cell, wait_s=WAIT_S))
        return cell

    async def result(self, cell: str) -> CellResult:
        report = await self.cells.wait_cell(wire.WaitCell(sandbox="sb", cell=cell, wait_s=WAIT_S))
        assert report.result is not None, report.state
        return report.result

    async def pieces(self, cell: str) -> list[Piece]:
        """All that it said, from the spool."""
        pieces: list[Piece] = []
        offset = 0
        while True:
            request = wire.ReadCell(sandbox="sb", cell=cell, offset=offset, wait_s=WAIT_S)
            page = await self.cells.read_cell(request)
            pieces += page.pieces
            offset = page.next_offset
            if page.ended:
                return pieces

    async def command(self, command: str) -> CommandResult:
        request = wire.RunCommand(sandbox="sb", cell=new_cell_id(), command=command, limit_s=WAIT_S, wait_s=WAIT_S)
        report = await self.cells.run_command(request)
        assert report.command_result is not None, report.state
        return report.command_result

    async def until_background(self, *wanted: str) -> None:
        """Until this is listed, by its commands, and nothing else."""
        listed: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S / 4):
                while True:
                    listed = sorted(one.command for one in (await self.cells.list_processes()).processes)
                    if tuple(listed) == wanted:
                        return
                    await asyncio.sleep(0.05)
        raise AssertionError(f"{listed}, not {wanted}")

    async def until(self, command: str, wanted: str) -> None:
        """Until a command says this."""
        async with asyncio.timeout(WAIT_S):
            while (await self.command(command)).stdout.text.strip() != wanted:
                await asyncio.sleep(0.05)


class House:
    """An engine, and sessions on it."""

    def __init__(self, engine: Engine, options: EngineOptions, folder: Path, added: Path) -> None:
        self._engine = engine
        self._options = options
        self._launcher = JupyterLauncher(folder / "kernels")
        self._spool = folder / "spool"
        self._spool.mkdir()
        self._runtimes = load_runtimes(added)

    @contextlib.asynccontextmanager
    async def session(self, runtime: str = "") -> AsyncIterator[Session]:
        """In a sandbox of its own; with a kernel, if it is said of what."""
        identity = new_sandbox_id()
        files = self._options.files_root / identity
        files.mkdir(parents=True)
        sandbox = await self._engine.create(SandboxSpec(id=identity, tier=STANDARD, files=files))
        options = CellOptions(self._launcher, self._spool, 2**28, 3600.0, Patience(), runtimes=self._runtimes)
        mount = Mount(files, STANDARD.files_bytes, STANDARD.files_inodes)
        cells = SandboxCells(sandbox, mount, options, files_kept=True, check_living=lambda: None)
        cells.open()
        try:
            session = Session(sandbox, cells)
            if runtime:
                await session.start(runtime)
            yield session
        finally:
            cells.close()
            await sandbox.aclose()
            await cells.aclose()

    async def aclose(self) -> None:
        await self._launcher.aclose()


def write_descriptions(folder: Path, *descriptions: dict[str, Any]) -> None:
    """As an operator would."""
    folder.mkdir(exist_ok=True)
    for one in descriptions:
        (folder / f"{one['name']}.json").write_text(json.dumps(one))


@contextlib.asynccontextmanager
async def open_house(
    make: Callable[[EngineOptions], Engine], options: EngineOptions, folder: Path
) -> AsyncIterator[House]:
    """Everything inside is closed at the end."""
    lacking = {**STOCK, "name": "lacking", "title": "Lacking", "needs": [
        {"any_of": ["no-such-program", "/usr/lib/no-such-file"], "install": "apt-get install -y no-such-package"},
        {"any_of": ["bash"], "install": "apt-get install -y bash"},
    ]}  # fmt: skip
    broken = {**STOCK, "name": "broken", "title": "Broken", "argv": ["no-such-program", "{connection_file}"]}
    failing = {
        **STOCK,
        "name": "failing",
        "title": "Failing",
        "argv": ["bash", "-c", "echo it lacks a part >&2; exit 3", "{connection_file}"],
    }
    write_descriptions(folder / "runtimes", STOCK, lacking, broken, failing)
    options.run_dir.mkdir(parents=True, exist_ok=True)
    options.files_root.mkdir(parents=True, exist_ok=True)
    # Nothing of the image's libraries is used here.
    image = dataclasses.replace(options.image, preload=())
    engine = make(dataclasses.replace(options, image=image))
    await engine.start()
    try:
        house = House(engine, options, folder, folder / "runtimes")
        try:
            yield house
        finally:
            await house.aclose()
    finally:
        await engine.aclose()


def text_of(pieces: list[Piece], kind: PieceKind = PieceKind.STDOUT) -> str:
    return "".join(piece.text for piece in pieces if piece.kind is kind)
