"""Kernels in real sandboxes without a host process around them: an engine and a launcher, and what closes them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.contracts.kernel import KernelEvent, KernelStart
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.kernels.jupyter import JupyterKernel
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.execution import Cell, Piece, PieceKind
from workbench.model.ids import KernelId, new_cell_id, new_sandbox_id
from workbench.model.runtime import FORKED, Runtime
from workbench.model.tier import STANDARD
from workbench_guest.messages import CALLS_VARIABLE

PATIENCE_S = 60.0
T = TypeVar("T")


@dataclass
class Live:
    """A kernel in a sandbox of its own, whose cells take turns with those of attached notebooks."""

    sandbox: Sandbox
    kernel: JupyterKernel
    launcher: JupyterLauncher
    generation: int = 1
    turns: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked: list[str] = field(default_factory=list)
    """first lines of what attached notebooks ran"""
    runtime: Runtime = FORKED

    async def run(self, code: str, *, store_history: bool = True) -> list[KernelEvent]:
        """A cell of the session's, to its end."""
        cell = Cell(id=new_cell_id(), code=code, store_history=store_history)
        async with self.turns, asyncio.timeout(PATIENCE_S):
            return [event async for event in self.kernel.execute(cell)]

    async def attach(self) -> str:
        """The connection file for notebooks."""
        return (await self.kernel.attach(self._turn)).connection_file

    @contextlib.asynccontextmanager
    async def _turn(self, first_line: str) -> AsyncIterator[None]:
        async with self.turns:
            self.asked.append(first_line)
            yield

    async def renew(self) -> None:
        """End the memory and begin another one in the same sandbox."""
        await self.kernel.aclose()
        self.generation += 1
        self.kernel = await self.launcher.start(self.sandbox, _start(self.generation, self.runtime))


class Place:
    """An engine and a launcher below one folder."""

    def __init__(self, engine: Engine, options: EngineOptions) -> None:
        self._engine = engine
        self._options = options
        self._launcher = JupyterLauncher(options.run_dir / "kernels")
        self._made: list[Live] = []

    async def live(self, runtime: Runtime = FORKED) -> Live:
        """One more kernel, in a fresh sandbox."""
        identity = new_sandbox_id()
        files = self._options.files_root / identity
        files.mkdir(parents=True)
        # No host here accepts calls: who asks for a package is refused at once, and does not wait for an answer.
        env = {CALLS_VARIABLE: "@nobody-answers-here"}
        spec = SandboxSpec(id=identity, tier=STANDARD, files=files, env=env, first_entry="kernel")
        sandbox = await self._engine.create(spec)
        try:
            kernel = await self._launcher.start(sandbox, _start(1, runtime))
        except BaseException:
            await sandbox.aclose()
            raise
        self._made.append(Live(sandbox, kernel, self._launcher, runtime=runtime))
        return self._made[-1]

    async def until_pooled(self) -> None:
        """Until the engine has nothing left to prepare."""
        async with asyncio.timeout(PATIENCE_S):
            while self._engine.pooled < self._options.pool_size:
                await asyncio.sleep(0.02)

    async def aclose(self) -> None:
        """Every kernel, every sandbox, the launcher."""
        for live in self._made:
            await live.kernel.aclose()
            await live.sandbox.aclose()
        await self._launcher.aclose()


@contextlib.asynccontextmanager
async def open_place(
    options: EngineOptions, make: Callable[[EngineOptions], Engine] = NamespaceEngine
) -> AsyncIterator[Place]:
    """Everything inside is closed at the end."""
    options.run_dir.mkdir(parents=True, exist_ok=True)
    options.files_root.mkdir(parents=True, exist_ok=True)
    engine = make(options)
    await engine.start()
    try:
        place = Place(engine, options)
        try:
            yield place
        finally:
            await place.aclose()
    finally:
        await engine.aclose()


class Aside:
    """A loop in a thread, for clients that block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kernels of a test")
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it over there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def close(self) -> None:
        """After everything that was opened there is closed."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()


@contextlib.contextmanager
def place_aside(options: EngineOptions) -> Iterator[tuple[Aside, Place]]:
    """A place whose loop runs in a thread."""
    aside = Aside()
    opened = open_place(options)
    try:
        place = aside.do(opened.__aenter__())
        try:
            yield aside, place
        finally:
            aside.do(opened.__aexit__(None, None, None))
    finally:
        aside.close()


def _start(generation: int, runtime: Runtime = FORKED) -> KernelStart:
    return KernelStart(id=KernelId("main"), generation=generation, working_folder="/home/user", runtime=runtime)


def pieces(events: list[KernelEvent], kind: PieceKind) -> list[Piece]:
    return [event for event in events if isinstance(event, Piece) and event.kind is kind]


def text(events: list[KernelEvent], kind: PieceKind = PieceKind.STDOUT) -> str:
    """Everything that was printed."""
    return "".join(piece.text for piece in pieces(events, kind))


def result(events: list[KernelEvent]) -> str:
    """The text of the last value."""
    shown = [piece.display for piece in pieces(events, PieceKind.DISPLAY)]
    return next((one.data["text/plain"] for one in shown if one is not None and one.is_result), "")
