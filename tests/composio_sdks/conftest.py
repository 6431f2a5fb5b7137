"""One world for all tests here, in which each SDK does once what users do; tests look at what it was told."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import World, world

LINES = ("python 0.19", "python 0.30", "typescript 0.16", "typescript 0.19", "typescript 0.21")


@pytest.fixture(scope="session", name="world")
def _world() -> Iterator[World]:
    if os.geteuid() != 0:
        pytest.skip("a network of its own, with servers that have sandboxes, is root's")
    with world() as made:
        yield made


@pytest.fixture(scope="session", params=LINES)
def told(request: pytest.FixtureRequest, world: World) -> Told:
    """What one line of SDKs was told."""
    language, _, line = request.param.partition(" ")
    server = world.server_of(request.param)
    before = len(world.requests())
    if language == "python":
        done = world.python(line, server, "-m", "tests.composio_sdks.python.exchanges")
    else:
        done = world.node(line, server, "exchanges.mjs")
    assert done.code == 0, done.stderr
    return Told(request.param, server, done.facts, world.requests()[before:])
