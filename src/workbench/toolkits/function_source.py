"""FunctionSource: tools of a Python file that the operator names, run by processes of their own, a few at a time.

A call that takes too long ends its process, and nothing else. A file that was changed is read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, NotConfigured, NotFound, UpstreamBadAnswer
from workbench.model.connection import Secret
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.children import Child, Program
from workbench.toolkits.scrubbing import Scrubber

_WORKER = "workbench.toolkits.function_worker"
_MOST_WORDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsFile:
    """Which file, and within which bounds."""

    file: str
    slug: str
    """that it was added by: the name of toolkits in it that have none"""
    env: Mapping[str, Secret] = field(default_factory=dict)
    """all that its functions find in their environment, besides PATH, HOME and the language"""
    workers: int = 4
    """calls at once"""
    call_s: float = 120.0
    """of a function that says nothing else"""
    start_s: float = 60.0
    memory_mib: int = 2048
    most_bytes: int = 50 * 2**20


@dataclass(frozen=True, slots=True)
class _Told:
    version: tuple[int, int, int]
    toolkits: tuple[Toolkit, ...]
    tools: tuple[Tool, ...]
    limits: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class _Worker:
    child: Child
    version: tuple[int, int, int]


class FunctionSource:
    """A ToolSource. `aclose` it."""

    def __init__(self, wanted: FunctionsFile) -> None:
        self._wanted = wanted
        self._scrubber = Scrubber(None, wanted.env.values())
        self._told: _Told | None = None
        self._lock = asyncio.Lock()
        self._room = asyncio.Semaphore(wanted.workers)
        self._idle: list[_Worker] = []
        self._busy: set[Child] = set()
        self._is_closed = False

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As the contract has it. Raises: NotConfigured."""
        return (await self._read()).toolkits

    async def tools(self) -> tuple[Tool, ...]:
        """As the contract has it. Raises: NotConfigured."""
        return (await self._read()).tools

    async def refused(self) -> dict[str, str]:
        """None: a file is taken whole or not at all."""
        return {}

    async def run(self, call: ToolCall) -> ToolResult:
        """As the contract has it."""
        told = await self._read()
        if call.slug not in told.limits:
            raise NotFound(
                f"{call.slug} is no function of {self._wanted.file}; it has {', '.join(sorted(told.limits))[:500]}",
                {"tool": call.slug[:100]},
            )
        limit_s = told.limits[call.slug] or self._wanted.call_s
        async with self._room, self._worker(told.version) as worker:
            try:
                async with asyncio.timeout(limit_s):
                    return self._result(call.slug, await self._asked(worker.child, call))
            except TimeoutError:
                words = f"{call.slug} took more than {limit_s:g} s and was ended; it may have been carried out in part"
                return await self._given_up(worker, words)
            except ValueError:
                words = (
                    f"the answer of {call.slug} has more than {self._wanted.most_bytes:,} bytes; give less, or a file"
                )
                return await self._given_up(worker, words)
            except OSError:
                return await self._given_up(worker, _ended(call.slug, self._words(worker.child)))

    async def aclose(self) -> None:
        """End all processes. May be called twice."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        await self._end([*(one.child for one in idle), *self._busy])

    async def _asked(self, child: Child, call: ToolCall) -> dict[str, Any]:
        spec = call.session.spec
        caller = {"session": spec.id, "user": spec.user, "project": spec.project}
        asked = {"slug": call.slug, "arguments": call.arguments, "caller": caller}
        await child.say(json.dumps(asked).encode())
        line = await child.hear()
        if not line:
            raise BrokenPipeError
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _result(self, slug: str, answer: dict[str, Any]) -> ToolResult:
        if "wrong" in answer:
            raise InvalidRequest(f"{slug} cannot use these arguments: {answer['wrong']}", {"tool": slug})
        if "error" in answer:
            return ToolResult(data={}, error=self._scrubber.text(answer["error"]))
        return ToolResult(data=self._scrubber.value(answer["data"]))

    async def _given_up(self, worker: _Worker, words: str) -> ToolResult:
        await worker.child.aclose()
        return ToolResult(data={}, error=words)

    @contextlib.asynccontextmanager
    async def _worker(self, version: tuple[int, int, int]) -> AsyncIterator[_Worker]:
        worker = await self._free(version)
        self._busy.add(worker.child)
        whole = False
        try:
            yield worker
            whole = True
        except InvalidRequest:
            whole = True
            raise
        finally:
            self._busy.discard(worker.child)
            # One that was left in the middle of something would give its answer to the next.
            if whole and not worker.child.silent.is_set() and not worker.child.is_gone and not self._is_closed:
                self._idle.append(worker)
            else:
                await worker.child.aclose()

    async def _free(self, version: tuple[int, int, int]) -> _Worker:
        old = [one for one in self._idle if one.version != version or one.child.is_gone]
        self._idle = [one for one in self._idle if one not in old]
        await self._end(one.child for one in old)
        if self._idle:
            return self._idle.pop()
        child, _ = await self._started()
        return _Worker(child, version)

    async def _read(self) -> _Told:
        version = self._version()
        if self._told is not None and self._told.version == version:
            return self._told
        async with self._lock:
            if self._told is None or self._told.version != version:
                child, lines = await self._started()
                self._told = _told(version, lines)
                self._idle.append(_Worker(child, version))
            return self._told

    def _version(self) -> tuple[int, int, int]:
        """Raises: NotConfigured."""
        try:
            found = Path(self._wanted.file).stat()
        except OSError as problem:
            raise NotConfigured(f"{self._wanted.file} cannot be read: {problem.strerror}") from problem
        return found.st_mtime_ns, found.st_size, found.st_ino

    async def _started(self) -> tuple[Child, list[dict[str, Any]]]:
        """A process that has read the file, and the tools that it found. Raises: NotConfigured."""
        if self._is_closed:
            raise NotConfigured(f"the toolkit of {self._wanted.file} was removed")
        child = await Child.start(
            Program(
                command=(sys.executable, "-I", "-m", _WORKER, self._wanted.file, self._wanted.slug),
                env={name: one.reveal() for name, one in self._wanted.env.items()},
                folder=str(Path(self._wanted.file).parent),
                memory_mib=self._wanted.memory_mib,
                most_line_bytes=self._wanted.most_bytes,
            )
        )
        try:
            async with asyncio.timeout(self._wanted.start_s):
                line = await child.hear()
            told: dict[str, Any] = json.loads(line) if line else {"problem": self._words(child) or "its process ended"}
            if "problem" in told:
                raise NotConfigured(
                    f"the functions of {self._wanted.file} cannot be used: {self._scrubber.text(told['problem'])}",
                    {"file": self._wanted.file},
                )
        except TimeoutError:
            await child.aclose()
            raise NotConfigured(f"{self._wanted.file} took more than {self._wanted.start_s:g} s to be read") from None
        except ValueError:
            await child.aclose()
            raise UpstreamBadAnswer(f"what {self._wanted.file} tells of its functions is too long") from None
        except BaseException:
            await child.aclose()
            raise
        return child, told["tools"]

    def _words(self, child: Child) -> str:
        return self._scrubber.text(child.words[-_MOST_WORDS:])

    @staticmethod
    async def _end(children: Iterable[Child]) -> None:
        await asyncio.gather(*(child.aclose() for child in children))


def _told(version: tuple[int, int, int], lines: list[dict[str, Any]]) -> _Told:
    toolkits = {one["toolkit"]["slug"]: Toolkit(**one["toolkit"], no_auth=True) for one in lines}
    tools = tuple(
        Tool(
            slug=one["slug"],
            name=one["name"],
            description=one["description"],
            toolkit=one["toolkit"]["slug"],
            input_schema=one["input_schema"],
            output_schema=one["output_schema"],
            tags=tuple(one["tags"]),
            no_auth=True,
        )
        for one in lines
    )
    return _Told(version, tuple(toolkits.values()), tools, {one["slug"]: one["timeout_s"] for one in lines})


def _ended(slug: str, said: str) -> str:
    words = f"{slug} ended its process; it may have been carried out in part"
    return f"{words}; it said: {said}" if said else words
