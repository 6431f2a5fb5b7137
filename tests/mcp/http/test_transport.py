"""What arrives at the official client over HTTP, in both eras of the protocol; and what calls a cell off."""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp_types import ImageContent, TextContent
from tests.host.support import eventually
from tests.mcp.http.conftest import Connect
from tests.mcp.http.talking import BASH, NEWER, OLDER, TOOL, Raw, data_of, run, structured_in, told_in
from tests.server.running import Running, make_key

from workbench.model.access import Scope

PICTURE = (
    "import base64\nfrom IPython.display import Image, display\n"
    "display(Image(format='png', data=base64.b64decode("
    "'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')))"
)
SLEEP = "import time\nbegan = True\nfor n in range(600):\n    time.sleep(0.1)\nwhole = True"


async def test_tools_come_with_their_schemas_and_hints(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {TOOL, BASH}
    tool = tools[TOOL]
    assert tool.input_schema["required"] == ["code_to_execute"]
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["data", "successful"]
    assert tool.annotations is not None
    assert (tool.annotations.destructive_hint, tool.annotations.read_only_hint) == (True, False)


async def test_variables_live_on_and_answers_are_text_structure_and_images(connect: Connect) -> None:
    async with connect() as client:
        await run(client, "kept = 41")
        answer = await run(client, f"{PICTURE}\nkept + 1")
    assert data_of(answer)["results"].endswith("42")
    text, picture = answer.content
    assert isinstance(text, TextContent)
    assert '"successful": true' in text.text
    assert isinstance(picture, ImageContent)
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    assert answer.meta is not None
    assert answer.meta["open-workbench/receipt"]["epoch"] == 1


LARGE = {
    "one": "import os\ndisplay(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(1_000_000), format='png'))",
    "many": "import os\nfor _ in range(20): "
    "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(60_000), format='png'))",
    "escapes": "class Long:\n    def __repr__(self): return '\\x01' * 50_000\n"
    "import sys; print('\\x01' * 50_000); sys.stderr.write('\\x01' * 50_000); Long()",
}


@pytest.mark.parametrize("code", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("tool", [TOOL, "execute_code"])
async def test_an_answer_arrives_however_large_it_would_be(connect: Connect, code: str, tool: str) -> None:
    async with connect("/mcp?tools=workbench,sandbox") as client:
        arguments = {"code_to_execute": f"from IPython.display import Image, display\n{code}"}
        if tool != TOOL:
            made = (await client.call_tool("create_session", {})).structured_content or {}
            arguments = {"session_id": made["session_id"], "code": arguments["code_to_execute"]}
        answer = await client.call_tool(tool, arguments)
    assert answer.is_error is False
    assert len(answer.model_dump_json().encode()) < 1024 * 1024
    assert "left out" in str(answer.structured_content)


async def test_progress_is_told_while_a_cell_runs(connect: Connect) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    code = "import time\nfor n in range(4):\n    print('step', n, flush=True)\n    time.sleep(1)"
    async with connect() as client:
        answer = await run(client, code, progress_callback=on_progress)
    assert data_of(answer)["stdout"].endswith("step 3\n")
    assert [one[0] for one in seen] == sorted(one[0] for one in seen)
    assert any(message and message.startswith("step") for _, _, message in seen)
    assert all(total == 180.0 for _, total, _ in seen)


async def _begun(http: httpx2.Client, session: str) -> str:
    """The id of the cell that runs in it."""

    def running() -> str:
        answer = http.get(f"/v1/sessions/{session}")
        queue = answer.json()["queue"] if answer.status_code == 200 else []
        return str(queue[0]["cell"]) if queue else ""

    for _ in range(200):
        if cell := running():
            return cell
        await asyncio.sleep(0.05)
    raise AssertionError("it does not run")


async def test_a_call_that_is_called_off_interrupts_its_cell(connect: Connect, http: httpx2.Client) -> None:
    name = f"c-{secrets.token_hex(4)}"
    async with connect(f"/mcp?session={name}") as client:
        await run(client, "whole = False")
        call = asyncio.create_task(run(client, SLEEP))
        cell = await _begun(http, name)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        began = time.monotonic()
        answer = await run(client, "whole")
        assert time.monotonic() - began < 20
    assert data_of(answer)["results"] == "False"
    # A page of the history has what is written down: the end of a cell that nobody waits for is, when somebody asks.
    http.get(f"/v1/sessions/{name}/cells/{cell}", params={"wait_s": "30"})
    cells = http.get(f"/v1/sessions/{name}/history").json()["items"]
    assert [one["result"]["outcome"] for one in cells] == ["ok", "interrupted", "ok"]


async def test_in_the_older_era_a_connection_that_breaks_interrupts_nothing(http: httpx2.Client) -> None:
    raw = Raw(http, f"/mcp?session=b-{secrets.token_hex(4)}").connect()
    code = "import time\nfor n in range(30):\n    time.sleep(0.1)\n'whole'"
    params = {"name": TOOL, "arguments": {"code_to_execute": code}}
    body = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}
    with http.stream("POST", raw.path, json=body, headers=raw.headers()) as answer:
        assert answer.status_code == 200
        session = raw.path.rpartition("=")[2]
        cell = await _begun(http, session)
    told = http.get(f"/v1/sessions/{session}/cells/{cell}", params={"wait_s": "30"}).json()
    assert (told["result"]["outcome"], told["result"]["results"]["text"]) == ("ok", "'whole'")


async def test_the_session_of_a_connection_is_its_own_and_another_can_be_named(connect: Connect, mode: str) -> None:
    shared = f"s-{secrets.token_hex(4)}"
    async with connect() as one, connect() as two:
        mine, other = [data_of(await run(client, "1"))["session"]["id"] for client in (one, two)]
        # Without connections a client is known by its key alone.
        assert (mine == other) is (mode == NEWER)
    async with connect(f"/mcp?session={shared}&user=someone") as one, connect(f"/mcp?session={shared}") as two:
        await run(one, "shared = 'told'")
        assert data_of(await run(two, "shared"))["results"] == "'told'"


async def test_the_user_of_sessions_that_are_made_is_the_one_named(connect: Connect, http: httpx2.Client) -> None:
    name = f"u-{secrets.token_hex(4)}"
    async with connect(f"/mcp?session={name}&user=someone") as client:
        await run(client, "1")
    assert http.get(f"/v1/sessions/{name}").json()["user_id"] == "someone"
    entries = http.get("/v1/audit", params={"limit": "50"}).json()["items"]
    assert ("session.create", name) in [(one["action"], one["session"]) for one in entries]


async def test_a_default_session_whose_name_is_another_projects_ends_in_words_and_not_in_a_circle(
    connect: Connect, server: Running, http: httpx2.Client
) -> None:
    name = f"x-{secrets.token_hex(4)}"
    http.post("/v1/sessions", json={"id": name}).raise_for_status()
    project = f"p-{secrets.token_hex(4)}"
    other = (await asyncio.to_thread(make_key, server.settings, Scope.SESSIONS, project=project)).presented
    for tools in ("workbench", "workbench,kernel", "workbench,sandbox"):
        async with connect(f"/mcp?session={name}&tools={tools}", key=other) as client:
            said = (await run(client, "1")).structured_content or {}
            assert "is not free on this server" in said["error"]
            assert "`?session=`" in said["error"]
            if tools == "workbench":
                assert "next" not in said
                continue
            step = said["next"]
            assert step["tool"] in ("list_variables", "create_session")
            assert (await client.call_tool(step["tool"], step["arguments"])).is_error is False
    # The last one has made a session, and whoever comes next is told of it.
    async with connect(f"/mcp?session={name}", key=other) as client:
        said = (await run(client, "1")).structured_content or {}
        again = await client.call_tool(said["next"]["tool"], said["next"]["arguments"])
        assert data_of(again)["results"] == "1"


async def test_on_a_sessions_own_address_the_word_for_it_is_only_told_back(
    connect: Connect, http: httpx2.Client
) -> None:
    name = f"o-{secrets.token_hex(4)}"
    http.post("/v1/sessions", json={"id": name}).raise_for_status()
    async with connect(f"/tool_router/{name}/mcp") as client:
        await run(client, "here = 1")
        assert data_of(await run(client, "here", session_id="kind-word"))["session"]["id"] == "kind-word"
    told = http.post(f"/v1/sessions/{name}/cells", json={"code": "here"}).json()
    assert told["result"]["results"]["text"] == "1"


@pytest.mark.parametrize("mode", [OLDER], indirect=True)
async def test_sixty_four_clients_at_once_are_served(connect: Connect) -> None:
    shared = f"many-{secrets.token_hex(4)}"

    async def one(number: int) -> str:
        async with connect(f"/mcp?session={shared}") as client:
            assert len((await client.list_tools()).tools) == 2
            answer = await client.call_tool(BASH, {"command": f"echo {number}"})
            structured = answer.structured_content
            assert isinstance(structured, dict), answer
            return str(structured["data"]["stdout"])

    async with connect(f"/mcp?session={shared}") as first:
        await run(first, "1")
    async with asyncio.timeout(200):
        answers = await asyncio.gather(*[one(number) for number in range(64)])
    assert sorted(answers) == sorted(f"{number}\n" for number in range(64))


def test_cells_are_counted_and_the_log_has_the_outcome_and_never_the_code(server: Running, http: httpx2.Client) -> None:
    def counted(kind: str, outcome: str) -> float:
        lines = http.get("/metrics").text.splitlines()
        name = f'workbench_cells_total{{kind="{kind}",outcome="{outcome}"}} '
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    name, word = f"l-{secrets.token_hex(4)}", secrets.token_hex(8)
    before = {one: counted(*one) for one in (("cell", "ok"), ("cell", "raised"), ("command", "ok"))}
    missed = counted("cell", "not_found")
    raw = Raw(http, f"/mcp?session={name}").connect()
    raw.call(f"'{word}'")
    raw.call(f"raise ValueError('{word}')")
    raw.call(f"echo {word}", BASH)
    assert [counted(*one) - before[one] for one in before] == [1, 1, 1]
    assert counted("cell", "not_found") == missed
    assert (
        structured_in(
            raw.ask("tools/call", {"name": TOOL, "arguments": {"code_to_execute": "1", "session_id": "not-there"}})
        )["successful"]
        is False
    )
    assert counted("cell", "not_found") == missed + 1

    def told() -> list[Any]:
        events = [one for one in server.events() if one["event"] == "request" and one.get("session") == name]
        return [(one["route"], one["method"], one["status"], one["outcome"]) for one in events]

    eventually(lambda: len(told()) == 3, "it is written down")
    assert told() == [("/mcp", "POST", 200, "ok"), ("/mcp", "POST", 200, "raised"), ("/mcp", "POST", 200, "ok")]
    assert word not in server.log.read_text(encoding="utf-8")


def test_a_connection_that_was_ended_is_not_found_any_more(http: httpx2.Client) -> None:
    raw = Raw(http).connect()
    assert told_in(raw.ask("tools/list"))["result"]["tools"]
    assert http.delete("/mcp", headers=raw.headers()).status_code == 200
    for answer in (raw.ask("tools/list"), raw.call("1"), http.get("/mcp", headers=raw.headers())):
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/json"
        assert "initialize" in answer.json()["error"]["message"]


def test_an_id_that_was_never_given_out_is_not_found(http: httpx2.Client) -> None:
    for made_up in ("mine", "0" * 32, "../../etc"):
        assert Raw(http, connection=made_up).ask("tools/list").status_code == 404


async def test_without_being_told_a_client_finds_the_newest_version(server: Running, connect: Connect) -> None:
    async with connect(mode="auto") as client:
        assert isinstance(client, Client)
        assert client.session.protocol_version == NEWER
