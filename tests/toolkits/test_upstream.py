"""Composio's own toolkits, passed on: listed by pages, called for the session's user, with a key that stays there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.toolkits.composio_server import KEY, Stand, composio
from tests.toolkits.worlds import added, call, source_of
from tests.unit.core.router.sources import session

from workbench.errors import (
    Denied,
    InvalidRequest,
    NotConfigured,
    NotFound,
    UpstreamLimited,
    UpstreamRefused,
    WorkbenchError,
)
from workbench.model.added import AddedToolkit
from workbench.model.session import Session
from workbench.testing.tools_contract import ToolSourceContract, Works
from workbench.toolkits.opening import AddedSource


@pytest.fixture
def stand() -> Iterator[Stand]:
    with composio() as stand:
        yield stand


def hosted(stand: Stand, *toolkits: str, key: str = KEY) -> AddedToolkit:
    return added("hosted", composio=list(toolkits or ("gmail",)), key=key, address=stand.url)


class TestUpstream(ToolSourceContract):
    @pytest.fixture
    async def source(self, tmp_path: Path, stand: Stand) -> AsyncIterator[AddedSource]:
        async with source_of(tmp_path, hosted(stand)) as source:
            yield source

    @pytest.fixture
    def session(self) -> Session:
        return session()

    @pytest.fixture
    def works(self) -> Works:
        return "GMAIL_FETCH_EMAILS", {"query": "x"}


@pytest.fixture
async def source(tmp_path: Path, stand: Stand) -> AsyncIterator[AddedSource]:
    async with source_of(tmp_path, hosted(stand)) as source:
        yield source


async def test_all_pages_of_its_tools_are_listed_once(source: AddedSource, stand: Stand) -> None:
    tools = {one.slug: one for one in await source.tools()}
    assert list(tools) == ["GMAIL_FETCH_EMAILS", "GMAIL_LIST_LABELS", "GMAIL_SEARCH_PEOPLE"]
    one = tools["GMAIL_FETCH_EMAILS"]
    assert (one.toolkit, one.tags, one.scopes, one.version) == (
        "gmail",
        ("readOnlyHint",),
        ("mail.read",),
        "20260101_00",
    )
    await source.tools()
    assert [path for _, path, _, _ in stand.asked] == [
        "/api/v3.1/tools?toolkit_slug=gmail&limit=500",
        "/api/v3.1/tools?toolkit_slug=gmail&limit=500&cursor=2",
    ]
    (toolkit,) = await source.toolkits()
    assert (toolkit.slug, toolkit.name, toolkit.no_auth) == ("gmail", "Gmail", True)


async def test_a_call_is_made_for_the_user_with_the_key_and_its_answer_is_passed_on(
    source: AddedSource, stand: Stand
) -> None:
    result = await source.run(call("GMAIL_FETCH_EMAILS", query="x"))
    method, path, headers, body = stand.asked[-1]
    assert (method, path) == ("POST", "/api/v3.1/tools/execute/GMAIL_FETCH_EMAILS")
    assert body == {"arguments": {"query": "x"}, "user_id": "ann", "version": "20260101_00"}
    assert {name.lower(): value for name, value in headers.items()}["x-api-key"] == KEY
    assert (result.data, result.error, result.log_id) == ({"did": body}, "", "log_9")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((400, {"error": {"message": "No connected account", "suggested_fix": "connect one"}}), InvalidRequest,
         "Composio refuses it: No connected account; connect one"),
        ((429, {"error": {"message": "slow down"}}), UpstreamLimited, "less often: slow down"),
        ((403, {"error": {"message": f"{KEY} is over"}}), UpstreamRefused, r"\*\*\* is over; add it with a new one"),
    ],
)  # fmt: skip
async def test_what_it_refuses_is_told_with_its_own_next_step(
    source: AddedSource, stand: Stand, answer: tuple[int, Any], kind: type[WorkbenchError], words: str
) -> None:
    stand.answers.append(answer)
    with pytest.raises(kind, match=words) as caught:
        await source.run(call("GMAIL_FETCH_EMAILS"))
    assert KEY not in caught.value.message
    if kind is UpstreamLimited:
        assert caught.value.context == {"retry_after_s": "7"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, {"data": {}, "successful": False, "error": "no such mail"}), "no such mail"),
        ((200, {"data": None, "successful": False}), "GMAIL_FETCH_EMAILS failed, and Composio did not say why"),
        ((500, b"<html>"), "Composio failed: the status 500; GMAIL_FETCH_EMAILS may have been carried out"),
        ((200, b"<html>"), "Composio's answer is no JSON object; GMAIL_FETCH_EMAILS may have been carried out"),
    ],
)
async def test_what_failed_there_is_a_result(
    source: AddedSource, stand: Stand, answer: tuple[int, Any], error: str
) -> None:
    stand.answers.append(answer)
    assert (await source.run(call("GMAIL_FETCH_EMAILS"))).error == error


async def test_the_key_comes_back_in_nothing(source: AddedSource, stand: Stand) -> None:
    stand.answers.append((200, {"data": {"echo": f"x{KEY}y"}, "successful": True, "error": None}))
    result = await source.run(call("GMAIL_FETCH_EMAILS"))
    assert result.data == {"echo": "x***y"}
    assert KEY not in json.dumps(result.data) + repr(source) + repr(hosted(stand))


async def test_a_wrong_key_a_toolkit_that_is_none_and_a_tool_that_is_none(tmp_path: Path, stand: Stand) -> None:
    async with source_of(tmp_path, hosted(stand, key="wrong-key-of-mine")) as source:
        with pytest.raises(UpstreamRefused, match="does not take the key of this toolkit: Invalid API key; make one"):
            await source.tools()
    async with source_of(tmp_path, hosted(stand, "gmial")) as source:
        with pytest.raises(NotConfigured, match="Composio has no tools of a toolkit 'gmial'"):
            await source.tools()
    async with source_of(tmp_path, hosted(stand)) as source:
        with pytest.raises(NotFound, match="GMAIL_NOTHING is no tool of gmail at Composio"):
            await source.run(call("GMAIL_NOTHING"))


async def test_it_is_asked_through_the_guard(tmp_path: Path, stand: Stand) -> None:
    there = added("hosted", composio=["gmail"], key=KEY, address=stand.url.replace("http:", "https:"))
    async with source_of(tmp_path, there, allow="") as source:
        with pytest.raises(Denied, match="loopback"):
            await source.tools()
    assert stand.asked == []


@pytest.mark.parametrize("account", ["ca_bob", "none", "../tools?x=", "ca_ann/../ca_bob", "a b"])
async def test_an_account_of_somebody_else_is_not_used(source: AddedSource, stand: Stand, account: str) -> None:
    with pytest.raises(Denied, match="of user 'ann' at Composio"):
        await source.run(replace(call("GMAIL_FETCH_EMAILS", query="x"), account=account))
    assert [one for one in stand.asked if one[0] == "POST"] == []
    told = await source.run(replace(call("GMAIL_FETCH_EMAILS", query="x"), account="ca_ann"))
    assert told.data["did"]["connected_account_id"] == "ca_ann"
