"""MCP servers that are run here: real ones by npm and by Python, and one that lies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.host.support import alive, eventually
from tests.toolkits.worlds import PLAIN, added, call, from_npm, lying, source_of
from tests.unit.core.router.sources import session

from workbench.errors import InvalidRequest, NotFound, UpstreamBadAnswer, UpstreamUnavailable
from workbench.model.session import Session
from workbench.testing.tools_contract import ToolSourceContract, Works
from workbench.toolkits.opening import AddedSource

_CANARY = "canary-8f2a91c4"


class TestPlainServer(ToolSourceContract):
    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[AddedSource]:
        async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
            yield source

    @pytest.fixture
    def session(self) -> Session:
        return session()

    @pytest.fixture
    def works(self) -> Works:
        return "PLAIN_ADD", {"a": 2, "b": 3}


async def test_names_tags_and_answers_are_in_our_words(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
        tools = {one.slug: one for one in await source.tools()}
        assert tools["PLAIN_ADD"].tags == ("readOnlyHint",)
        assert tools["PLAIN_FAILS"].tags == ("destructiveHint", "openWorldHint")
        assert tools["PLAIN_ADD"].description == "The sum of two numbers."
        assert (await source.run(call("PLAIN_ADD", a=2, b=3))).data == {"result": 5}
        pictures = await source.run(call("PLAIN_PICTURES"))
        assert pictures.data == {"text": "two of them"}
        assert pictures.file is not None
        assert [one.name for one in (pictures.file, *pictures.more_files)] == ["image_1.png", "image_2.png"]
        assert pictures.file.content.startswith(b"\x89PNG")


async def test_it_sees_the_variables_it_was_given_and_they_come_back_in_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-the-server")
    async with source_of(tmp_path, added("plain", command=PLAIN, env={"PLAIN_KEY": _CANARY})) as source:
        told = (await source.run(call("PLAIN_VARIABLES"))).data
        assert told["PLAIN_KEY"] == "***"
        assert set(told) >= {"PATH", "HOME"}
        assert "canary" not in json.dumps(told)
        assert told["HOME"] == str(tmp_path / "toolkits" / "plain")
        failed = await source.run(call("PLAIN_FAILS", secret=_CANARY))
        assert "it failed" in failed.error
        assert _CANARY not in failed.error + json.dumps(failed.data)
        assert _CANARY not in repr(source)


async def test_wrong_arguments_and_names_are_told(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
        try:
            wrong = (await source.run(call("PLAIN_ADD", a="no number"))).error
        except InvalidRequest as problem:
            wrong = problem.message
        assert "b" in wrong
        with pytest.raises(NotFound, match="`workbench toolkits show plain` lists"):
            await source.run(call("PLAIN_NOTHING"))


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_stays(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("plain", command=PLAIN, timeout_s=2)) as source:
        await source.tools()
        began = time.monotonic()
        result = await source.run(call("PLAIN_HANGS", mark=str(tmp_path / "mark")))
        assert time.monotonic() - began < 6
        assert result.error == "PLAIN_HANGS took more than 2 s and was given up; it may have been carried out"
        assert (tmp_path / "mark").exists()


async def test_a_server_that_ends_is_started_again_and_nothing_is_sent_twice(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
        ended = await source.run(call("PLAIN_ENDS"))
        assert "ended during the call; it may have been carried out; it said: last words of it" in ended.error
        assert (await source.run(call("PLAIN_ADD", a=1, b=1))).data == {"result": 2}


async def test_a_server_that_never_stays_is_not_started_in_a_circle(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("short", command=["/bin/sh", "-c", "echo why >&2; exit 4"])) as source:
        for _ in range(5):
            with pytest.raises(UpstreamUnavailable, match=r"it ended at once, with the code 4; it said: why"):
                await source.tools()
        with pytest.raises(
            UpstreamUnavailable, match=r"started 5 times within 60 s and did not stay; it is tried again"
        ):
            await source.tools()


async def test_what_does_not_speak_mcp_is_told(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("none", command=["no-such-program"])) as source:
        with pytest.raises(UpstreamUnavailable, match="no-such-program cannot be started: No such file"):
            await source.tools()


async def test_an_answer_that_is_too_large_is_told(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
        result = await source.run(call("PLAIN_LARGE", size=51 * 2**20))
        assert "was carried out, and its answer cannot be used" in result.error or "ended during" in result.error
        assert len(result.error) < 1000
        assert (await source.run(call("PLAIN_ADD", a=1, b=1))).data == {"result": 2}


async def test_a_line_that_does_not_end_ends_the_call_and_not_the_workbench(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("long-line"))) as source:
        result = await source.run(call("LIAR_GOOD", a="x"))
        assert "ended during the call" in result.error
        assert [one.slug for one in await source.tools()] == ["LIAR_GOOD"]


async def test_a_broken_schema_is_refused_with_the_reason_and_the_others_stay(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("one-broken"))) as source:
        assert [one.slug for one in await source.tools()] == ["LIAR_GOOD"]
        refused = await source.refused()
        assert "its input schema is broken: 'strnig' is not valid" in refused["no-schema"]
        assert "outside of itself" in refused["abroad"]
        assert "no letter" in refused["???"]
    async with source_of(tmp_path, added("liar", command=lying("all-broken"))) as source:
        with pytest.raises(
            UpstreamBadAnswer, match=r"none of the 1 tools of liar can be used; the first, bad: its input"
        ):
            await source.tools()


async def test_a_list_that_is_none_of_the_protocol_is_refused_with_the_place(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("not-even-that"))) as source:
        with pytest.raises(UpstreamUnavailable, match=r"not what the protocol has: `tools.1.inputSchema.properties`"):
            await source.tools()


async def test_an_answer_that_breaks_its_own_schema_is_an_error_and_no_data(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("breaks-its-promise"))) as source:
        result = await source.run(call("LIAR_GOOD", a="x"))
        assert "was carried out, and its answer is not what the server promises" in result.error
        assert "'n' is a required property" in result.error


async def test_tools_that_come_later_are_there(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("changes"))) as source:
        assert [one.slug for one in await source.tools()] == ["LIAR_GOOD"]
        assert (await source.run(call("LIAR_GOOD"))).data == {"result": [1, 2]}
        async with asyncio.timeout(10):
            while len(tools := await source.tools()) < 2:
                await asyncio.sleep(0.05)
        assert [one.slug for one in tools] == ["LIAR_GOOD", "LIAR_NEWER"]


async def test_names_that_become_the_same_are_told_apart(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("liar", command=lying("alike"))) as source:
        assert [one.slug for one in await source.tools()] == ["LIAR_GET_IT", "LIAR_GET_IT_2"]


async def test_closing_it_ends_the_program_in_the_middle_of_a_call(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with source_of(tmp_path, added("plain", command=PLAIN)) as source:
        hanging = asyncio.create_task(source.run(call("PLAIN_HANGS", mark=str(mark))))
        async with asyncio.timeout(30):
            while not mark.exists() or not mark.read_text():
                await asyncio.sleep(0.05)
        pid = int(mark.read_text())
        assert alive(pid)
        async with asyncio.timeout(15):
            await source.aclose()
            result = await hanging
    assert "ended during the call" in result.error
    eventually(lambda: not alive(pid), "the server has ended")


@pytest.mark.long
async def test_the_everything_server_of_the_protocol(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("everything", command=from_npm("server-everything", "stdio"))) as source:
        slugs = {one.slug for one in await source.tools()}
        assert {"EVERYTHING_ECHO", "EVERYTHING_GET_TINY_IMAGE", "EVERYTHING_GET_STRUCTURED_CONTENT"} <= slugs
        assert await source.refused() == {}
        assert (await source.run(call("EVERYTHING_ECHO", message="hé"))).data == {"text": "Echo: hé"}
        picture = await source.run(call("EVERYTHING_GET_TINY_IMAGE"))
        assert picture.file is not None
        assert picture.file.content.startswith(b"\x89PNG")
        weather = (await source.run(call("EVERYTHING_GET_STRUCTURED_CONTENT", location="New York"))).data
        assert set(weather) == {"temperature", "conditions", "humidity"}
        assert "Input validation error" in (await source.run(call("EVERYTHING_ECHO"))).error
        told = json.dumps((await source.run(call("EVERYTHING_GET_ENV"))).data)
        assert "WORKBENCH" not in told
        links = (await source.run(call("EVERYTHING_GET_RESOURCE_LINKS", count=2))).data["links"]
        assert len(links) == 2


@pytest.mark.long
async def test_the_filesystem_server_of_the_protocol_sees_its_folder_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a.txt").write_text("hello", encoding="utf-8")
    command = from_npm("server-filesystem", str(shared))
    async with source_of(tmp_path, added("files", command=command)) as source:

        async def asked(slug: str, **arguments: Any) -> tuple[str, str]:
            result = await source.run(call(slug, **arguments))
            return json.dumps(result.data), result.error

        data, error = await asked("FILES_READ_TEXT_FILE", path=str(shared / "a.txt"))
        assert ("hello" in data, error) == (True, "")
        _, error = await asked("FILES_WRITE_FILE", path=str(shared / "b.txt"), content="new")
        assert error == ""
        assert (shared / "b.txt").read_text(encoding="utf-8") == "new"
        _, error = await asked("FILES_READ_TEXT_FILE", path="/etc/passwd")
        assert "Access denied" in error
        tags = {one.slug: one.tags for one in await source.tools()}
        assert "readOnlyHint" in tags["FILES_READ_TEXT_FILE"]
        assert "destructiveHint" in tags["FILES_WRITE_FILE"]


@pytest.mark.long
async def test_a_real_server_that_is_killed_comes_back(tmp_path: Path) -> None:
    script = 'echo $$ > pid; exec "$0" "$@"'
    command = ["/bin/sh", "-c", script, *from_npm("server-everything", "stdio")]
    async with source_of(tmp_path, added("everything", command=command)) as source:
        await source.tools()
        pid_file = tmp_path / "toolkits" / "everything" / "pid"
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        eventually(lambda: not alive(int(pid_file.read_text())), "it has ended")
        async with asyncio.timeout(30):
            while (await source.run(call("EVERYTHING_ECHO", message="x"))).error:
                await asyncio.sleep(0.1)
