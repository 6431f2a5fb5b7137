"""LanguageModel by a small model on this machine, in a process that is started for the first question."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workbench.contracts.services import Completion, Question
from workbench.errors import UpstreamUnavailable
from workbench.services import local_server
from workbench.services.asking import Bounds, Service
from workbench.services.excerpts import excerpt
from workbench.services.openai import OpenAiModel

START_S = 120.0
"""for a file of some gigabytes from a slow disk"""
STOP_S = 5.0
KILL_S = 10.0
_NAME = "the local model"
_MOST_SAID_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Running:
    process: asyncio.subprocess.Process
    folder: Path
    model: OpenAiModel


class LocalModel:
    """`contracts.services.LanguageModel`. `aclose` it: the process ends with it, and with this process."""

    def __init__(self, file: Path, bounds: Bounds, *, max_tokens: int) -> None:
        self._file = file
        self._bounds = bounds
        self._max_tokens = max_tokens
        self._running: _Running | None = None
        self._starting = asyncio.Lock()

    async def complete(self, question: Question) -> Completion:
        """As `LanguageModel` has it."""
        running = await self._ready()
        try:
            return await running.model.complete(question)
        except UpstreamUnavailable:
            if running.process.returncode is None:
                raise
            # It has died, before the question or by it; only the second happens again.
            return await (await self._ready()).model.complete(question)

    async def aclose(self) -> None:
        """As `LanguageModel` has it."""
        async with self._starting:
            await self._stop()

    async def _ready(self) -> _Running:
        async with self._starting:
            if self._running is None or self._running.process.returncode is not None:
                await self._stop()
                await self._start()
            assert self._running is not None
            return self._running

    async def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="wb-model-"))
        try:
            process = await self._spawned(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        service = Service(name=_NAME, url="http://localhost/v1")
        self._running = _Running(
            process,
            folder,
            OpenAiModel(
                service,
                self._bounds,
                model=self._file.stem,
                key="",
                max_tokens=self._max_tokens,
                socket_path=str(_socket(folder)),
            ),
        )
        try:
            await self._until_ready(process, folder)
        except BaseException:
            await self._stop()
            raise

    async def _spawned(self, folder: Path) -> asyncio.subprocess.Process:
        with (folder / "log").open("wb") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", local_server.__file__, str(self._file), str(_socket(folder)), self._file.stem),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                # BARRIER: our environment has keys in it; what is imported is what we would import. Held by
                # tests/services/test_local_model.py.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                cwd="/",
                # Not `process_group`: the server's loop does not know that.
                start_new_session=True,
            )

    async def _until_ready(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        assert process.stdout is not None
        said = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                said = await process.stdout.readline()
        if said != local_server.READY:
            words = excerpt((folder / "log").read_bytes()[-_MOST_SAID_BYTES:].strip().rpartition(b"\n")[2], ())
            raise UpstreamUnavailable(
                f"{_NAME} did not start with {self._file}: {words or f'nothing was heard of it for {START_S:.0f} s'}; "
                "check WORKBENCH_LLM_MODEL",
                {"service": _NAME},
            )

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        ending = asyncio.ensure_future(_ended(running))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Whoever is cancelled meanwhile leaves no process behind; it takes STOP_S and KILL_S at most.
            await asyncio.wait([ending])
            raise


async def _ended(running: _Running) -> None:
    await running.model.aclose()
    process = running.process
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        async with asyncio.timeout(KILL_S):
            await process.wait()
    # By itself, unless it was killed.
    shutil.rmtree(running.folder, ignore_errors=True)


def _socket(folder: Path) -> Path:
    return folder / "model.sock"
