"""Child: a program of the operator's, in a process group of its own, with an environment that it was given whole.

What it says on standard output is read by others, line by line; of what it says on standard error the end is kept, for
messages. Restarting it is left to others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workbench.errors import NotConfigured

_KEEPER = str(Path(__file__).with_name("keeper.py"))
# The keeper asks, waits 2 s, kills and looks for another 2 s.
_STOP_S = 8.0
_KEPT_WORDS = 4000
_POLL_S, _MOMENT_S = 0.02, 1.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""where programs are looked for unless the operator says otherwise"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and how."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """all that it has besides PATH, HOME and the language"""
    folder: str = "/"
    """where it starts, and its HOME unless `env` has another"""
    memory_mib: int = 2048
    """of it and whatever it starts, together"""
    most_line_bytes: int = 64 * 2**20
    """of one line that it says"""


class Child:
    """One that runs. Owned by who started it: `aclose` it, or it ends with this process."""

    def __init__(self, process: asyncio.subprocess.Process, control: int, program: Program) -> None:
        self._process = process
        self._control: int | None = control
        self._program = program
        self._words = bytearray()
        self.silent = asyncio.Event()
        """set when it will say no more on standard output"""
        self._listening = asyncio.create_task(self._listen(), name=f"words of {program.command[0]}")

    @classmethod
    async def start(cls, program: Program) -> Child:
        """Start it; that it cannot be executed shows in how it ends.

        Raises:
            NotConfigured: its folder is not there, or there is no room for another process.
        """
        theirs, ours = os.pipe2(os.O_CLOEXEC)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _KEEPER, str(theirs), str(program.memory_mib), *program.command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(program),
                cwd=program.folder,
                pass_fds=(theirs,),
                start_new_session=True,
                limit=program.most_line_bytes,
            )
        except (OSError, ValueError) as problem:
            os.close(ours)
            why = getattr(problem, "strerror", None) or str(problem)
            raise NotConfigured(f"{program.command[0]} cannot be started in {program.folder}: {why}") from problem
        finally:
            os.close(theirs)
        return cls(process, ours, program)

    @property
    def pid(self) -> int:
        """Of its keeper."""
        return self._process.pid

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    @property
    def words(self) -> str:
        """The last that it said on standard error."""
        return self._words.decode("utf-8", "replace").strip()

    async def say(self, line: bytes) -> None:
        """One line, to its standard input. Raises: OSError."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def hear(self) -> bytes:
        """The next line of its standard output; empty at its end.

        Raises:
            ValueError: the line is longer than it may be.
        """
        assert self._process.stdout is not None
        # BARRIER: a line without an end would fill the memory of the server; held by tests/toolkits/test_children.py.
        try:
            line = await self._process.stdout.readline()
        except ValueError:
            self.silent.set()
            raise
        if not line:
            self.silent.set()
        return line

    async def ended(self) -> int | None:
        """How it ended, as a shell has it; None if it did not within a moment."""
        await self._is_gone_within(_MOMENT_S)
        return self._process.returncode

    async def aclose(self) -> None:
        """It and all that it started are gone then. May be called twice."""
        control, self._control = self._control, None
        if control is None:
            return
        os.close(control)
        draining = asyncio.create_task(self._drain())
        try:
            await asyncio.shield(self._stopped())
        finally:
            for task in (draining, self._listening):
                task.cancel()
            # The pipes: what still holds their other ends is nobody that we know.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way
            await asyncio.wait([draining, self._listening])

    async def _stopped(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if not await self._is_gone_within(_STOP_S):
            # The program goes with its keeper.
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._is_gone_within(_STOP_S)

    async def _is_gone_within(self, seconds: float) -> bool:
        # Not `wait`, which waits for the ends of pipes as well.
        until = asyncio.get_running_loop().time() + seconds
        while self._process.returncode is None and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        return self._process.returncode is not None

    async def _drain(self) -> None:
        """A program that is in the middle of saying something would wait for a reader, and so would we for it."""
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, RuntimeError):
            while await self._process.stdout.read(65536):
                pass

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._words += chunk
            del self._words[:-_KEPT_WORDS]


def environment(program: Program) -> dict[str, str]:
    """All of it, and nothing of ours."""
    # BARRIER: keys of services and databases are in the environment of servers; held by
    # tests/toolkits/test_children.py.
    return {"PATH": PATH, "HOME": program.folder, "LANG": "C.UTF-8", **program.env}
