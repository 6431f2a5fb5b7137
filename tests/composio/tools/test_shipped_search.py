"""With the shipped toolkits the right tool is found among thousands, with its schema, and whether it can be used."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.composio.tools.calling import Calling
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """Of this file, with everything that is shipped."""
    with own_settings(toolkits_shipped="all") as settings, running(settings) as server:
        yield server


@pytest.fixture
def calling(client: httpx2.Client, session: str) -> Calling:
    """In a session of the test's own."""
    return Calling(client, session)


def test_each_step_of_a_task_finds_its_tool_among_all(calling: Calling) -> None:
    wanted = {
        "fetch my latest emails": "GMAIL_FETCH_EMAILS",
        "put a label on an email": "GMAIL_ADD_LABEL_TO_EMAIL",
        "create an issue in a github repository": "GITHUB_CREATE_AN_ISSUE",
        "send a message to a slack channel": "SLACK_SEND_MESSAGE",
    }
    told = calling.post("search", {"queries": [{"use_case": words} for words in wanted]}).json()
    for result, (words, slug) in zip(told["results"], wanted.items(), strict=True):
        assert slug in result["primary_tool_slugs"], (words, result)
        assert told["tool_schemas"][slug]["tool_slug"] == slug
        assert "meaning" in result["reasoning"] or "words" in result["reasoning"]
    statuses = {one["toolkit"]: one["has_active_connection"] for one in told["toolkit_connection_statuses"]}
    assert statuses["gmail"] is False
    assert any("COMPOSIO_MANAGE_CONNECTIONS" in step for step in told["next_steps_guidance"])


def test_what_no_app_does_is_told_as_that(calling: Calling) -> None:
    told = calling.post("search", {"queries": [{"use_case": "water the plants"}]}).json()
    assert told["results"][0]["primary_tool_slugs"] == []
    assert "error" in told["results"][0]
