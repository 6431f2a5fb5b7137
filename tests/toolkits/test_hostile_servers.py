"""MCP servers that are out to harm the workbench: they hold up nobody, fill no memory, and learn and tell nothing."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.toolkits.worlds import SERVERS, added, call, source_of

from workbench.errors import UpstreamBadAnswer, UpstreamUnavailable

_CANARY = "canary-key-7d01c2"


def hostile(how: str) -> list[str]:
    return [sys.executable, str(SERVERS / "hostile.py"), how]


class _Pulse:
    """How long everybody else in this process had to wait at most."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def __aenter__(self) -> _Pulse:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        # Once more, so that the last wait is seen too.
        await asyncio.sleep(0.02)
        self._task.cancel()

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            self.longest_s = max(self.longest_s, loop.time() - before)


@pytest.mark.parametrize("how", ["expression", "doubling"])
async def test_a_schema_of_answers_that_takes_for_ever_is_not_waited_for(tmp_path: Path, how: str) -> None:
    async with source_of(tmp_path, added("evil", command=hostile(how))) as source:
        await source.tools()
        async with _Pulse() as pulse:
            result = await source.run(call("EVIL_GO"))
        assert result.data == {"a": "a" * 40 + "!"}
        assert pulse.longest_s < 2


async def test_schemas_that_are_costly_to_check_are_refused_and_hold_up_nobody(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("wide"))) as source:
        async with _Pulse() as pulse:
            tools = await source.tools()
        assert [one.slug for one in tools] == ["EVIL_GO"]
        assert "objects within" in (await source.refused())["go0"]
        assert pulse.longest_s < 3


async def test_schemas_of_all_tools_together_are_bounded(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("many-objects"))) as source:
        async with _Pulse() as pulse:
            tools = await source.tools()
        assert 0 < len(tools) < 40
        assert "one of too many" in (await source.refused())["go39"]
        assert pulse.longest_s < 3


async def test_a_list_without_an_end_fills_no_memory(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("pages"))) as source:
        with pytest.raises(UpstreamBadAnswer, match="more than 16 MiB about its tools"):
            await source.tools()


async def test_an_answer_that_is_nested_too_deeply_is_told_as_such(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("deep"))) as source:
        result = await source.run(call("EVIL_GO"))
        assert "nested more than 100 levels" in result.error
        assert "was carried out" in result.error


async def test_garbage_and_noise_between_messages_are_passed_over(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("garbage"))) as source:
        async with _Pulse() as pulse:
            assert [one.slug for one in await source.tools()] == ["EVIL_GO"]
            assert (await source.run(call("EVIL_GO"))).data
        assert pulse.longest_s < 2


async def test_a_flood_of_garbage_is_not_listened_to_for_long(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("flood"))) as source:
        async with _Pulse() as pulse, asyncio.timeout(20):
            with pytest.raises(UpstreamUnavailable, match="evil"):
                await source.tools()
        assert pulse.longest_s < 2


async def test_a_server_that_tells_its_key_in_its_tools_or_files_tells_it_to_nobody(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("evil", command=hostile("tells"), env={"KEY": _CANARY})) as source:
        (tool,) = await source.tools()
        assert tool.description == "my key is ***"
        result = await source.run(call("EVIL_GO"))
        assert result.file is not None
        assert result.file.content == b"\x89PNG ***"
        assert _CANARY not in json.dumps([tool.name, tool.description, tool.input_schema])
