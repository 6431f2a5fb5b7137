"""One host, one server and one of every door for all tests here; each test has sessions of its own."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

import pytest
from tests.doors.by_command import CommandDoor
from tests.doors.by_sdk import AsyncSdkDoor, SdkDoor
from tests.doors.door import Door, Refused
from tests.doors.in_process import CoreDoor, Loop, in_process
from tests.doors.over_rest import RestDoor
from tests.restart.server import Server, own_settings, served

from workbench import AsyncWorkbench

NAMES = ("in process", "REST, await", "REST, stream", "REST, detach", "SDK", "SDK, async", "CLI")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """What the doors lead to."""
    with own_settings() as settings, served(settings) as server:
        yield server


@pytest.fixture(scope="session")
def doors(server: Server) -> Iterator[dict[str, Door]]:
    """By name."""
    with contextlib.ExitStack() as stack:
        loop = Loop()
        stack.callback(loop.close)
        client = stack.enter_context(server.client())
        bench = stack.enter_context(server.bench())
        async_bench = AsyncWorkbench(server.url, server.key)
        stack.callback(lambda: loop.call(async_bench.close()))
        core: CoreDoor = stack.enter_context(in_process(server.settings, loop))
        found: tuple[Door, ...] = (
            core,
            *(RestDoor(client, mode) for mode in ("await", "stream", "detach")),
            SdkDoor(bench),
            AsyncSdkDoor(async_bench, loop),
            CommandDoor(server.settings),
        )
        assert tuple(one.name for one in found) == NAMES
        yield {one.name: one for one in found}


@pytest.fixture(params=NAMES)
def door(doors: dict[str, Door], request: pytest.FixtureRequest) -> Door:
    """Each of them."""
    found: Door = doors[request.param]
    return found


@pytest.fixture
def session(doors: dict[str, Door], door: Door) -> Iterator[str]:
    """Made through the door of the test; deleted afterwards, if the test did not."""
    name = f"t-{secrets.token_hex(4)}"
    door.create(name)
    yield name
    with contextlib.suppress(Refused):
        doors["in process"].delete(name)
