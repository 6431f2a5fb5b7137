"""The shipped tools as a source: what every source promises, where calls go, and what never comes back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from tests.toolkits.service import Asked, calling
from tests.toolkits.shipped.world import VALUES, World, answering, credential, shipped
from tests.unit.core.router.sources import session as a_session

from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.contracts.tools import ToolSource
from workbench.errors import NotConfigured, NotFound
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, ToolCall, ToolResult
from workbench.testing.tools_contract import ToolSourceContract, Works
from workbench.toolkits.shipped.on_demand import ShippedOnDemand
from workbench.toolkits.shipped.services import SERVICES
from workbench.toolkits.shipped.source import ADAPTATIONS, ShippedTools


class TestShippedTools(ToolSourceContract):
    @pytest.fixture
    async def source(self) -> AsyncIterator[ToolSource]:
        async with shipped(answering({"ok": True})) as world:
            yield _Connected(world)

    @pytest.fixture
    def session(self) -> Session:
        return a_session()

    @pytest.fixture
    def works(self) -> Works:
        return "GITHUB_GET_A_PULL_REQUEST", {"owner": "octo", "repo": "hello", "pull_number": 1}


class _Connected(ShippedTools):
    """With an account for each call, as the router has it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.tools._calls, moved=world.tools._moved)

    async def run(self, call: ToolCall) -> ToolResult:
        known = {one.slug: one for one in await self.tools()}
        toolkit = known[call.slug].toolkit if call.slug in known else "github"
        scheme = next(one for one in await self.toolkits() if one.slug == toolkit).auth[0]
        return await super().run(
            ToolCall(slug=call.slug, arguments=call.arguments, session=call.session, credential=credential(scheme))
        )


async def test_a_credential_goes_to_the_hosts_of_its_service_and_nowhere_else() -> None:
    """The hosts that the shipped toolkits name are those of their addresses."""

    class Told:
        """Keeps what would be sent."""

        def __init__(self) -> None:
            self.orders: list[ServiceOrder] = []

        async def call(self, order: ServiceOrder) -> ServiceAnswer:
            self.orders.append(order)
            return ServiceAnswer(status=200, data={})

    told = Told()
    tools = ShippedTools(told)
    [jira] = [one for one in await tools.toolkits() if one.slug == "jira"]
    for scheme in jira.auth:
        arguments = {"issueIdOrKey": "A-1"}
        call = ToolCall(slug="JIRA_GET_ISSUE", arguments=arguments, session=a_session(), credential=credential(scheme))
        await tools.run(call)
    by_kind = dict(zip([one.kind for one in jira.auth], [one.url for one in told.orders], strict=True))
    assert by_kind == {
        AuthKind.BASIC: "https://acme.atlassian.net/rest/api/3/issue/A-1",
        AuthKind.OAUTH2: f"https://api.atlassian.com/ex/jira/{VALUES['cloud_id']}/rest/api/3/issue/A-1",
    }
    assert {one.hosts for one in told.orders} == {("acme.atlassian.net", "api.atlassian.com"), ("api.atlassian.com",)}


async def test_no_value_of_an_account_comes_back() -> None:
    """Trello takes two in one header; neither may be in what it answers."""

    async def echo(asked: Asked) -> None:
        await asked.json(json.dumps({"you_sent": asked.header("authorization"), "key": VALUES["api_key"]}), 400)

    async with shipped(echo) as world:
        result = await world.run("TRELLO_ADD_CARDS", {"name": "Milk", "idList": "l1"})
        assert VALUES["api_key"] in world.last.header("authorization")
    everything = json.dumps(result.data) + result.error + repr(result)
    assert VALUES["api_key"] not in everything
    assert VALUES["token"] not in everything


async def test_asked_again_it_tells_the_very_same() -> None:
    """The catalogue takes that for a sign that nothing has changed, and spares itself thousands of entries."""
    async with calling() as caller:
        tools = ShippedTools(caller)
        assert await tools.tools() is await tools.tools()
        assert await tools.toolkits() is await tools.toolkits()


async def test_there_are_those_toolkits_that_were_chosen() -> None:
    """By the setting; a name that is wrong is told, with those there are."""
    async with calling() as caller:
        some = ShippedOnDemand(caller, "gmail,slack")
        assert [one.slug for one in await some.toolkits()] == ["gmail", "slack"]
        assert {one.toolkit for one in await some.tools()} == {"gmail", "slack"}
        with pytest.raises(NotFound):
            await some.run(ToolCall(slug="JIRA_CREATE_ISSUE", arguments={}, session=a_session()))
        assert await ShippedOnDemand(caller, "none").tools() == ()
        assert len(await ShippedOnDemand(caller).toolkits()) > 30
        with pytest.raises(NotConfigured, match=r"gmial.*gmail"):
            await ShippedOnDemand(caller, "gmial").tools()


async def test_accounts_are_connected_as_the_services_say() -> None:
    """The archive is not behind what is written down about them."""
    async with calling() as caller:
        found = {one.slug: one.auth for one in await ShippedTools(caller).toolkits()}
    assert found == {one.slug: one.auth for one in SERVICES}


async def test_only_services_that_grant_their_scopes_so_are_connected_by_a_code() -> None:
    async with calling() as caller:
        toolkits = await ShippedTools(caller).toolkits()
    by_code = {one.slug for one in toolkits for way in one.auth if way.oauth is not None and way.oauth.device_url}
    # Not Google's: its device flow takes none of the scopes that these toolkits need.
    assert by_code == {"github", "zoom"}


async def test_a_tool_that_is_not_there_is_not_found() -> None:
    async with calling() as caller:
        tools = ShippedTools(caller)
        with pytest.raises(NotFound, match="GMAIL_NO_SUCH"):
            await tools.run(ToolCall(slug="GMAIL_NO_SUCH", arguments={}, session=a_session()))


async def test_every_adaptation_is_a_tool_of_its_toolkit() -> None:
    async with calling() as caller:
        tools = {one.slug: one for one in await ShippedTools(caller).tools()}
    assert ADAPTATIONS.keys() <= tools.keys()
    assert all(tools[slug].description and tools[slug].tags for slug in ADAPTATIONS)
