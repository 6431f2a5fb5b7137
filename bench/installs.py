"""What a missing package costs: an import that installs it beside pip and uv, and what the finder costs other cells.

python -m bench.installs [--quick] [--write bench/RESULTS.md]
"""

from __future__ import annotations

import ast
import asyncio
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uv

from bench.command import main
from bench.serving import Client, serving
from bench.table import Row, p50, spread
from workbench.images.additions import ChosenImage
from workbench.packages.index import uv_environment
from workbench.packages.running import run
from workbench.settings import Settings

# Small, without dependencies, and not in the image.
PACKAGE = "humanize"
_PEER_S = 120.0
_IMPORT = f"import time\nbegan = time.perf_counter()\nimport {PACKAGE}\nprint((time.perf_counter() - began) * 1000)"
_TRIVIAL = "import json, collections, re\nx = 1"
_WITHOUT = "import sys\nsys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != 'PackageFinder']"


@dataclass(slots=True)
class Seen:
    """Milliseconds, taken in turns so that noise falls on all alike."""

    ours: list[float] = field(default_factory=list)
    pip: list[float] = field(default_factory=list)
    uv: list[float] = field(default_factory=list)
    with_finder: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)
    installed: int = 0
    """imports that installed it, and told so"""


class Bench:
    """Sessions of one server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def session(self) -> str:
        """A new one, whose kernel has run a cell."""
        made = await self._ask("POST", "/v1/sessions", {"sandbox": {"snapshots": False}})
        await self.cell(made["id"], "1")
        return str(made["id"])

    async def cell(self, session: str, code: str) -> Any:
        """Its result."""
        told = await self._ask("POST", f"/v1/sessions/{session}/cells", {"code": code, "limit_s": 150})
        return told["result"]

    async def end(self, session: str) -> None:
        """It goes with what was installed for it."""
        await self._ask("DELETE", f"/v1/sessions/{session}", None)

    async def _ask(self, method: str, path: str, body: Any) -> Any:
        answer = await self._client.ask(method, path, body)
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: {answer}")
        return answer.json() if answer.status != 204 else None


class Peers:
    """pip and uv, each with a warm cache of its own, into a new folder each time."""

    def __init__(self, folder: Path, python: str, environ: dict[str, str]) -> None:
        self._folder = folder
        self._python = python
        self._environ = environ

    async def pip(self) -> float:
        """Milliseconds of one install."""
        return await self._timed(
            (self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--target"),
            {"PIP_CACHE_DIR": str(self._folder / "pip")},
        )

    async def uv(self) -> float:
        """The same."""
        return await self._timed(
            (uv.find_uv_bin(), "pip", "install", "--quiet", "--python", self._python, "--target"),
            {**uv_environment(self._environ, ""), "UV_CACHE_DIR": str(self._folder / "uv")},
        )

    async def _timed(self, command: tuple[str, ...], more: dict[str, str]) -> float:
        target = Path(tempfile.mkdtemp(dir=self._folder))
        env = {**self._environ, **more}
        began = time.perf_counter()
        ran = await run((*command, str(target), PACKAGE), env=env, cwd=self._folder, timeout_s=_PEER_S)
        spent = (time.perf_counter() - began) * 1000
        if ran.code:
            raise AssertionError(f"{command}: {ran.stderr}")
        await asyncio.to_thread(shutil.rmtree, target)
        return spent


async def seen(settings: Settings, rounds: int, cells: int) -> Seen:
    """All of it."""
    told = Seen()
    image = ChosenImage(settings.data_dir, settings.images_dir).find()
    with tempfile.TemporaryDirectory(prefix="wb-bench-") as name:
        peers = Peers(Path(name), image.python, dict(os.environ))
        async with serving(settings) as server:
            client = await server.client()
            bench = Bench(client)
            try:
                await _installs(bench, peers, told, rounds)
                await _finder(bench, told, cells)
            finally:
                await client.close()
    return told


async def _installs(bench: Bench, peers: Peers, told: Seen, rounds: int) -> None:
    # The first of each warms its cache, and is not counted.
    for number in range(rounds + 1):
        session = await bench.session()
        result = await bench.cell(session, _IMPORT)
        ours = ast.literal_eval(result["stdout"]["text"].splitlines()[-1])
        told.installed += [one["rule"] for one in result["corrections"]] == ["install"]
        await bench.end(session)
        pip, by_uv = await peers.pip(), await peers.uv()
        if number:
            told.ours.append(ours)
            told.pip.append(pip)
            told.uv.append(by_uv)


async def _finder(bench: Bench, told: Seen, cells: int) -> None:
    having, without = await bench.session(), await bench.session()
    await bench.cell(without, _WITHOUT)
    for _ in range(cells):
        for session, samples in ((having, told.with_finder), (without, told.without)):
            began = time.perf_counter()
            await bench.cell(session, _TRIVIAL)
            samples.append((time.perf_counter() - began) * 1000)


async def measure(settings: Settings, *, quick: bool) -> list[Row]:
    """All rows."""
    rounds, cells = (2, 20) if quick else (12, 300)
    told = await seen(settings, rounds, cells)
    faster, beside_uv = p50(told.pip) / p50(told.ours), p50(told.ours) / p50(told.uv)
    finder = p50(told.with_finder) / p50(told.without)
    complete = told.installed == rounds + 1
    return [
        Row(
            what=f"`import {PACKAGE}` that installs it, warm, beside `pip install`",
            seen=f"{faster:.1f} times faster: {spread(told.ours)} against {spread(told.pip)}",
            must="3 times", aim="10 times", passed=faster >= 3, aimed=faster >= 10,
            notes="ours from the import to the module, in a new session; theirs the install alone, without the import",
        ),
        Row(
            what="the same beside `uv pip install`", seen=f"{beside_uv:.2f} of its time, {spread(told.uv)}",
            must="1.5 times", aim="1 time", passed=beside_uv <= 1.5, aimed=beside_uv <= 1,
        ),
        Row(
            what="a cell that misses nothing, with the finder and without", seen=f"{finder:.2f} times",
            must="1.1 times", aim="1.02 times", passed=finder <= 1.1, aimed=finder <= 1.02,
            notes=f"{spread(told.with_finder)} and {spread(told.without)}, in turns, by REST",
        ),
        Row(
            what="imports that installed and told so", seen=f"{told.installed} of {rounds + 1}", must="all", aim="",
            passed=complete, aimed=complete, fatal=True,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main("Installs", __doc__, measure))
