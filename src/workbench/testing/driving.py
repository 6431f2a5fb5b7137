"""How the contract suites drive a sandbox: start, read to the end, wait for a condition; each wait is bounded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from workbench.contracts.engine import OutputChunk, Process, Sandbox
from workbench.model.ids import new_process_id
from workbench.model.process import ProcessExit, ProcessSpec, Stream
from workbench.model.tier import STANDARD, Tier

# An emulated machine under load needs a hundred times what a desktop does; nothing here takes a second on one.
PATIENCE_S = 60.0
_LOOK_AGAIN_S = 0.02

# Small enough to be met in a moment.
TINY = replace(
    STANDARD,
    name="tiny",
    memory_bytes=256 * 2**20,
    processes=40,
    scratch_bytes=16 * 2**20,
    scratch_inodes=2000,
    shm_bytes=8 * 2**20,
)


T = TypeVar("T")


class MakeSandbox(Protocol):
    """Makes sandboxes that the fixture closes."""

    async def __call__(self, *, tier: Tier = STANDARD, env: dict[str, str] | None = None) -> Sandbox:
        """One more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A process read to its end."""

    exit: ProcessExit
    stdout: bytes
    stderr: bytes


def program(*argv: str, stdin: bool = False, cwd: str = "/home/user", env: dict[str, str] | None = None) -> ProcessSpec:
    """A program to execute."""
    return ProcessSpec(id=new_process_id(), argv=argv, stdin=stdin, cwd=cwd, env=env or {})


def shell(script: str, *, stdin: bool = False, env: dict[str, str] | None = None) -> ProcessSpec:
    """A script for /bin/sh."""
    return program("/bin/sh", "-c", script, stdin=stdin, env=env)


def code(source: str, *, stdin: bool = False) -> ProcessSpec:
    """Python for the `run_code` entry."""
    return ProcessSpec(id=new_process_id(), entry="run_code", payload=source.encode(), stdin=stdin)


async def finish(process: Process) -> Finished:
    """All it prints, and its end."""
    async with asyncio.timeout(PATIENCE_S):
        parts: dict[Stream, list[bytes]] = {stream: [] for stream in Stream}
        async for chunk in process.output():
            parts[chunk.stream].append(chunk.data)
        return Finished(
            exit=await process.wait(), stdout=b"".join(parts[Stream.STDOUT]), stderr=b"".join(parts[Stream.STDERR])
        )


async def run(sandbox: Sandbox, spec: ProcessSpec) -> Finished:
    """Start and finish."""
    return await finish(await sandbox.start(spec))


async def still_works(sandbox: Sandbox) -> bool:
    """Whether a program and an entry still run in it."""
    echoed = await run(sandbox, program("/bin/echo", "here"))
    printed = await run(sandbox, code("print('here')"))
    return echoed.stdout == printed.stdout == b"here\n"


class Reading:
    """Reads a process's output as far as the test asks; for use as `async with`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._chunks: AsyncIterator[OutputChunk] = process.output()
        self.stdout = b""

    async def __aenter__(self) -> Reading:
        return self

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    async def until(self, text: bytes) -> None:
        """Until standard output has `text`."""
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.stdout:
                chunk = await anext(self._chunks)
                if chunk.stream is Stream.STDOUT:
                    self.stdout += chunk.data

    async def rest(self) -> bytes:
        """Until both streams are closed; all of standard output."""
        async with asyncio.timeout(PATIENCE_S):
            async for chunk in self._chunks:
                if chunk.stream is Stream.STDOUT:
                    self.stdout += chunk.data
        return self.stdout


async def eventually(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Return when `condition` holds; fail with `what` when it does not in time."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await condition():  # noqa: ASYNC110  what is looked at cannot tell us
                await asyncio.sleep(_LOOK_AGAIN_S)
    except TimeoutError:
        raise AssertionError(f"never came true: {what}") from None


async def cancelled_after(turns: int, work: Awaitable[T]) -> T | None:
    """Cancel `work` after that many turns of the loop; what it gave if it was faster."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return None
