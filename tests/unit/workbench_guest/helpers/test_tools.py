"""`run_composio_tool` and `proxy_execute`: what is sent, what comes back, what is asked for again."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from tests.unit.workbench_guest.helpers.answering import answer, in_turn, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest.helpers import proxy_execute, retrying, run_composio_tool

GOOD = {"data": {"items": [{"id": 1}]}, "error": None, "log_id": "log_1"}


def test_the_whole_answer_is_the_result_and_its_shape_is_printed(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(says(GOOD))
    assert run_composio_tool("  gmail_fetch_emails ", {"max": 3}, account="work") == (GOOD, "")
    assert server.arguments == {"tool_slug": "GMAIL_FETCH_EMAILS", "arguments": {"max": 3}, "account": "work"}
    printed = capsys.readouterr().out
    assert printed.startswith("GMAIL_FETCH_EMAILS answered:\n{\n")
    assert '"id": int' in printed
    assert "log_1" not in printed


def test_nothing_is_printed_for_who_does_not_want_it_nor_for_a_failure(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(in_turn(answer(GOOD), answer({"data": {}, "error": "no such mail"})))
    run_composio_tool("A", print_schema_for_tool=False)
    run_composio_tool("A")
    assert capsys.readouterr().out == ""
    assert server.requests[0]["arguments"] == {"tool_slug": "A", "arguments": {}, "account": None}


def test_a_result_is_not_lost_because_it_cannot_be_printed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, _text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            """Nothing."""

    serve(says(GOOD))
    monkeypatch.setattr("sys.stdout", Closed())
    assert run_composio_tool("A") == (GOOD, "")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (answer({"data": {}, "error": "no such mail"}), ({"data": {}, "error": "no such mail"}, "no such mail")),
        (answer({"error": {"message": "deep"}}), ({"error": {"message": "deep"}}, "{'message': 'deep'}")),
        (answer(None, "no such tool: A", "not_found"), (None, "no such tool: A")),
        (answer({"raw": "x"}, "failed with HTTP 500", "upstream"), ({"raw": "x"}, "failed with HTTP 500")),
        (answer([1]), (None, "the tool's answer is a list and not an object")),
    ],
)
def test_a_failure_comes_with_what_the_tool_said(serve: Serve, told: bytes, expected: tuple[Any, str]) -> None:
    server = serve(in_turn(told))
    assert run_composio_tool("A") == expected
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        answer(None, "slow down", "rate_limited"),
        answer({"error": "Rate limit reached"}),
        answer({"error": "429 Too Many Requests"}),
        answer({"error": {"code": "QUOTA EXCEEDED"}}),
        answer({"data": None, "error": "RESOURCE EXHAUSTED: later"}),
    ],
)
def test_too_often_twice_and_then_good_is_good(serve: Serve, refusal: bytes) -> None:
    server = serve(in_turn(refusal, refusal, answer(GOOD)))
    assert run_composio_tool("A", {"n": 1}) == (GOOD, "")
    assert server.requests == [server.requests[0]] * 3


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (2, 3)])
def test_after_as_many_tries_as_were_wanted_it_is_told(serve: Serve, retries: int, calls: int) -> None:
    server = serve(says(None, "slow down", "rate_limited"))
    assert run_composio_tool("A", retry_params={"max_retries": retries}) == (None, "slow down")
    assert len(server.requests) == calls


def test_the_wait_doubles_with_a_little_more_and_has_a_limit() -> None:
    for attempt, seconds in ((0, 2), (1, 4), (2, 8), (10, 60)):
        assert seconds <= retrying._pause_s(2000, attempt) <= seconds + 0.25
    assert retrying._pause_s(0, 0) == 0


def test_trying_again_draws_nothing_from_the_agents_random_numbers(serve: Serve) -> None:
    serve(in_turn(answer(None, "slow down", "rate_limited"), answer(GOOD)))
    random.seed(1)
    run_composio_tool("A", print_schema_for_tool=False)
    drawn = random.random()
    random.seed(1)
    assert drawn == random.random()


_ITSELF: dict[str, Any] = {}
_ITSELF["itself"] = _ITSELF


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"tool_slug": ""}, "tool_slug is empty"),
        ({"tool_slug": 3}, "tool_slug has to be a str, not int"),
        ({"arguments": [1]}, "arguments has to be a dict, not list"),
        ({"arguments": {"when": {"at": [datetime.date(2026, 1, 2)]}}},
         "arguments['when']['at'][0] is a datetime.date, which JSON cannot carry: use its .isoformat()"),
        ({"arguments": {"raw": b"x"}},
         "arguments['raw'] is a bytes, which JSON cannot carry: decode it, or make it a file for upload_local_file"),
        ({"arguments": {"n": float("inf")}}, "arguments['n'] is inf, which JSON does not have: use None"),
        ({"arguments": {("a", 1): 2}}, "a key of arguments is a tuple, and JSON has only text there: ('a', 1)"),
        ({"arguments": {"x": "a\ud800"}}, "arguments['x'] holds half of a character pair at 1, which is no text"),
        ({"arguments": {"\ud800": 1}},
         "a key of arguments holds half of a character pair, which is no text: '\\ud800'"),
        ({"retry_params": 3}, "retry_params has to be a dict like {'max_retries': 3, 'delay_ms': 10}, not int"),
        ({"retry_params": {"retries": 3}}, "retry_params has no 'retries': it takes max_retries and delay_ms"),
        ({"retry_params": {"max_retries": -1}},
         "retry_params['max_retries'] has to be a whole number from 0 to 10, not -1"),
        ({"retry_params": {"delay_ms": 1.5}},
         "retry_params['delay_ms'] has to be a whole number from 0 to 60000, not 1.5"),
        ({"account": 1}, "account has to be a str, not int"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_and_nothing_is_sent(serve: Serve, arguments: dict[str, Any], problem: str) -> None:
    server = serve(says(GOOD))
    assert run_composio_tool(**{"tool_slug": "A", **arguments}) == (None, problem)
    assert server.requests == []


def test_arguments_that_hold_themselves_are_told_and_not_followed_for_ever() -> None:
    result, error = run_composio_tool("A", _ITSELF)
    assert result is None
    assert error.startswith("arguments['itself']['itself']")
    assert error.endswith("nested too deeply, or holds itself")
    assert len(error) < 400


def test_objects_that_raise_when_they_are_looked_at_are_no_surprise() -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    result, error = run_composio_tool("A", {"odd": Odd()})
    assert (result, error.partition(":")[0]) == (None, "arguments cannot be sent as JSON")


def test_the_proxy_sends_what_it_was_given_and_gives_the_data(serve: Serve) -> None:
    server = serve(says({"login": "me"}))
    assert proxy_execute("post", "/user", " GitHub ", {"page": 2}, {"a": 1}, {"accept": "x"}) == ({"login": "me"}, "")
    assert server.requests == [{"operation": "proxy", "arguments": {
        "method": "POST", "endpoint": "/user", "toolkit": "github", "query_params": {"page": 2}, "body": {"a": 1},
        "headers": {"accept": "x"}}}]  # fmt: skip


def test_the_proxy_gives_the_whole_response_with_an_error_of_the_api(serve: Serve) -> None:
    response = {"status": 404, "data": {"message": "Not Found"}}
    serve(says(response, "API returned status 404: Not Found", "upstream"))
    assert proxy_execute("GET", "/user", "github") == (response, "API returned status 404: Not Found")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"method": "FETCH"}, "method has to be one of GET, DELETE, POST, PUT, PATCH, not 'FETCH'"),
        ({"method": None}, "method has to be a str, not NoneType"),
        ({"endpoint": " "}, "endpoint is empty"),
        ({"toolkit": ""}, "toolkit is empty"),
        ({"method": "POST"}, "body is missing: POST sends one; give {} if there is nothing to say"),
        ({"body": {}}, "body is not allowed with GET: use query_params, or another method"),
        ({"method": "DELETE", "body": {}}, "body is not allowed with DELETE: use query_params, or another method"),
        ({"query_params": [("a", 1)]}, "query_params has to be a dict, not list"),
        ({"headers": "x: y"}, "headers has to be a dict, not str"),
        ({"headers": {"x": 1}}, "headers['x'] has to be a str, not int"),
        ({"method": "PUT", "body": {"x": {1}}}, "body['x'] is a set, which JSON cannot carry: make it a list"),
    ],
)
def test_a_wrong_argument_of_the_proxy_is_named(serve: Serve, arguments: dict[str, Any], problem: str) -> None:
    server = serve(says())
    assert proxy_execute(**{"method": "GET", "endpoint": "/x", "toolkit": "github", **arguments}) == (None, problem)
    assert server.requests == []
