"""Approvals on a real server: over the sessions API, for many calls at once, and for code inside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from tests.composio.asking import bad_request
from tests.composio.tools.apps.conftest import Shop
from tests.composio.tools.calling import WORKBENCH, Calling, configured
from tests.server.running import Running

from workbench import Composio

ASKING = {"tags": {"require_approval": ["destructiveHint"]}}
MANY = "COMPOSIO_MULTI_EXECUTE_TOOL"


def asked(calling: Calling, slug: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What is to be answered first, in the shape that SDKs read."""
    answer = calling.post("execute", {"tool_slug": slug, "arguments": arguments, **more})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert set(told) == {"result_type", "input_requests", "request_state"}, told
    assert told["result_type"] == "input_required"
    (request,) = told["input_requests"].values()
    assert (request["type"], request["mode"]) == ("elicitation", "form")
    assert request["requested_schema"]["properties"]["decision"]["enum"] == ["allow_once", "allow_session", "deny"]
    return told


def said(told: dict[str, Any], action: str = "accept", **content: Any) -> dict[str, Any]:
    responses = {name: {"action": action, "content": content or None} for name in told["input_requests"]}
    return {"input_responses": responses, "request_state": told["request_state"]}


def test_a_write_is_asked_about_first_and_done_once(client: httpx2.Client, made: list[str], shop: Shop) -> None:
    calling = configured(client, made, **ASKING)
    assert calling.data("SHOP_LOOK", {"number": 1})["state"] == "open"
    told = asked(calling, "SHOP_REFUND", {"number": 7})
    assert 'SHOP_REFUND: {"number": 7}' in told["input_requests"]["approval"]["message"]
    assert shop.refunds() == []
    again = said(told, decision="allow_once")
    assert calling.data("SHOP_REFUND", {"number": 7}, **again) == {"refunded": 7}
    body = {"tool_slug": "SHOP_REFUND", "arguments": {"number": 7}, **again}
    bad_request(calling.post("execute", body), "used already")
    other = said(asked(calling, "SHOP_REFUND", {"number": 7}))
    bad_request(
        calling.post("execute", {"tool_slug": "SHOP_REFUND", "arguments": {"number": 8}, **other}), "not those that"
    )
    assert shop.refunds() == [7]


def test_a_no_is_a_failure_that_says_so(client: httpx2.Client, made: list[str], shop: Shop) -> None:
    calling = configured(client, made, **ASKING)
    told = calling.run("SHOP_REFUND", {"number": 7}, **said(asked(calling, "SHOP_REFUND", {"number": 7}), "decline"))
    assert "did not allow it" in told["error"]
    assert shop.refunds() == []


def test_fifty_writes_are_one_question(client: httpx2.Client, made: list[str], shop: Shop) -> None:
    calling = configured(client, made, experimental={"permissions": {"default": "ask_every_call"}})
    tools = [{"tool_slug": "SHOP_REFUND", "arguments": {"number": n}} for n in range(50)]
    arguments = {"tools": tools, "sync_response_to_workbench": False}
    told = asked(calling, MANY, arguments)
    assert "Run these 50 tools?" in told["input_requests"]["approval"]["message"]
    assert shop.refunds() == []
    data = calling.data(MANY, arguments, **said(told))
    assert data["success_count"] == 50
    assert sorted(shop.refunds()) == list(range(50))


def test_what_was_allowed_for_the_session_is_asked_once(client: httpx2.Client, made: list[str], shop: Shop) -> None:
    calling = configured(client, made, experimental={"permissions": {"default": "ask_once_per_session"}})
    told = asked(calling, "SHOP_REFUND", {"number": 1})
    calling.data("SHOP_REFUND", {"number": 1}, **said(told))
    assert calling.data("SHOP_REFUND", {"number": 2}) == {"refunded": 2}
    assert shop.refunds() == [1, 2]


def test_what_is_never_run_is_not(client: httpx2.Client, made: list[str], shop: Shop) -> None:
    overrides = {"SHOP_REFUND:__none__": "always_deny"}
    calling = configured(client, made, experimental={"permissions": {"default": "allow_all", "overrides": overrides}})
    assert "always_deny" in calling.run("SHOP_REFUND", {"number": 1})["error"]
    assert shop.refunds() == []
    wrong = {"permissions": {"default": "allow_all", "overrides": {"not a slug": "always_deny"}}}
    body = {"user_id": "tester", "experimental": wrong}
    bad_request(client.post("/api/v3.1/tool_router/session", json=body), "overrides")


def test_code_inside_is_refused_and_its_calls_are_one_question(
    client: httpx2.Client, made: list[str], shop: Shop
) -> None:
    calling = configured(client, made, **ASKING)
    code = "said = [run_composio_tool('SHOP_REFUND', {'number': n}, print_schema_for_tool=False) for n in range(20)]\n"
    data = calling.data(WORKBENCH, {"code_to_execute": f"{code}[error for _, error in said]"})
    assert data["results"].count("a person has to approve it") == 20
    assert shop.refunds() == []
    told = asked(calling, WORKBENCH, {"code_to_execute": f"{code}[error for _, error in said]"})
    message = told["input_requests"]["approval"]["message"]
    assert all(f'SHOP_REFUND: {{"number": {n}}}' in message for n in range(20))
    again = calling.data(WORKBENCH, {"code_to_execute": f"{code}[error for _, error in said]"}, **said(told))
    assert again["results"].count("''") == 20
    assert sorted(shop.refunds()) == list(range(20))
    # Each once.
    data = calling.data(WORKBENCH, {"code_to_execute": f"{code}[error for _, error in said]"})
    assert data["results"].count("a person has to approve it") == 20
    assert shop.refunds() == []


def test_a_token_of_the_session_approves_nothing(
    client: httpx2.Client, made: list[str], server: Running, shop: Shop
) -> None:
    calling = configured(client, made, **ASKING)
    told = asked(calling, "SHOP_REFUND", {"number": 1})
    token = client.post(f"/v1/sessions/{calling.session}/tokens", json={}).json()["token"]
    with server.client(token) as code:
        mine = Calling(code, calling.session)
        assert "a person has to approve it" in mine.run("SHOP_REFUND", {"number": 1})["error"]
        body = {"tool_slug": "SHOP_REFUND", "arguments": {"number": 1}, **said(told)}
        assert mine.post("execute", body).status_code == 403
    assert shop.refunds() == []


def test_our_own_sdk_hands_the_question_on_and_the_answer_back(server: Running, shop: Shop) -> None:
    with Composio(api_key=server.key, base_url=server.url) as composio:
        session = composio.create(user_id="tester", tags={"require_approval": ["destructiveHint"]})
        try:
            asked = session.execute("SHOP_REFUND", {"number": 5})
            assert asked.result_type == "input_required"
            assert "SHOP_REFUND" in str(asked.input_requests["approval"]["message"])
            assert asked.error is not None
            done = session.execute(
                "SHOP_REFUND",
                {"number": 5},
                input_responses={"approval": {"action": "accept"}},
                request_state=asked.request_state,
            )
            assert (done.successful, done.data) == (True, {"refunded": 5})
        finally:
            session.delete()
    assert shop.refunds() == [5]


def test_one_answer_that_is_sent_many_times_at_once_is_good_for_one_call(
    client: httpx2.Client, made: list[str], shop: Shop
) -> None:
    calling = configured(client, made, **ASKING)
    answer = said(asked(calling, "SHOP_REFUND", {"number": 9}), decision="allow_once")
    body = {"tool_slug": "SHOP_REFUND", "arguments": {"number": 9}, **answer}
    with ThreadPoolExecutor(8) as pool:
        # Each told apart by a header, so that they are not taken for one that was sent again.
        sent = [
            pool.submit(client.post, f"{calling.address}/execute", json=body, headers={"X-Call-Id": f"call-{number}"})
            for number in range(8)
        ]
        codes = sorted(one.result().status_code for one in sent)
    assert shop.refunds() == [9]
    assert codes[:1] == [200]
