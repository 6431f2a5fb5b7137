"""Which tools a session shows, and each by itself, in the shape that SDKs need."""

from __future__ import annotations

import httpx2
import pytest
from tests.composio.asking import SIX, refused
from tests.composio.tools.calling import ANSWER, BASH, CHAT, WORKBENCH, Calling, configured

FIELDS = {
    "slug", "name", "description", "human_description", "input_parameters", "output_parameters", "tags", "scopes",
    "no_auth", "version", "available_versions", "is_deprecated", "toolkit", "deprecated",
}  # fmt: skip


def test_a_session_shows_its_meta_tools_with_all_that_sdks_read(calling: Calling) -> None:
    told = calling.get("tools", limit=500)
    assert [one["slug"] for one in told["items"]] == SIX
    assert {key: told[key] for key in ("next_cursor", "total_pages", "current_page", "total_items")} == {
        "next_cursor": None,
        "total_pages": 1,
        "current_page": 1,
        "total_items": 6,
    }
    for tool in told["items"]:
        assert set(tool) == FIELDS
        assert tool["toolkit"] == {"slug": "composio", "name": "Composio", "logo": ""}
        assert (tool["version"], tool["no_auth"], tool["is_deprecated"]) == ("00000000_00", True, False)
        assert tool["input_parameters"]["type"] == "object"
        assert tool["input_parameters"]["properties"]
        assert tool["output_parameters"]["properties"]["data"]["properties"]
        assert tool["deprecated"]["displayName"] == tool["name"]
        assert tool["tags"]
    needs = {tool["slug"]: tool["input_parameters"]["required"] for tool in told["items"]}
    assert needs[WORKBENCH] == ["code_to_execute"]
    assert needs["COMPOSIO_MULTI_EXECUTE_TOOL"] == ["tools", "sync_response_to_workbench"]


def test_pages_hold_each_tool_once(calling: Calling) -> None:
    seen, cursor = [], None
    for number in range(1, 4):
        told = calling.get("tools", limit=2, **({} if cursor is None else {"cursor": cursor}))
        assert (told["current_page"], told["total_pages"], len(told["items"])) == (number, 3, 2)
        seen += [one["slug"] for one in told["items"]]
        cursor = told["next_cursor"]
    assert (seen, cursor) == (SIX, None)


def test_what_is_said_of_the_sandbox_promises_nothing_that_this_api_does_not_give(calling: Calling) -> None:
    told = {one["slug"]: one["description"] for one in calling.get("tools")["items"]}
    for slug in (WORKBENCH, BASH):
        assert "come back as images" not in told[slug]
        assert "`next`" not in told[slug]
    assert "/mnt/files" in told[WORKBENCH]


def test_switches_add_and_remove_tools(client: httpx2.Client, made: list[str]) -> None:
    off = {
        "manage_connections": {"enable": False},
        "workbench": {"enable": False},
        "search": {"enable": False},
        "execute": {"enable_multi_execute": False},
    }
    alone = configured(client, made, **off, preload={"tools": "all"})
    assert [one["slug"] for one in alone.get("tools")["items"]] == ["COMPOSIO_GET_TOOL_SCHEMAS", ANSWER, CHAT]
    more = configured(
        client,
        made,
        manage_connections={"enable": True, "enable_wait_for_connections": True},
        proxy_execute={"enable": True},
        preload={"tools": [CHAT, "GITHUB_NONE"]},
        experimental={"submit_feedback": {"enable": True}},
    )
    slugs = [one["slug"] for one in more.get("tools")["items"]]
    assert set(SIX) < set(slugs)
    assert {"COMPOSIO_WAIT_FOR_CONNECTIONS", "COMPOSIO_PROXY_EXECUTE", "COMPOSIO_SUBMIT_FEEDBACK"} < set(slugs)
    assert slugs[-1] == CHAT


@pytest.mark.parametrize("slug", [WORKBENCH, "COMPOSIO_SEARCH_TOOLS", CHAT, CHAT.lower()])
def test_any_tool_is_described_by_itself(client: httpx2.Client, prefix: str, slug: str) -> None:
    answer = client.get(f"{prefix}/tools/{slug}", params={"toolkit_versions": "latest"})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == FIELDS
    assert answer.json()["slug"] == slug.upper()


def test_a_tool_that_there_is_not_is_not_found_with_the_nearest(client: httpx2.Client) -> None:
    told = client.get("/api/v3.1/tools/COMPOSIO_REMOTE_WORKBENC")
    refused(told, 404, "HTTP_NotFound", 10404, "COMPOSIO_REMOTE_WORKBENC", f"did you mean {WORKBENCH}")
