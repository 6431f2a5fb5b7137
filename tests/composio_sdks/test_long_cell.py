"""The TypeScript SDK gives up when a minute passes without an answer that begins, and asks again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import World

pytestmark = [pytest.mark.long, pytest.mark.timeout(200)]

LINES = ("0.16", "0.21")


def test_a_cell_of_75_seconds_is_asked_for_once_runs_once_and_succeeds(world: World) -> None:
    with ThreadPoolExecutor(len(LINES)) as both:
        done = list(both.map(lambda line: world.node(line, world.plain, "long_cell.mjs"), LINES))
    for line, one in zip(LINES, done, strict=True):
        assert one.code == 0, one.stderr
        told = Told(f"typescript {line}", world.plain, one.facts)
        assert told.done("workbench")["stdout"] == "done\n"
        assert told.done("runs")["stdout"] == "x"
        asked = [
            event
            for event in world.requests()
            if event["method"] == "POST"
            and event["route"].endswith("/execute")
            and event.get("session") == told.gave("create")
        ]
        # The cell, and the look at what it wrote.
        assert [event["status"] for event in asked] == [200, 200]
