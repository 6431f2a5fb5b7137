"""Configured: a source for each toolkit that was added, in the records or in the settings file, as they are now.

What is added is there for the next call, and what is removed is ended, without a restart. A server that is down takes
nothing from the others: its toolkit stays, with the tools that it had last, and is asked again after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from workbench.contracts.added import Standing
from workbench.contracts.tools import ToolSource
from workbench.errors import InternalError, NotConfigured, WorkbenchError
from workbench.model.added import AddedKind, AddedToolkit
from workbench.model.ids import ProjectId
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult
from workbench.toolkits.opening import AddedSource, Opener
from workbench.toolkits.settings_file import read_file

_log = logging.getLogger(__name__)
# What another process added is seen after so long; what this one did, at once.
_LOOK_S = 1.0
# Whoever lists tools waits so long for one that is just being started; it goes on being started. One that has failed
# is waited for no longer than nobody minds.
_WAIT_S, _WAIT_FAILED_S = 15.0, 1.0
_AGAIN_S = 20.0

Kept = Callable[[], Awaitable[Sequence[AddedToolkit]]]
_Key = tuple[str, str]


class Configured:
    """A ToolkitHouse. `aclose` it."""

    def __init__(self, *, kept: Kept, opener: Opener, file: Path | None, environ: Mapping[str, str]) -> None:
        self._kept = kept
        self._opener = opener
        self._file = file
        self._environ = environ
        self._open: dict[_Key, _Watched] = {}
        self._in_file: tuple[AddedToolkit, ...] = ()
        self._file_version: tuple[int, int, int] | None = None
        self._file_problem = ""
        self._looked_at: float | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False

    async def sources(self, project: ProjectId | None) -> tuple[ToolSource, ...]:
        """As the contract has it."""
        return tuple(one for one in await self._now() if one.added.project in (None, project))

    async def standing(self, project: ProjectId | None) -> tuple[Standing, ...]:
        """As the contract has it."""
        wanted = [one for one in await self._now() if project is None or one.added.project in (None, project)]
        return tuple(await asyncio.gather(*(one.standing() for one in wanted)))

    async def tried(self, added: AddedToolkit) -> Standing:
        """As the contract has it."""
        await self._opener.prepare([added.kind])
        source = self._opener.open(added)
        try:
            tools = await source.tools()
            toolkits, refused = await source.toolkits(), await source.refused()
        finally:
            await source.aclose()
        return Standing(added=added, toolkits=toolkits, tools=tools, refused=refused)

    async def problem(self) -> str:
        """As the contract has it."""
        await self._now()
        return self._file_problem

    def changed(self) -> None:
        """As the contract has it."""
        self._looked_at = None

    async def aclose(self) -> None:
        """End everything that runs. May be called twice."""
        self._is_closed = True
        open_now, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.aclose() for one in open_now))
        await self._opener.aclose()

    async def _now(self) -> list[_Watched]:
        loop = asyncio.get_running_loop()
        if self._looked_at is None or loop.time() - self._looked_at > _LOOK_S:
            async with self._lock:
                if self._looked_at is None or loop.time() - self._looked_at > _LOOK_S:
                    # Before it is read: what comes meanwhile is seen the next time.
                    self._looked_at = loop.time()
                    await self._follow()
        return list(self._open.values())

    async def _follow(self) -> None:
        if self._is_closed:
            raise NotConfigured("this workbench is being closed")
        self._read_file()
        wanted: dict[_Key, AddedToolkit] = {}
        # The file first: of two of the same name that one counts, as whoever runs the workbench wrote it.
        for one in (*self._in_file, *await self._kept()):
            wanted.setdefault((one.project or "", one.slug), one)
        await self._opener.prepare({one.kind for one in wanted.values()})
        over = [key for key, one in self._open.items() if wanted.get(key) != one.added]
        ended = [self._open.pop(key) for key in over]
        for key, added in wanted.items():
            if key not in self._open:
                self._open[key] = _Watched(added, self._opener)
        self._open = {key: self._open[key] for key in wanted}
        await asyncio.gather(*(one.aclose() for one in ended))

    def _read_file(self) -> None:
        if self._file is None:
            return
        try:
            found = self._file.stat()
            version = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            version = (0, 0, 0)
        if version == self._file_version:
            return
        self._file_version = version
        try:
            self._in_file = read_file(self._file, self._environ)
            self._file_problem = ""
        except WorkbenchError as problem:
            # What it had before goes on: somebody is in the middle of writing it.
            self._file_problem = problem.message
            _log.warning("the toolkits of the settings file stay as they were: %s", problem.message)


class _Watched:
    """A source, and what it had when it could be asked last."""

    def __init__(self, added: AddedToolkit, opener: Opener) -> None:
        self.added = added
        self._problem = ""
        self._refused: Mapping[str, str] = {}
        self._toolkits: tuple[Toolkit, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self._asking: asyncio.Task[None] | None = None
        self._failed_at: float | None = None
        self._source: AddedSource | None = None
        try:
            self._source = opener.open(added)
        except WorkbenchError as problem:
            self._problem = problem.message

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As the contract has it; never fails."""
        await self._asked()
        return self._toolkits or _named(self.added, self._problem)

    async def tools(self) -> tuple[Tool, ...]:
        """As the contract has it; never fails."""
        await self._asked()
        return self._tools

    async def run(self, call: ToolCall) -> ToolResult:
        """As the contract has it."""
        if self._source is None:
            raise NotConfigured(self._problem, {"toolkit": self.added.slug})
        return await self._source.run(call)

    async def standing(self) -> Standing:
        """As it is now."""
        await self._asked()
        return Standing(
            added=self.added,
            toolkits=self._toolkits,
            tools=self._tools,
            refused=self._refused,
            problem=self._problem,
        )

    async def aclose(self) -> None:
        """May be called twice."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        if self._source is not None:
            await self._source.aclose()

    async def _asked(self) -> None:
        loop = asyncio.get_running_loop()
        if self._source is None:
            return
        if self._failed_at is not None and loop.time() - self._failed_at < _AGAIN_S:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(self._source), name=f"tools of {self.added.slug}")
        wait_s = _WAIT_S if self._failed_at is None else _WAIT_FAILED_S
        await asyncio.wait([self._asking], timeout=wait_s)
        if not self._asking.done() and not self._tools and self._failed_at is None:
            self._problem = f"it is being started, and has not told its tools after {_WAIT_S:.0f} s"

    async def _ask(self, source: AddedSource) -> None:
        try:
            tools, toolkits, refused = await source.tools(), await source.toolkits(), await source.refused()
            # At once, so that each tool has its toolkit; and the same value for the same, by which others know that
            # nothing has changed.
            if (tools, toolkits) != (self._tools, self._toolkits):
                self._tools, self._toolkits = tools, toolkits
            self._refused = refused
            self._problem, self._failed_at = "", None
        except WorkbenchError as problem:
            self._failed(problem)
        except Exception as problem:  # noqa: BLE001 - a defect of ours, which must not take the others along
            _log.exception("the tools of %s", self.added.slug)
            self._failed(InternalError(f"the tools of {self.added.slug} cannot be listed: {type(problem).__name__}"))

    def _failed(self, problem: WorkbenchError) -> None:
        self._problem = problem.message
        with contextlib.suppress(RuntimeError):
            self._failed_at = asyncio.get_running_loop().time()


def _named(added: AddedToolkit, problem: str) -> tuple[Toolkit, ...]:
    """For one that could never be asked: it is there, and says why it has no tools."""
    slugs = [str(one) for one in added.options["composio"]] if added.kind is AddedKind.COMPOSIO else [added.slug]
    words = f"It cannot be used now: {problem}" if problem else ""
    return tuple(
        Toolkit(slug=slug, name=slug.replace("_", " ").title(), description=words, no_auth=True) for slug in slugs
    )
