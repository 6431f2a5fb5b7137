"""Toolkits and connected accounts for async programs. Every name is one of toolkits.py, where it is described."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from workbench.client import _toolkit_requests as _requests
from workbench.client._sending import AsyncSender
from workbench.client.toolkits import PAUSE_S, is_over, waited_in_vain
from workbench.wire import rest
from workbench.wire import rest_connections as wire


class AsyncToolkits:
    """As `Toolkits`, with `await`."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender

    async def add(self, slug: str, **options: Any) -> rest.AddedToolkitWithTools:
        """As `Toolkits.add`."""
        return await self._sender.send(_requests.add_toolkit(slug, options))

    async def list(self) -> list[rest.AddedToolkit]:
        """As `Toolkits.list`."""
        return await self._sender.send(_requests.list_toolkits())

    async def show(self, slug: str) -> rest.AddedToolkitWithTools:
        """As `Toolkits.show`."""
        return await self._sender.send(_requests.show_toolkit(slug))

    async def test(self, slug: str) -> rest.AddedToolkitWithTools:
        """As `Toolkits.test`."""
        return await self._sender.send(_requests.test_toolkit(slug))

    async def remove(self, slug: str) -> None:
        """As `Toolkits.remove`."""
        await self._sender.send(_requests.remove_toolkit(slug))


class AsyncConnections:
    """As `Connections`, with `await`."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender

    async def begin(
        self,
        toolkit: str,
        user_id: str = "local",
        *,
        callback_url: str | None = None,
        alias: str = "",
        auth_config_id: str | None = None,
    ) -> wire.ConnectionBegun:
        """As `Connections.begin`."""
        return await self._sender.send(
            _requests.begin_connection(toolkit, user_id, callback_url, alias, auth_config_id)
        )

    async def wait(self, id: str, *, timeout_s: float = 300.0) -> wire.Connection:  # noqa: A002
        """As `Connections.wait`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while not is_over(account := await self.get(id)):
            if loop.time() >= until:
                raise waited_in_vain(account, timeout_s)
            await asyncio.sleep(PAUSE_S)
        return account

    async def list(self, user_id: str | None = None, *, toolkit: str | None = None) -> AsyncIterator[wire.Connection]:
        """As `Connections.list`, for `async for`."""
        cursor: str | None = None
        while True:
            page = await self._sender.send(_requests.list_connections(user_id, toolkit, cursor))
            for found in page.items:
                yield found
            if (cursor := page.next_cursor) is None:
                return

    async def get(self, id: str) -> wire.Connection:  # noqa: A002
        """As `Connections.get`."""
        return await self._sender.send(_requests.get_connection(id))

    async def refresh(self, id: str) -> wire.Connection:  # noqa: A002
        """As `Connections.refresh`."""
        return await self._sender.send(_requests.refresh_connection(id))

    async def remove(self, id: str) -> bool:  # noqa: A002
        """As `Connections.remove`."""
        return await self._sender.send(_requests.remove_connection(id))


class AsyncAuthConfigs:
    """As `AuthConfigs`, with `await`."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender

    async def create(
        self, toolkit: str, client_id: str, client_secret: str = "", *, scopes: Iterable[str] = ()
    ) -> wire.AuthConfig:
        """As `AuthConfigs.create`."""
        return await self._sender.send(_requests.create_auth_config(toolkit, client_id, client_secret, scopes))

    async def list(self) -> list[wire.AuthConfig]:
        """As `AuthConfigs.list`."""
        return await self._sender.send(_requests.list_auth_configs())

    async def remove(self, id: str) -> None:  # noqa: A002
        """As `AuthConfigs.remove`."""
        await self._sender.send(_requests.remove_auth_config(id))
