"""A session's own address of MCP has what the session offers, and the person at the client is asked."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult
from tests.composio.asking import SIX
from tests.composio.tools.apps.conftest import Shop
from tests.composio.tools.calling import WORKBENCH, configured
from tests.mcp.http.talking import NEWER, OLDER, client_at
from tests.server.running import Running

ASKING = {"tags": {"require_approval": ["destructiveHint"]}}
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(params=[OLDER, NEWER])
def mode(request: pytest.FixtureRequest) -> str:
    """Both eras of the protocol."""
    era: str = request.param
    return era


@pytest.fixture
def connect(server: Running, mode: str) -> Connect:
    """To a session's own address."""

    @asynccontextmanager
    async def connected(session: str, asked: str = "", **more: Any) -> AsyncIterator[Client]:
        address = f"{server.url}/tool_router/{session}/mcp{asked}"
        async with client_at(address, server.key, mode, **more) as client:
            yield client

    return connected


class Person:
    """Somebody at a client, who says the same to everything."""

    def __init__(self, action: str = "accept", **content: str) -> None:
        self.action = action
        self.content = content or None
        self.asked: list[str] = []

    async def __call__(self, _: Any, params: ElicitRequestFormParams) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult.model_validate({"action": self.action, "content": self.content})


async def call(client: Client, slug: str, **arguments: Any) -> dict[str, Any]:
    told = await client.call_tool(slug, arguments)
    assert isinstance(told, CallToolResult)
    structured = told.structured_content
    assert isinstance(structured, dict)
    assert json.loads(told.content[0].text) == structured  # type: ignore[union-attr]
    return structured


async def test_what_the_session_offers_is_listed_with_what_is_preloaded(
    client: httpx2.Client, made: list[str], connect: Connect
) -> None:
    calling = configured(client, made, preload={"tools": ["SHOP_LOOK", "SHOP_REFUND"]})
    async with connect(calling.session) as agent:
        listed = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert set(listed) == {*SIX, "SHOP_LOOK", "SHOP_REFUND"}
        assert listed["SHOP_LOOK"].annotations.read_only_hint  # type: ignore[union-attr]
        assert listed["SHOP_REFUND"].annotations.destructive_hint  # type: ignore[union-attr]
        assert listed["SHOP_REFUND"].input_schema["required"] == ["number"]
        assert (await call(agent, "SHOP_LOOK", number=3))["data"]["number"] == 3
    async with connect(calling.session, "?tools=workbench") as agent:
        assert {tool.name for tool in (await agent.list_tools()).tools} == set(SIX[4:])
        with pytest.raises(MCPError, match="no tool 'SHOP_LOOK'"):
            await agent.call_tool("SHOP_LOOK", {"number": 3})
    off = configured(client, made, sandbox={"enable": False}, search={"enable": False})
    async with connect(off.session) as agent:
        assert {tool.name for tool in (await agent.list_tools()).tools} == set(SIX[1:4])


async def test_an_agent_finds_runs_and_reads(client: httpx2.Client, made: list[str], connect: Connect) -> None:
    calling = configured(client, made)
    async with connect(calling.session) as agent:
        found = await call(agent, "COMPOSIO_SEARCH_TOOLS", queries=[{"use_case": "look at an order of the shop"}])
        assert found["data"]["results"][0]["primary_tool_slugs"][0] == "SHOP_LOOK"
        word = found["data"]["session"]["id"]
        tools = [{"tool_slug": "SHOP_LOOK", "arguments": {"number": n}} for n in (1, 2)]
        many = await call(
            agent, "COMPOSIO_MULTI_EXECUTE_TOOL", tools=tools, sync_response_to_workbench=True, session_id=word
        )
        assert many["data"]["success_count"] == 2
        path = many["data"]["remote_file_info"]["file_path"]
        code = f"import json; len(json.load(open({path!r}))['results'])"
        ran = await call(agent, WORKBENCH, code_to_execute=code, session_id=word)
        assert ran["data"]["results"] == "2"
        wrong = await call(agent, "COMPOSIO_SEARCH_TOOLS", queries="none")
        assert "`queries` has to be a list" in wrong["error"]
        assert wrong["next"]["tool"] == "COMPOSIO_SEARCH_TOOLS"
        failed = await call(
            agent,
            "COMPOSIO_MULTI_EXECUTE_TOOL",
            tools=[{"tool_slug": "SHOP_LOOK", "arguments": {"number": "one"}}],
            sync_response_to_workbench=False,
        )
        assert "`number` has to be a whole number" in failed["data"]["results"][0]["error"]
        assert failed["next"] == {"tool": "COMPOSIO_GET_TOOL_SCHEMAS", "arguments": {"tool_slugs": ["SHOP_LOOK"]}}


async def refund(agent: Client, *numbers: int) -> dict[str, Any]:
    tools = [{"tool_slug": "SHOP_REFUND", "arguments": {"number": number}} for number in numbers]
    return await call(agent, "COMPOSIO_MULTI_EXECUTE_TOOL", tools=tools, sync_response_to_workbench=False)


async def test_the_person_at_the_client_is_asked_once_for_all(
    client: httpx2.Client, made: list[str], connect: Connect, shop: Shop
) -> None:
    calling, person = configured(client, made, **ASKING), Person(decision="allow_once")
    async with connect(calling.session, elicitation_callback=person) as agent:
        assert (await refund(agent, 1, 2, 3))["data"]["success_count"] == 3
    assert len(person.asked) == 1
    assert all(f'SHOP_REFUND: {{"number": {n}}}' in person.asked[0] for n in (1, 2, 3))
    assert sorted(shop.refunds()) == [1, 2, 3]


@pytest.mark.parametrize("person", [Person("decline"), Person("cancel"), Person(decision="deny")])
async def test_a_no_is_one(
    client: httpx2.Client, made: list[str], connect: Connect, shop: Shop, person: Person
) -> None:
    calling = configured(client, made, **ASKING)
    async with connect(calling.session, elicitation_callback=person) as agent:
        told = await refund(agent, 1)
        assert "did not allow it" in told["data"]["results"][0]["error"]
    assert shop.refunds() == []


async def test_where_nobody_can_be_asked_nothing_is_done_unless_the_session_says_so(
    client: httpx2.Client, made: list[str], connect: Connect, shop: Shop
) -> None:
    calling = configured(client, made, **ASKING)
    async with connect(calling.session) as agent:
        told = await refund(agent, 1)
        assert "this client cannot ask one" in told["error"]
    assert shop.refunds() == []
    lax = configured(client, made, **ASKING, experimental={"no_elicitation_support_fallback": "allow"})
    async with connect(lax.session) as agent:
        assert (await refund(agent, 2))["data"]["success_count"] == 1
    assert shop.refunds() == [2]


async def test_calls_of_code_are_asked_about_with_the_next_cell(
    client: httpx2.Client, made: list[str], connect: Connect, shop: Shop
) -> None:
    calling, person = configured(client, made, **ASKING), Person(decision="allow_once")
    code = "[run_composio_tool('SHOP_REFUND', {'number': n}, print_schema_for_tool=False)[1] for n in range(5)]"
    async with connect(calling.session, elicitation_callback=person) as agent:
        first = await call(agent, WORKBENCH, code_to_execute=code)
        assert first["data"]["results"].count("a person has to approve it") == 5
        assert person.asked == []
        second = await call(agent, WORKBENCH, code_to_execute=code)
        assert second["data"]["results"].count("''") == 5
    assert len(person.asked) == 1
    assert sorted(shop.refunds()) == list(range(5))


async def test_the_family_is_on_standard_input_too_and_a_workflow_is_its_session(
    server: Running, tmp_path: Path, shop: Shop
) -> None:
    env = {
        **os.environ,
        "WORKBENCH_DATA_DIR": str(tmp_path / "data"),
        "WORKBENCH_TOOLKITS_FILE": server.settings.toolkits_file,
    }
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "workbench.cli.main", "mcp", "--tools", "router"], env=env
    )
    async with Client(stdio_client(program), mode=OLDER) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == SIX[:4]
        found = await call(agent, "COMPOSIO_SEARCH_TOOLS", queries=[{"use_case": "refund an order of the shop"}])
        assert "SHOP_REFUND" in found["data"]["tool_schemas"]
        tools = [{"tool_slug": "SHOP_REFUND", "arguments": {"number": 9}}]
        done = await call(
            agent,
            "COMPOSIO_MULTI_EXECUTE_TOOL",
            tools=tools,
            sync_response_to_workbench=False,
            session_id=found["data"]["session"]["id"],
        )
        assert done["data"]["results"][0]["response"]["data"] == {"refunded": 9}
        link = await call(agent, "COMPOSIO_MANAGE_CONNECTIONS", toolkits=["post"])
        assert "needs a workbench server" in link["data"]["results"]["post"]["error_message"]
    assert shop.refunds() == [9]
