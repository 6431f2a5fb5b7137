"""What there is from several sources, and what of it a session may use."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from tests.unit.core.router.sources import Source, tool

from workbench.core.router.catalogue import Catalogue, is_asked_first, nearest
from workbench.errors import Denied, NotConfigured, NotFound
from workbench.model.configuration import Choice, SessionConfig, ToolChoice
from workbench.model.toolkit import Toolkit

GITHUB = Toolkit(slug="github", name="GitHub")
BASIC = Toolkit(slug="basic", name="Basic", no_auth=True, is_basic=True)
READ = replace(tool("GITHUB_READ", "github"), tags=("readOnlyHint",))
WRITE = replace(tool("GITHUB_WRITE", "github"), tags=("destructiveHint",))
CHAT = tool("BASIC_CHAT", "basic")
ALL = {"GITHUB_READ", "GITHUB_WRITE", "BASIC_CHAT"}


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue([Source((GITHUB,), (READ, WRITE)), Source((BASIC,), (CHAT,))])


@pytest.mark.parametrize(
    ("config", "slugs"),
    [
        (SessionConfig(), ALL),
        (SessionConfig(toolkits=Choice(enable=("github",))), ALL),
        (SessionConfig(toolkits=Choice(enable=())), {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(disable=("github",))), {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(disable=("basic",))), ALL - {"BASIC_CHAT"}),
        (SessionConfig(tools={"github": ToolChoice(tools=Choice(enable=("GITHUB_READ",)))}), ALL - {"GITHUB_WRITE"}),
        (SessionConfig(tools={"github": ToolChoice(tools=Choice(disable=("GITHUB_READ",)))}), ALL - {"GITHUB_READ"}),
        (SessionConfig(tags=Choice(enable=("readOnlyHint",))), {"GITHUB_READ"}),
        (SessionConfig(tags=Choice(disable=("destructiveHint",))), ALL - {"GITHUB_WRITE"}),
        (
            SessionConfig(
                tags=Choice(enable=("destructiveHint",)),
                tools={"github": ToolChoice(tags=Choice(enable=("readOnlyHint",)))},
            ),
            {"GITHUB_READ"},
        ),
        # A source that does not say whether a tool creates or changes: ruled out at worst, taken at best.
        (SessionConfig(tags=Choice(disable=("createHint",))), {"GITHUB_READ"}),
        (SessionConfig(tags=Choice(enable=("createHint", "updateHint"))), {"BASIC_CHAT"}),
        # What a person is asked about first can be used: they are asked.
        (SessionConfig(toolkits=Choice(require_approval=("github",))), ALL),
        # As somebody may write them who has read them elsewhere.
        (SessionConfig(toolkits=Choice(disable=(" GitHub",))), {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(disable=("BASIC",))), ALL - {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(enable=("GITHUB",))), ALL),
        (SessionConfig(tools={"GITHUB": ToolChoice(tools=Choice(disable=("github_read",)))}), ALL - {"GITHUB_READ"}),
        (
            SessionConfig(
                tools={
                    "github": ToolChoice(tools=Choice(enable=("GITHUB_READ", "GITHUB_WRITE"))),
                    "GITHUB": ToolChoice(tags=Choice(disable=("destructiveHint",))),
                }
            ),
            ALL - {"GITHUB_WRITE"},
        ),
    ],
)
async def test_a_session_may_use_what_its_configuration_takes(
    catalogue: Catalogue, config: SessionConfig, slugs: set[str]
) -> None:
    assert set(await catalogue.usable(config)) == slugs
    for slug in ALL - slugs:
        with pytest.raises(Denied, match=slug):
            await catalogue.find(slug, config)


async def test_what_there_is_not_is_told_with_the_nearest_and_with_what_there_is(catalogue: Catalogue) -> None:
    with pytest.raises(NotConfigured) as caught:
        await catalogue.find("GITHUB_REED", SessionConfig())
    assert "did you mean GITHUB_READ" in caught.value.message
    assert "no toolkit is configured" in caught.value.message
    assert all(slug in caught.value.message for slug in ALL)
    with pytest.raises(NotConfigured) as caught:
        await catalogue.find("X" * 500, SessionConfig())
    assert len(caught.value.message) < 400


async def test_of_thousands_the_first_are_not_listed() -> None:
    many = Catalogue([Source((GITHUB,), tuple(tool(f"GITHUB_READ_{number}", "github") for number in range(3000)))])
    with pytest.raises(NotConfigured) as caught:
        await many.find("GITHUB_REED_7", SessionConfig())
    assert "did you mean GITHUB_READ_7" in caught.value.message
    assert "COMPOSIO_SEARCH_TOOLS finds the right one of the 3,000" in caught.value.message
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("hint", ["createHint", "updateHint"])
def test_who_approves_what_creates_or_changes_is_asked_also_where_the_source_does_not_say_which(hint: str) -> None:
    config = SessionConfig(tags=Choice(require_approval=(hint,)))
    assert not is_asked_first(config, READ)
    assert is_asked_first(config, WRITE)
    assert is_asked_first(config, CHAT)
    other = {"createHint": "updateHint", "updateHint": "createHint"}[hint]
    assert not is_asked_first(config, replace(WRITE, tags=(other,)))


async def test_of_two_sources_the_first_has_the_name() -> None:
    first, second = Source((GITHUB,), (READ,)), Source((GITHUB,), (READ, WRITE))
    entries = await Catalogue([first, second]).entries()
    assert (entries["GITHUB_READ"].source, entries["GITHUB_WRITE"].source) == (first, second)


async def test_a_toolkit_is_found_by_its_name_and_others_are_named(catalogue: Catalogue) -> None:
    assert await catalogue.toolkit("github") == GITHUB
    with pytest.raises(NotFound, match=r"'slack' is not configured.*basic, github.*workbench toolkits add") as caught:
        await catalogue.toolkit("slack")
    assert caught.value.context == {"toolkit": "slack"}
    with pytest.raises(NotFound, match="did you mean github"):
        await catalogue.toolkit("githb")


class _Slow(Source):
    """Answers once all have been asked."""

    def __init__(self, all_asked: asyncio.Barrier) -> None:
        super().__init__((), ())
        self._all_asked = all_asked

    async def toolkits(self) -> tuple[Toolkit, ...]:
        await self._all_asked.wait()
        return await super().toolkits()


async def test_sources_are_asked_at_once_so_that_slow_ones_cost_no_more_than_the_slowest() -> None:
    all_asked = asyncio.Barrier(5)
    catalogue = Catalogue([*(_Slow(all_asked) for _ in range(5)), Source((GITHUB,), (READ,))])
    async with asyncio.timeout(10):
        assert [one.slug for one in await catalogue.toolkits()] == ["github"]
        assert set(await catalogue.entries()) == {"GITHUB_READ"}
        assert await catalogue.toolkit("github") == GITHUB


def test_names_that_are_unlike_are_not_proposed() -> None:
    assert nearest("ZZZ", ["GITHUB_READ"]) == []


def test_among_thousands_the_nearest_are_found_in_a_moment() -> None:
    known = [
        f"APP{n}_{verb}_THE_{thing}" for n in range(100) for verb in ("SEND", "LIST", "DROP") for thing in "ABCDEFGHIJ"
    ]
    known.append("GMAIL_SEND_EMAIL")
    began = time.monotonic()
    assert nearest("GMAIL_SEND_EMAL", known)[0] == "GMAIL_SEND_EMAIL"
    assert nearest("X" * 10_000, known) == []
    assert time.monotonic() - began < 0.5


async def test_many_names_in_a_configuration_and_many_tools_stop_nobody() -> None:
    kits = tuple(Toolkit(slug=f"kit{number}", name="Kit") for number in range(30))
    tools = tuple(tool(f"KIT{number % 30}_DO_{number}", f"kit{number % 30}") for number in range(6000))
    catalogue = Catalogue([Source(kits, tools)])
    names = tuple(f"NONE_{number}" for number in range(1000))
    choice = ToolChoice(tools=Choice(disable=names[:300]))
    config = SessionConfig(toolkits=Choice(disable=names), tools={f"Kit{number}": choice for number in range(500)})
    begun = time.process_time()
    assert len(await catalogue.usable(config)) == 6000
    assert time.process_time() - begun < 2


async def test_what_is_disabled_is_so_by_the_name_of_another_tool_that_does_the_same() -> None:
    kit = Toolkit(slug="app", name="App", no_auth=True)
    same = replace(tool("APP_RAW_WRITE", "app"), acts_as=("APP_WRITE",))
    catalogue = Catalogue([Source((kit,), (tool("APP_WRITE", "app"), same, tool("APP_READ", "app")))])
    config = SessionConfig(tools={"app": ToolChoice(tools=Choice(disable=("app_write",)))})
    assert set(await catalogue.usable(config)) == {"APP_READ"}
    with pytest.raises(Denied, match="does not enable it"):
        await catalogue.find("APP_RAW_WRITE", config)
