"""The oldest releases that the product's documents name for larger sandboxes."""

from __future__ import annotations

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import World

pytestmark = pytest.mark.long


@pytest.mark.parametrize("line", ["python 0.13", "typescript 0.8"])
def test_the_oldest_release_that_can_ask_for_a_tier_gets_it(world: World, line: str) -> None:
    """`composio` 0.12.1 was never published: 0.12.0 cannot send a size, 0.13.0 is the first that can. 0.8.1 of
    `@composio/core` is as the documents say.
    """
    language, _, version = line.partition(" ")
    if language == "python":
        done = world.python(version, world.plain, "-m", "tests.composio_sdks.python.tier")
    else:
        done = world.node(version, world.plain, "tier.mjs")
    assert done.code == 0, done.stderr
    told = Told(line, world.plain, done.facts)
    assert world.session(told.gave("create"))["config"]["workbench"]["sandbox_size"] == "large"
    assert told.done("workbench")["results"] == "42"
