"""Tools against the real core and a real host, without a transport; those that need one have their own."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest
from mcp.client import Client
from tests.restart.server import own_settings

from workbench.cli.asking import OWNER
from workbench.mcp.alone import Alone
from workbench.mcp.families import Families, Family
from workbench.mcp.server import Context, make_server
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_service

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="session")
def settings() -> Iterator[Settings]:
    """A data folder for all tests here; its host ends with it."""
    with own_settings() as settings:
        yield settings


@pytest.fixture
def connect(settings: Settings) -> Connect:
    """Opens a client of the official library; each has a default session of its own, deleted with the data folder."""

    @contextlib.asynccontextmanager
    async def connected(
        *families: Family, own_session: str | None = None, default_session: str | None = None, mode: str = "auto"
    ) -> AsyncIterator[Client]:
        shown: Families = frozenset(families or Family)
        name = default_session or f"mcp-{secrets.token_hex(4)}"
        async with open_service(settings, os.environ) as service:
            around = Alone(service.access, OWNER)

            async def receive(_: Context) -> Visit:
                return Visit(
                    bench=service.workbench(),
                    around=around,
                    default_session=SessionId(name),
                    own_session=None if own_session is None else SessionId(own_session),
                    families=shown,
                )

            try:
                async with Client(make_server(receive), mode=mode) as client:
                    yield client
            finally:
                await around.aclose()

    return connected
