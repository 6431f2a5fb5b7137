"""What there is from several sources, and what of it a session may use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.core.router.sources import Source, session, tool

from workbench.core.router.catalogue import Catalogue, nearest
from workbench.errors import Denied, NotConfigured
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
        (SessionConfig(toolkits=Choice(require_approval=("github",))), {"BASIC_CHAT"}),
        (SessionConfig(tags=Choice(require_approval=("destructiveHint",))), ALL - {"GITHUB_WRITE"}),
        (
            SessionConfig(tools={"github": ToolChoice(tools=Choice(require_approval=("GITHUB_READ",)))}),
            ALL - {"GITHUB_READ"},
        ),
        # As somebody may write them who has read them elsewhere.
        (SessionConfig(toolkits=Choice(disable=(" GitHub",))), {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(disable=("BASIC",))), ALL - {"BASIC_CHAT"}),
        (SessionConfig(toolkits=Choice(enable=("GITHUB",))), ALL),
        (SessionConfig(toolkits=Choice(require_approval=("GITHUB",))), {"BASIC_CHAT"}),
        (SessionConfig(tools={"GITHUB": ToolChoice(tools=Choice(disable=("github_read",)))}), ALL - {"GITHUB_READ"}),
        (
            SessionConfig(tools={"github": ToolChoice(tools=Choice(require_approval=("github_read",)))}),
            ALL - {"GITHUB_READ"},
        ),
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


async def test_what_wants_to_be_approved_is_not_done_without(catalogue: Catalogue) -> None:
    config = SessionConfig(toolkits=Choice(require_approval=("github",)))
    with pytest.raises(Denied, match="approved"):
        await catalogue.find("GITHUB_WRITE", config)


async def test_what_there_is_not_is_told_with_the_nearest_and_with_what_there_is(catalogue: Catalogue) -> None:
    with pytest.raises(NotConfigured) as caught:
        await catalogue.find("GITHUB_REED", SessionConfig())
    assert "did you mean GITHUB_READ" in caught.value.message
    assert "no toolkit is configured" in caught.value.message
    assert all(slug in caught.value.message for slug in ALL)
    with pytest.raises(NotConfigured) as caught:
        await catalogue.find("X" * 500, SessionConfig())
    assert len(caught.value.message) < 400


async def test_of_two_sources_the_first_has_the_name() -> None:
    first, second = Source((GITHUB,), (READ,)), Source((GITHUB,), (READ, WRITE))
    entries = await Catalogue([first, second]).entries()
    assert (entries["GITHUB_READ"].source, entries["GITHUB_WRITE"].source) == (first, second)


async def test_connections_are_asked_of_the_source_that_has_the_toolkit(catalogue: Catalogue) -> None:
    told = await catalogue.connection("github", session())
    assert (told.toolkit, told.is_active) == ("github", False)
    assert (await catalogue.connection("basic", session())).is_active
    with pytest.raises(NotConfigured, match=r"'slack' is not configured.*basic, github"):
        await catalogue.connection("slack", session())


def test_names_that_are_unlike_are_not_proposed() -> None:
    assert nearest("ZZZ", ["GITHUB_READ"]) == []
