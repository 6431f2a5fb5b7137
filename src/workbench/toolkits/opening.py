"""Which source a toolkit that was added asks for; nothing is started or asked before its tools are."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.contracts.tools import ToolSource
from workbench.egress.policy import AddressPolicy
from workbench.errors import NotConfigured
from workbench.model.added import AddedKind, AddedToolkit
from workbench.model.connection import Secret
from workbench.model.toolkit import Toolkit

if TYPE_CHECKING:
    from workbench.egress.fetch import Fetcher
    from workbench.egress.guard import GuardedBackend, SystemResolver
    from workbench.toolkits.children import Program
    from workbench.toolkits.sending import ServiceCaller


_MODULES = {
    AddedKind.PROGRAM: "mcp_servers",
    AddedKind.SERVER: "mcp_servers",
    AddedKind.FUNCTIONS: "function_source",
    AddedKind.COMPOSIO: "upstream",
    AddedKind.OPENAPI: "documents",
}


class AddedSource(ToolSource, Protocol):
    """A source that somebody has to close."""

    async def refused(self) -> dict[str, str]:
        """Tools that it has and that are not used, with the reason."""
        ...

    async def aclose(self) -> None:
        """End what runs of it. May be called twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What sources stand on."""

    policy: AddressPolicy
    """where servers may be"""
    folder: Path
    """where programs get a folder of their own, each by its name"""


class Opener:
    """Makes them. `aclose` it after the last one."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._resolver: SystemResolver | None = None
        self._calls: ServiceCaller | None = None
        self._fetcher: Fetcher | None = None

    async def prepare(self, kinds: Iterable[AddedKind]) -> None:
        """Their libraries, which take a second or two to be read, aside from whoever is served meanwhile."""
        for name in {_MODULES[kind] for kind in kinds}:
            await asyncio.to_thread(importlib.import_module, f"workbench.toolkits.{name}")

    def open(self, added: AddedToolkit) -> AddedSource:
        """Nothing runs yet.

        Raises:
            NotConfigured: its secrets cannot be opened.
            InvalidRequest: its address cannot be used.
        """
        match added.kind:
            case AddedKind.PROGRAM | AddedKind.SERVER:
                return self._mcp(added)
            case AddedKind.FUNCTIONS:
                return self._functions(added)
            case AddedKind.COMPOSIO:
                return self._composio(added)
            case AddedKind.OPENAPI:
                return self._openapi(added)

    async def aclose(self) -> None:
        """May be called twice."""
        if self._resolver is not None:
            self._resolver.close()
        if self._calls is not None:
            await self._calls.aclose()
        if self._fetcher is not None:
            await self._fetcher.aclose()

    def _mcp(self, added: AddedToolkit) -> AddedSource:
        # Here and below: who adds none does not wait for their libraries.
        from workbench.toolkits.mcp_servers import McpAddress, McpOptions, McpSource, secrets_of

        options = McpOptions(call_s=float(added.options.get("timeout_s", McpOptions().call_s)))
        if added.kind is AddedKind.PROGRAM:
            return McpSource(
                _toolkit(added),
                self._program(added),
                backend=self._backend(),
                secrets=tuple(added.secrets.values()),
                options=options,
            )
        headers = added.group("headers")
        if "bearer" in added.secrets:
            headers["Authorization"] = Secret(f"Bearer {added.secrets['bearer'].reveal()}")
        return McpSource(
            _toolkit(added),
            McpAddress(url=str(added.options["url"]), headers=headers),
            backend=self._backend(),
            secrets=tuple(secrets_of(headers)),
            options=options,
        )

    def _program(self, added: AddedToolkit) -> Program:
        from workbench.toolkits.children import Program

        folder = Path(str(added.options.get("folder") or self._ground.folder / added.slug))
        if "folder" not in added.options:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700, parents=True)
        return Program(
            command=tuple(added.options["command"]),
            env={name: one.reveal() for name, one in added.group("env").items()},
            folder=str(folder),
            memory_mib=int(added.options.get("memory_mib", 2048)),
        )

    def _functions(self, added: AddedToolkit) -> AddedSource:
        from workbench.toolkits.function_source import FunctionsFile, FunctionSource

        return FunctionSource(
            FunctionsFile(
                file=str(added.options["functions"]),
                slug=added.slug,
                env=added.group("env"),
                workers=int(added.options.get("workers", 4)),
                call_s=float(added.options.get("timeout_s", 120)),
                memory_mib=int(added.options.get("memory_mib", 2048)),
            )
        )

    def _composio(self, added: AddedToolkit) -> AddedSource:
        from workbench.toolkits.upstream import ADDRESS, Upstream, UpstreamSource

        if "key" not in added.secrets:
            raise NotConfigured(
                f"the key of {added.slug} cannot be opened: that of the connections was changed or lost; remove the "
                "toolkit and add it again"
            )
        upstream = Upstream(
            toolkits=tuple(added.options["composio"]),
            key=added.secrets["key"],
            address=str(added.options.get("address", ADDRESS)),
            call_s=float(added.options.get("timeout_s", 180)),
        )
        return UpstreamSource(upstream, backend=self._backend())

    def _openapi(self, added: AddedToolkit) -> AddedSource:
        from workbench.toolkits.documents import Described, DocumentSource

        described = Described(
            slug=added.slug,
            document=str(added.options["openapi"]),
            base_url=str(added.options.get("base_url", "")),
            name=str(added.options.get("name", "")),
            description=str(added.options.get("description", "")),
            hosts=tuple(added.options.get("hosts", ())),
            endpoints=tuple(added.options.get("endpoints", ())),
        )
        return DocumentSource(described, calls=self._service_calls, fetching=self._documents)

    def _service_calls(self) -> ServiceCaller:
        from workbench.toolkits.sending import ServiceCaller

        if self._calls is None:
            self._calls = ServiceCaller(self._ground.policy)
        return self._calls

    def _documents(self) -> Fetcher:
        from workbench.egress.fetch import Fetcher

        if self._fetcher is None:
            self._fetcher = Fetcher(self._ground.policy)
        return self._fetcher

    def _backend(self) -> GuardedBackend:
        from workbench.egress.guard import Guard, GuardedBackend, SystemResolver

        if self._resolver is None:
            self._resolver = SystemResolver()
        # BARRIER: a server's address would lead to what only this machine reaches; held by
        # tests/toolkits/test_one_server.py.
        return GuardedBackend(Guard(self._ground.policy, self._resolver))


def _toolkit(added: AddedToolkit) -> Toolkit:
    name = str(added.options.get("name") or added.slug.replace("_", " ").title())
    return Toolkit(
        slug=added.slug,
        name=name,
        description=str(added.options.get("description") or f"Tools of the MCP server {name}."),
        no_auth=True,
    )
