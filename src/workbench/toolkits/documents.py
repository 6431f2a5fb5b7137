"""DocumentSource: a service by its description, in a file here or at a URL; read again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.contracts.fetching import Fetching
from workbench.contracts.service_calls import ServiceCalls
from workbench.errors import InvalidRequest, NotConfigured, UpstreamUnavailable, WorkbenchError
from workbench.model.toolkit import Tool, ToolCall, Toolkit, ToolResult, endpoints_of

if TYPE_CHECKING:
    from workbench.toolkits.openapi import OpenApiTools

_MOST_BYTES = 32 * 2**20
_FETCH_S = 60.0
# One at a URL is asked for again after so long.
_KEEP_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Which service."""

    slug: str
    document: str
    """an absolute path, or a URL"""
    base_url: str = ""
    """where the service is; from the document if empty"""
    name: str = ""
    description: str = ""
    hosts: tuple[str, ...] = ()
    """the only ones that are called, whatever the document says later; those of its first reading if empty"""
    endpoints: tuple[str, ...] = ()
    """the same for where tokens are asked for"""

    @property
    def is_remote(self) -> bool:
        """Whether the document is at a URL."""
        return self.document.startswith(("http://", "https://"))


class DocumentSource:
    """A ToolSource. `aclose` it."""

    def __init__(
        self, described: Described, *, calls: Callable[[], ServiceCalls], fetching: Callable[[], Fetching]
    ) -> None:
        self._described = described
        self._calls = calls
        self._fetching = fetching
        self._compiled: OpenApiTools | None = None
        self._left_out: dict[str, str] = {}
        self._version: tuple[float, ...] = ()
        self._hosts, self._endpoints = described.hosts, described.endpoints
        self._lock = asyncio.Lock()

    async def toolkits(self) -> tuple[Toolkit, ...]:
        """As the contract has it. Raises: InvalidRequest, NotConfigured: the document cannot be used."""
        return await (await self._read()).toolkits()

    async def tools(self) -> tuple[Tool, ...]:
        """As the contract has it. Raises: InvalidRequest, NotConfigured: the document cannot be used."""
        return await (await self._read()).tools()

    async def refused(self) -> dict[str, str]:
        """What of the document was left out, with the reason."""
        return self._left_out

    async def run(self, call: ToolCall) -> ToolResult:
        """As the contract has it."""
        return await (await self._read()).run(call)

    async def aclose(self) -> None:
        """There is nothing that runs."""

    async def _read(self) -> OpenApiTools:
        if self._compiled is not None and not self._is_old():
            return self._compiled
        async with self._lock:
            if self._compiled is None or self._is_old():
                version = self._version_now()
                content = await self._fetched() if self._described.is_remote else self._from_file()
                # A large one takes seconds.
                self._compiled = await asyncio.to_thread(self._compile, content)
                self._version = version
            return self._compiled

    def _is_old(self) -> bool:
        now = self._version_now()
        return now[0] - self._version[0] > _KEEP_S if self._described.is_remote else now != self._version

    def _version_now(self) -> tuple[float, ...]:
        if self._described.is_remote:
            return (asyncio.get_running_loop().time(),)
        try:
            found = Path(self._described.document).stat()
        except OSError as problem:
            raise NotConfigured(f"{self._described.document} cannot be read: {problem.strerror}") from problem
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def _from_file(self) -> bytes:
        try:
            with Path(self._described.document).open("rb") as file:
                return file.read(_MOST_BYTES + 1)
        except OSError as problem:
            raise NotConfigured(f"{self._described.document} cannot be read: {problem.strerror}") from problem

    async def _fetched(self) -> bytes:
        try:
            async with (
                asyncio.timeout(_FETCH_S),
                self._fetching().fetch(self._described.document, most_bytes=_MOST_BYTES) as answer,
            ):
                return b"".join([chunk async for chunk in answer.chunks()])
        except TimeoutError:
            raise UpstreamUnavailable(
                f"the document of {self._described.slug} did not come within {_FETCH_S:g} s"
            ) from None

    def _compile(self, content: bytes) -> OpenApiTools:
        from workbench.toolkits.compiling.compiler import Wanted, compile_openapi
        from workbench.toolkits.compiling.document import parsed
        from workbench.toolkits.discovery import compile_added, is_discovery
        from workbench.toolkits.openapi import OpenApiTools

        told = self._described
        wanted = Wanted(
            slug=told.slug,
            name=told.name,
            description=told.description,
            base_url=told.base_url,
            hosts=self._hosts if told.is_remote else (),
        )
        try:
            document = parsed(content)
            made = (compile_added if is_discovery(document) else compile_openapi)(document, wanted)
        except WorkbenchError as problem:
            raise InvalidRequest(f"the document of {told.slug} cannot be used: {problem.message}") from problem
        # BARRIER: whoever writes the document would have accounts that were connected before sent somewhere else; held
        # by tests/toolkits/test_documents.py.
        endpoints = endpoints_of(made.toolkit)
        if self._hosts and told.is_remote and (away := sorted(set(endpoints) - set(self._endpoints))):
            raise InvalidRequest(
                f"the document of {told.slug} asks for tokens somewhere else than when it was added: {away[0][:200]}; "
                "if that is meant, remove the toolkit and add it again"
            )
        self._hosts, self._endpoints = made.toolkit.hosts, endpoints
        self._left_out = {f"({number})": words for number, words in enumerate(made.warnings, 1)}
        return OpenApiTools([made], self._calls())
