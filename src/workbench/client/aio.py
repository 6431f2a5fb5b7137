"""The client for async programs. Every name is one of sync.py, where it is described."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType

from workbench.client import _requests
from workbench.client._sending import DEFAULT_RETRY_FOR_S, DEFAULT_TIMEOUT_S, AsyncSender, Target
from workbench.client.aio_session import AsyncSession
from workbench.client.aio_toolkits import AsyncAuthConfigs, AsyncConnections, AsyncToolkits
from workbench.client.local import LocalServer
from workbench.client.values import SandboxOptions, ScopeName
from workbench.errors import WorkbenchError
from workbench.wire import rest


class AsyncKeys:
    """As `Keys`, with `await`."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender

    async def create(
        self, label: str = "", *, scopes: Iterable[ScopeName] = ("sessions",), lifetime_s: int | None = None
    ) -> rest.NewKey:
        """As `Keys.create`."""
        return await self._sender.send(_requests.create_key(label, scopes, lifetime_s))

    async def list(self) -> list[rest.Key]:
        """As `Keys.list`."""
        return await self._sender.send(_requests.list_keys())

    async def rotate(self, id: str, *, overlap_s: int = 24 * 3600) -> rest.NewKey:  # noqa: A002
        """As `Keys.rotate`."""
        return await self._sender.send(_requests.rotate_key(id, overlap_s))

    async def revoke(self, id: str) -> rest.Key:  # noqa: A002
        """As `Keys.revoke`."""
        return await self._sender.send(_requests.revoke_key(id))


class AsyncWorkbench:
    """As `Workbench`, with `await`. Belongs to the event loop that it is first used in."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry_for_s: float = DEFAULT_RETRY_FOR_S,
    ) -> None:
        """As `Workbench`."""
        target = Target(base_url, api_key, timeout_s=timeout_s, retry_for_s=retry_for_s)
        self._sender = AsyncSender(target)
        self._server: LocalServer | None = None
        self.url = target.url
        self.keys = AsyncKeys(self._sender)
        self.toolkits = AsyncToolkits(self._sender)
        self.connections = AsyncConnections(self._sender)
        self.auth_configs = AsyncAuthConfigs(self._sender)

    @classmethod
    async def local(cls, data_dir: str | Path | None = None, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> AsyncWorkbench:
        """As `Workbench.local`: `async with await AsyncWorkbench.local() as wb`."""
        starting = asyncio.ensure_future(asyncio.to_thread(LocalServer.start, data_dir))
        try:
            server = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread cannot be cancelled, and what it starts must not stay behind.
            with contextlib.suppress(WorkbenchError):
                await asyncio.to_thread((await starting).close)
            raise
        try:
            bench = cls(server.url, server.key, timeout_s=timeout_s)
        except BaseException:
            await asyncio.to_thread(server.close)
            raise
        bench._server = server
        bench._sender.watch(server.lost)
        return bench

    async def create(
        self,
        user_id: str = "local",
        *,
        sandbox: SandboxOptions | Mapping[str, object] | None = None,
        workbench: SandboxOptions | Mapping[str, object] | None = None,
        id: str | None = None,  # noqa: A002
        runtime: str | None = None,
        eager: bool = False,
    ) -> AsyncSession:
        """As `Workbench.create`."""
        request = _requests.create_session(
            user_id, sandbox=sandbox, workbench=workbench, id=id, runtime=runtime, eager=eager
        )
        made = await self._sender.send(request)
        return AsyncSession(self._sender, made.id, made.user_id, runtime=made.runtime)

    async def use(self, session_id: str) -> AsyncSession:
        """As `Workbench.use`."""
        found = await self._sender.send(_requests.get_session(session_id))
        return AsyncSession(self._sender, found.id, found.user_id, runtime=found.runtime)

    async def sessions(self, user_id: str | None = None) -> AsyncIterator[AsyncSession]:
        """As `Workbench.sessions`, for `async for`."""
        cursor: str | None = None
        while True:
            page = await self._sender.send(_requests.list_sessions(user_id, cursor))
            for found in page.items:
                yield AsyncSession(self._sender, found.id, found.user_id, runtime=found.runtime)
            if (cursor := page.next_cursor) is None:
                return

    async def delete_user(self, user_id: str) -> int:
        """As `Workbench.delete_user`."""
        return await self._sender.send(_requests.delete_user(user_id))

    async def corrections(self) -> list[rest.RuleCount]:
        """As `Workbench.corrections`."""
        return await self._sender.send(_requests.count_corrections())

    async def audit(self, *, before: str = "", session: str = "", limit: int = 100) -> list[rest.AuditEntry]:
        """As `Workbench.audit`."""
        return await self._sender.send(_requests.list_audit(before, session, limit))

    async def close(self) -> None:
        """As `Workbench.close`."""
        await self._sender.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    async def __aenter__(self) -> AsyncWorkbench:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.url}>"
