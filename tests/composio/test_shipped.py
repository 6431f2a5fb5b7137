"""The toolkits that come with the workbench, through a real server as it is without any setting."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.composio.tools.calling import Calling
from tests.mcp.http.talking import own_settings
from tests.server.running import running


@pytest.fixture(scope="module")
def calling() -> Iterator[Calling]:
    """In a session of a server of its own."""
    with own_settings(toolkits_shipped="all") as settings, running(settings) as server, server.client("") as client:
        client.headers["x-api-key"] = server.key
        made: httpx2.Response = client.post("/api/v3.1/tool_router/session", json={"user_id": "tester"})
        yield Calling(client, made.json()["session_id"])


def test_toolkits_are_there_without_anybody_adding_them(calling: Calling) -> None:
    told = calling.get("toolkits", limit=50)
    slugs = {one["slug"] for one in told["items"]}
    assert {"gmail", "github", "slack", "googlesheets", "jira", "stripe", "notion"} <= slugs
    assert told["total_items"] > 30


@pytest.mark.parametrize(("words", "slug"), [
    ("send an email", "GMAIL_SEND_EMAIL"),
    ("get a pull request of a github repository", "GITHUB_GET_A_PULL_REQUEST"),
    ("send a message to a slack channel", "SLACK_SEND_MESSAGE"),
])  # fmt: skip
def test_a_tool_is_found_by_what_it_does(calling: Calling, words: str, slug: str) -> None:
    answer = calling.post("search", {"queries": [{"use_case": words}]})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    [result] = told["results"]
    assert slug in [*result["primary_tool_slugs"], *result["related_tool_slugs"]]
    assert told["tool_schemas"][slug]["input_schema"]["properties"]


def test_without_an_account_a_call_says_how_to_connect_one(calling: Calling) -> None:
    arguments = {"recipient_email": "ada@example.com", "subject": "Hi", "body": "Hi"}
    told = calling.run("GMAIL_SEND_EMAIL", arguments)
    assert told["error"]
    assert "gmail" in told["error"]
    assert "connect" in told["error"].lower()


def test_an_argument_that_is_missing_is_named(calling: Calling) -> None:
    told = calling.run("GMAIL_SEND_EMAIL", {"subject": "Hi", "body": "Hi"})
    assert "recipient_email" in told["error"]
