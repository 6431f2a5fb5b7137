"""Both clients against a real server on the loopback: answers, refusals, lost connections."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator

import pytest
from tests.unit.client.loopback import (
    DROPPED,
    KEY,
    Loopback,
    Reply,
    cell_body,
    free_port,
    refused,
    serving,
    session_body,
)

from workbench import AsyncWorkbench, Workbench
from workbench.client._sending import Target, Variables
from workbench.errors import (
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ServerUnavailable,
    Unauthenticated,
    WorkbenchError,
)

CELL_JSON = json.dumps(cell_body(results={"text": "2"}))
SESSION, CELL = Reply(body=session_body()), Reply(body=cell_body(results={"text": "2"}))


@contextlib.contextmanager
def client(loopback: Loopback, retry_for_s: float = 10.0) -> Iterator[Workbench]:
    with Workbench(loopback.url, KEY, retry_for_s=retry_for_s) as bench:
        yield bench


def test_every_request_carries_the_key_and_is_json() -> None:
    with serving(Reply(201, session_body(user="user_123"))) as loopback, client(loopback) as bench:
        assert bench.create("user_123").user_id == "user_123"
    assert loopback.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert loopback.asked[0].headers["content-type"] == "application/json"
    assert loopback.asked[0].headers["user-agent"].startswith("open-workbench/")


def test_a_refusal_is_the_class_of_its_code_with_the_servers_words() -> None:
    with (
        serving(refused("not_found", "no session 'x'; `wb.create` makes one", 404, session="x")) as loopback,
        client(loopback) as bench,
        pytest.raises(NotFound, match="no session 'x'") as raised,
    ):
        bench.use("x")
    assert raised.value.context == {"session": "x", "request_id": "req-1"}


def test_a_code_of_a_newer_server_is_still_an_error_of_the_tree() -> None:
    with (
        serving(refused("brand_new")) as loopback,
        client(loopback) as bench,
        pytest.raises(WorkbenchError) as raised,
    ):
        bench.use("x")
    assert raised.value.context["code"] == "brand_new"


@pytest.mark.parametrize("reply", [Reply(text="<html>", kind="text/html"), Reply(404, text="nginx"), Reply(body=[1])])
def test_something_that_is_not_our_server_is_named(reply: Reply) -> None:
    with (
        serving(reply) as loopback,
        client(loopback) as bench,
        pytest.raises(ServerUnavailable, match=r"not an Open Workbench server.*OPEN_WORKBENCH_URL"),
    ):
        bench.use("x")


def test_a_lost_answer_of_a_cell_is_asked_for_again_with_the_same_key() -> None:
    half = Reply(pieces=(" ", " "), breaks_off=True)
    with serving(SESSION, DROPPED, half, CELL) as loopback, client(loopback) as bench:
        assert bench.use("ses-1").run("1 + 1").results == "2"
    keys = {asked.headers["idempotency-key"] for asked in loopback.asked[1:]}
    assert len(loopback.asked) == 4
    assert len(keys) == 1


def test_a_lost_answer_of_something_that_may_not_happen_twice_is_an_error() -> None:
    with serving(SESSION, DROPPED) as loopback, client(loopback) as bench:
        session = bench.use("ses-1")
        with pytest.raises(ServerUnavailable, match="whether it was done is not known"):
            session.undo()
    assert len(loopback.asked) == 2


@pytest.mark.parametrize("away", [refused("server_unavailable", status=503), Reply(502, text="bad gateway")])
def test_a_server_that_is_leaving_is_asked_again(away: Reply) -> None:
    with serving(SESSION, away, away, CELL) as loopback, client(loopback) as bench:
        assert bench.use("ses-1").run("1").ok


def test_a_refusal_that_may_pass_is_still_for_the_caller_to_judge() -> None:
    with serving(SESSION, refused("sandbox_unavailable", status=503)) as loopback, client(loopback) as bench:
        session = bench.use("ses-1")
        with pytest.raises(WorkbenchError) as raised:
            session.run("1")
    assert raised.value.code == "sandbox_unavailable"
    assert raised.value.retryable
    assert len(loopback.asked) == 2


def test_a_restart_of_the_server_is_waited_for() -> None:
    port = free_port()
    answers: list[str] = []
    with Workbench(f"http://127.0.0.1:{port}", KEY, retry_for_s=60.0) as bench:
        with serving(SESSION, port=port):
            session = bench.use("ses-1")
        caller = threading.Thread(target=lambda: answers.append(session.run("1 + 1").results))
        caller.start()
        with serving(CELL, port=port):
            caller.join(60.0)
    assert answers == ["2"]


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    with (
        Workbench(f"http://127.0.0.1:{free_port()}", KEY) as bench,
        pytest.raises(ServerUnavailable, match="start it with `workbench serve`"),
    ):
        bench.use("x")


def test_white_space_keeps_a_long_cell_alive() -> None:
    body = Reply(pieces=(" ", "\n", " ", CELL_JSON))
    with serving(SESSION, body) as loopback, client(loopback) as bench:
        assert bench.use("ses-1").run("1", limit_s=3600).results == "2"


def test_a_cell_that_never_began_raises_what_the_server_wrote_down() -> None:
    with serving(SESSION, Reply(body=cell_body(status="failed"))) as loopback, client(loopback) as bench:
        session = bench.use("ses-1")
        with pytest.raises(QuotaExceeded, match="no more memory") as raised:
            session.run("1")
    assert raised.value.context["cell"] == "cel-1"


def test_a_cell_that_has_not_ended_when_the_server_leaves_is_waited_for() -> None:
    pending = Reply(body=cell_body(status="pending"))
    with serving(SESSION, pending, pending, CELL) as loopback, client(loopback) as bench:
        assert bench.use("ses-1").run("1").results == "2"
    assert [asked.target for asked in loopback.asked[2:]] == ["/v1/sessions/ses-1/cells/cel-1?wait_s=20"] * 2


def test_pages_are_asked_for_when_they_are_needed() -> None:
    first = Reply(body={"items": [session_body("a"), session_body("b")], "next_cursor": "b"})
    with serving(first, Reply(body={"items": [session_body("c")]})) as loopback, client(loopback) as bench:
        found = bench.sessions("me")
        assert next(found).id == "a"
        assert len(loopback.asked) == 1
        assert [session.id for session in found] == ["b", "c"]
    assert loopback.asked[1].target == "/v1/sessions?user_id=me&cursor=b&limit=100"


async def test_the_async_client_retries_and_refuses_alike() -> None:
    refusal = refused("not_found", status=404)
    with serving(SESSION, DROPPED, CELL, refusal) as loopback:
        async with AsyncWorkbench(loopback.url, KEY, retry_for_s=10.0) as bench:
            session = await bench.use("ses-1")
            assert (await session.run("1 + 1")).results == "2"
            with pytest.raises(NotFound):
                await session.describe()
    assert loopback.asked[1].headers["idempotency-key"] == loopback.asked[2].headers["idempotency-key"]


def test_values_come_from_the_environment_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPEN_WORKBENCH_URL", "https://bench.example.com/v1/")
    monkeypatch.setenv("OPEN_WORKBENCH_API_KEY", "wbk_a_b")
    target = Target(None, None)
    assert (target.url, target.key) == ("https://bench.example.com", "wbk_a_b")
    given = Target("http://[::1]:1", "wbk_c_d")
    assert (given.url, given.key) == ("http://[::1]:1", "wbk_c_d")


def test_a_missing_key_is_an_error_that_names_both_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPEN_WORKBENCH_API_KEY", raising=False)
    with pytest.raises(Unauthenticated, match=r"OPEN_WORKBENCH_API_KEY.*OPEN_WORKBENCH_URL"):
        Workbench()


@pytest.mark.parametrize("key", ["wbk a", "wbk\n", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(Unauthenticated) as raised:
        Workbench(api_key=key)
    assert key not in str(raised.value)


@pytest.mark.parametrize("url", ["127.0.0.1:8787", "ftp://x", "http://", "://"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(InvalidRequest, match="base_url must be like"):
        Workbench(url, KEY)


def test_the_key_is_not_in_what_is_printed() -> None:
    with Workbench("http://127.0.0.1:1", KEY) as bench:
        assert KEY not in repr(bench)
        assert KEY not in repr(vars(bench))


def test_a_redirect_does_not_carry_the_key_elsewhere() -> None:
    with serving(SESSION) as elsewhere:
        moved = Reply(307, text="", headers={"location": f"{elsewhere.url}/v1/sessions/x"})
        with serving(moved) as loopback, client(loopback) as bench, pytest.raises(ServerUnavailable):
            bench.use("x")
        assert not elsewhere.asked


def test_address_and_key_of_the_environment_are_of_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("COMPOSIO_BASE_URL", "COMPOSIO_API_KEY", "OPEN_WORKBENCH_URL", "OPEN_WORKBENCH_API_KEY")
    both = Variables(url=names[0::2], key=names[1::2])
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPEN_WORKBENCH_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("COMPOSIO_API_KEY", "ak_theirs")
    with pytest.raises(Unauthenticated, match="set OPEN_WORKBENCH_API_KEY"):
        Target(None, None, variables=both)
    monkeypatch.setenv("OPEN_WORKBENCH_API_KEY", "wbk_a_b")
    assert Target(None, None, variables=both).key == "wbk_a_b"
    monkeypatch.setenv("COMPOSIO_BASE_URL", "https://theirs.example.com")
    there = Target(None, None, variables=both)
    assert (there.url, there.key) == ("https://theirs.example.com", "ak_theirs")
    assert Target("http://127.0.0.1:2", None, variables=both).key == "ak_theirs"
