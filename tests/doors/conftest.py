"""One host, one server and one of every door for all tests here; each test has sessions of its own."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

import pytest
from tests.doors.by_command import CommandDoor
from tests.doors.by_sdk import AsyncSdkDoor, SdkDoor
from tests.doors.door import Door, Refused, WholeDoor
from tests.doors.in_process import CoreDoor, Loop, in_process
from tests.doors.names import CORE, NAMES, WHOLE_NAMES
from tests.doors.over_mcp import http_door, stdio_door
from tests.doors.over_rest import RestDoor
from tests.restart.server import Server, own_settings, served

from workbench import AsyncWorkbench


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """What the doors lead to."""
    with own_settings() as settings, served(settings) as server:
        yield server


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """For doors that are async."""
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def whole_doors(server: Server, loop: Loop) -> Iterator[dict[str, WholeDoor]]:
    """Those that have every operation, by name."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(server.client())
        bench = stack.enter_context(server.bench())
        async_bench = AsyncWorkbench(server.url, server.key)
        stack.callback(lambda: loop.call(async_bench.close()))
        core: CoreDoor = stack.enter_context(in_process(server.settings, loop))
        found: tuple[WholeDoor, ...] = (
            core,
            *(RestDoor(client, mode) for mode in ("await", "stream", "detach")),
            SdkDoor(bench),
            AsyncSdkDoor(async_bench, loop),
            CommandDoor(server.settings),
        )
        assert tuple(one.name for one in found) == WHOLE_NAMES
        yield {one.name: one for one in found}


@pytest.fixture(scope="session")
def doors(server: Server, loop: Loop, whole_doors: dict[str, WholeDoor]) -> Iterator[dict[str, Door]]:
    """All, by name."""
    with http_door(server, loop) as over_http, stdio_door(server.settings, loop) as over_stdio:
        found: dict[str, Door] = {**whole_doors, **{one.name: one for one in (over_http, over_stdio)}}
        assert tuple(found) == NAMES
        yield found


@pytest.fixture(scope="session")
def core(whole_doors: dict[str, WholeDoor]) -> WholeDoor:
    """The core itself, to see what a door does not show."""
    return whole_doors[CORE]


@pytest.fixture(params=NAMES)
def door(doors: dict[str, Door], request: pytest.FixtureRequest) -> Door:
    """Each of them."""
    found: Door = doors[request.param]
    return found


@pytest.fixture
def maker(whole_doors: dict[str, WholeDoor], door: Door) -> WholeDoor:
    """Makes sessions for the test: its own door, or the core where a door cannot give them names."""
    return whole_doors.get(door.name, whole_doors[CORE])


@pytest.fixture
def session(core: WholeDoor, maker: WholeDoor) -> Iterator[str]:
    """Deleted afterwards, if the test did not."""
    name = f"t-{secrets.token_hex(4)}"
    maker.create(name)
    yield name
    with contextlib.suppress(Refused):
        core.delete(name)
