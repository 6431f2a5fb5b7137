"""Each switch of a configuration takes its tools away, or brings them."""

from __future__ import annotations

import pytest

from workbench.core.router.offered import offered
from workbench.model.configuration import Choice, ManageConnections, SandboxSwitches, SessionConfig, ToolChoice

_USUAL = (
    "COMPOSIO_SEARCH_TOOLS",
    "COMPOSIO_GET_TOOL_SCHEMAS",
    "COMPOSIO_MULTI_EXECUTE_TOOL",
    "COMPOSIO_MANAGE_CONNECTIONS",
    "COMPOSIO_REMOTE_WORKBENCH",
    "COMPOSIO_REMOTE_BASH_TOOL",
)


def test_a_session_that_was_told_nothing_offers_the_six() -> None:
    assert offered(SessionConfig()) == _USUAL


@pytest.mark.parametrize(
    ("config", "gone"),
    [
        (SessionConfig(search=False), {"COMPOSIO_SEARCH_TOOLS"}),
        (SessionConfig(multi_execute=False), {"COMPOSIO_MULTI_EXECUTE_TOOL"}),
        (SessionConfig(manage_connections=ManageConnections(enable=False)), {"COMPOSIO_MANAGE_CONNECTIONS"}),
        (
            SessionConfig(manage_connections=ManageConnections(enable=False, wait_for_connections=True)),
            {"COMPOSIO_MANAGE_CONNECTIONS"},
        ),
        (
            SessionConfig(sandbox=SandboxSwitches(enable=False)),
            {"COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"},
        ),
        (SessionConfig(proxy_execute=False), set()),
    ],
)
def test_what_is_switched_off_is_not_offered(config: SessionConfig, gone: set[str]) -> None:
    assert set(_USUAL) - set(offered(config)) == gone
    assert set(offered(config)) <= set(_USUAL)


@pytest.mark.parametrize(
    ("config", "more"),
    [
        (
            SessionConfig(manage_connections=ManageConnections(wait_for_connections=True)),
            "COMPOSIO_WAIT_FOR_CONNECTIONS",
        ),
        (SessionConfig(proxy_execute=True), "COMPOSIO_PROXY_EXECUTE"),
        (SessionConfig(submit_feedback=True), "COMPOSIO_SUBMIT_FEEDBACK"),
    ],
)
def test_what_has_to_be_asked_for_is_offered_then(config: SessionConfig, more: str) -> None:
    assert set(offered(config)) - set(_USUAL) == {more}


@pytest.mark.parametrize(
    ("config", "left"),
    [
        (SessionConfig(toolkits=Choice(disable=("Composio",))), ()),
        (SessionConfig(toolkits=Choice(require_approval=("composio",))), ()),
        (SessionConfig(toolkits=Choice(enable=("github",))), _USUAL),
        (SessionConfig(tags=Choice(disable=("destructiveHint",))), _USUAL),
        (SessionConfig(tools={"composio": ToolChoice(tools=Choice(disable=(_USUAL[-1].lower(),)))}), _USUAL[:-1]),
        (SessionConfig(tools={"COMPOSIO": ToolChoice(tools=Choice(require_approval=(_USUAL[-1],)))}), _USUAL[:-1]),
        (SessionConfig(tools={"composio": ToolChoice(tools=Choice(enable=(_USUAL[0],)))}), _USUAL[:1]),
    ],
)  # fmt: skip
def test_who_names_one_rules_it_out(config: SessionConfig, left: tuple[str, ...]) -> None:
    assert offered(config) == left
