"""Cells and commands over HTTP: awaited, streamed, detached, followed again, retried, and left alone."""

from __future__ import annotations

import concurrent.futures
import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.host.support import eventually
from tests.server.running import Event, Running, events_of, problem_of

SLOW = "import time\nfor n in range(4):\n    print(n, flush=True)\n    time.sleep(0.4)\n'end'"


def cells(session: str) -> str:
    return f"/v1/sessions/{session}/cells"


def run(client: httpx2.Client, session: str, code: str, **more: object) -> dict[str, Any]:
    answer = client.post(cells(session), json={"code": code, **more})
    assert answer.status_code in {200, 202}, answer.text
    told: dict[str, Any] = answer.json()
    return told


def text_of(events: list[Event]) -> str:
    return "".join(event.data["text"] for event in events if event.name == "piece" and event.data["kind"] == "stdout")


def test_an_awaited_cell_is_answered_with_its_result(client: httpx2.Client, session: str) -> None:
    cell = run(
        client, session, "print('hello'); 6 * 7", thought="to see", current_step="FIRST", current_step_metric="1/2"
    )
    assert (cell["status"], cell["kind"], cell["session_id"], cell["error"]) == ("ended", "cell", session, None)
    result = cell["result"]
    assert (result["outcome"], result["results"]["text"], result["stdout"]["text"]) == ("ok", "42", "hello\n")
    assert result["receipt"]["execution_count"] == 1
    assert client.get(f"{cells(session)}/{cell['id']}").json() == cell
    progress = client.get(f"/v1/sessions/{session}").json()["progress"]
    assert progress == {"thought": "to see", "current_step": "FIRST", "current_step_metric": "1/2"}


def test_code_that_raises_is_a_success_with_an_outcome(client: httpx2.Client, session: str) -> None:
    cell = run(client, session, "1/0")
    assert (cell["status"], cell["result"]["outcome"]) == ("ended", "raised")
    assert cell["result"]["error"]["name"] == "ZeroDivisionError"


def test_a_command_runs_beside_the_kernel_and_has_an_exit_code(client: httpx2.Client, session: str) -> None:
    answer = client.post(f"/v1/sessions/{session}/commands", json={"command": "echo out; echo err >&2; exit 3"})
    cell = answer.json()
    assert (cell["kind"], cell["code"]) == ("command", "echo out; echo err >&2; exit 3")
    result = cell["result"]
    assert (result["outcome"], result["exit_code"]) == ("raised", 3)
    assert (result["stdout"]["text"], result["stderr"]["text"]) == ("out\n", "err\n")


def test_a_long_awaited_cell_sends_headers_at_once_and_then_white_space(server: Running, session: str) -> None:
    body = json.dumps({"code": "import time; time.sleep(7); 'late'"}).encode()
    address = urlsplit(server.url)
    assert address.hostname
    with socket.create_connection((address.hostname, address.port or 0), timeout=60) as connection:
        head = (
            f"POST {cells(session)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.key}\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        began, got, early = time.monotonic(), b"", 0.0
        while part := connection.recv(65_536):
            got += part
            if not early and b"\r\n\r\n" in got:
                early = time.monotonic() - began
    headers, _, rest = got.partition(b"\r\n\r\n")
    assert headers.startswith(b"HTTP/1.1 200 ")
    assert b"application/json" in headers
    assert early < 6.0
    # Chunks of one space each came before the one with the body: after a moment, and after five seconds.
    assert rest.count(b"1\r\n \r\n") >= 2
    assert b'"late"' in rest or b"'late'" in rest


def test_a_cell_that_turns_out_never_to_begin_after_the_headers_is_a_failed_cell(
    server: Running, client: httpx2.Client, session: str
) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool, server.client() as other:
        first = pool.submit(run, client, session, "import time; time.sleep(60)")
        eventually(lambda: _queue(client, session) == 1, "the first runs")
        second = pool.submit(other.post, cells(session), json={"code": "2"})
        eventually(lambda: _queue(client, session) == 2, "the second waits")
        time.sleep(1.0)
        restarted = client.post(f"/v1/sessions/{session}/restart")
        assert restarted.json()["epoch"] == 2
        assert first.result(60)["result"]["outcome"] == "lost"
        answer = second.result(60)
    assert answer.status_code == 200
    cell = answer.json()
    assert (cell["status"], cell["result"]) == ("failed", None)
    assert cell["error"]["code"] == "cancelled"


def _queue(client: httpx2.Client, session: str) -> int:
    return len(client.get(f"/v1/sessions/{session}").json()["queue"])


def test_a_streamed_cell_sends_pieces_as_they_come_and_then_its_end(client: httpx2.Client, session: str) -> None:
    code = f"import sys; print('oops', file=sys.stderr)\n{SLOW}"
    times: list[float] = []
    seen: list[Event] = []
    with client.stream("POST", cells(session), json={"code": code, "mode": "stream"}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        place = answer.headers["location"]
        for event in events_of(answer.iter_lines()):
            seen.append(event)
            times.append(time.monotonic())
    assert text_of(seen) == "0\n1\n2\n3\n"
    assert times[-1] - times[0] > 1.0
    end = seen[-1]
    assert (end.name, end.data["status"], end.data["result"]["results"]["text"]) == ("end", "ended", "'end'")
    assert place == f"{cells(session)}/{end.data['id']}"
    ids = [int(event.id) for event in seen if event.id]
    assert ids == sorted(ids)
    assert ids[-1] > 0
    assert {event.data["kind"] for event in seen[:-1]} == {"stdout", "stderr", "display"}


def test_a_detached_cell_answers_at_once_and_is_followed_from_any_offset(client: httpx2.Client, session: str) -> None:
    answer = client.post(cells(session), json={"code": SLOW, "mode": "detach"})
    cell = answer.json()
    assert (answer.status_code, cell["status"], cell["result"]) == (202, "pending", None)
    place = answer.headers["location"]
    seen: list[Event] = []
    # A connection that is lost after two numbers ...
    with client.stream("GET", f"{place}/events") as stream:
        for event in events_of(stream.iter_lines()):
            seen.append(event)
            if text_of(seen) == "0\n1\n":
                break
    # ... is taken up where it was, by whoever says so in one of two ways.
    last = seen[-1].id
    for headers, params in (
        ({"last-event-id": last}, {}),
        ({}, {"offset": last}),
        ({"last-event-id": ""}, {"offset": last}),
    ):
        with client.stream("GET", f"{place}/events", headers=headers, params=params) as stream:
            rest = list(events_of(stream.iter_lines()))
        assert text_of(rest) == "2\n3\n"
        assert rest[-1].data["result"]["outcome"] == "ok"
    ended = client.get(place, params={"wait_s": "10"}).json()
    assert (ended["status"], ended["result"]["stdout"]["text"]) == ("ended", "0\n1\n2\n3\n")


def test_an_offset_where_no_piece_begins_is_refused(client: httpx2.Client, session: str) -> None:
    cell = run(client, session, "print('x' * 100)")
    for offset in ("3", "100000"):
        answer = client.get(f"{cells(session)}/{cell['id']}/events", params={"offset": offset})
        assert (answer.status_code, problem_of(answer)["code"]) == (409, "conflict")
        assert "offset" in problem_of(answer)["message"]


def test_a_detached_cell_is_written_down_though_nobody_asks_for_it(
    server: Running, client: httpx2.Client, session: str
) -> None:
    cell = run(client, session, "x = 5", mode="detach")

    def ended_at() -> list[str | None]:
        return [one["ended_at"] for one in client.get(f"/v1/sessions/{session}/history").json()["items"]]

    # The history does not ask the host: only the server's own task can have written the end.
    eventually(lambda: None not in ended_at(), "its end is written down")
    assert client.get(f"{cells(session)}/{cell['id']}").json()["result"]["receipt"]["added"] == ["x"]


def test_who_goes_away_while_awaiting_stops_nothing(server: Running, client: httpx2.Client, session: str) -> None:
    with server.client() as leaving, pytest.raises(httpx2.ReadTimeout):
        leaving.post(cells(session), json={"code": "import time; time.sleep(3); 'done'"}, timeout=1.0)

    def history() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = client.get(f"/v1/sessions/{session}/history").json()["items"]
        return items

    eventually(lambda: history() and history()[0]["status"] == "ended", "its end is written down")
    assert history()[0]["result"]["results"]["text"] == "'done'"


def test_a_retry_with_the_same_idempotency_key_gets_the_kept_answer(client: httpx2.Client, session: str) -> None:
    headers = {"idempotency-key": "retry of the 1st"}
    body = {"code": "n = globals().get('n', 0) + 1; n"}
    first, second = (client.post(cells(session), json=body, headers=headers).json() for _ in range(2))
    assert first == second
    assert first["result"]["results"]["text"] == "1"
    for mode, status in (("detach", 200), ("stream", 200)):
        answer = client.post(cells(session), json={**body, "mode": mode}, headers=headers)
        assert answer.status_code == status
        assert first["id"] in answer.text
    answer = client.post(cells(session), json={"code": "other"}, headers=headers)
    assert (answer.status_code, problem_of(answer)["code"]) == (409, "conflict")
    assert "choose another" in problem_of(answer)["message"]
    assert run(client, session, "n")["result"]["results"]["text"] == "1"


def test_two_retries_at_once_are_one_cell(server: Running, session: str) -> None:
    headers = {"idempotency-key": "twice"}
    body = {"code": "import time; time.sleep(1); m = globals().get('m', 0) + 1; m"}
    with server.client() as client, concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda _: client.post(cells(session), json=body, headers=headers).json(), range(3)))
    assert [answer["result"]["results"]["text"] for answer in answers] == ["1", "1", "1"]
    assert len({answer["id"] for answer in answers}) == 1


def test_stopping_and_interrupting_say_whether_there_was_something(client: httpx2.Client, session: str) -> None:
    assert client.post(f"/v1/sessions/{session}/interrupt").json() == {"stopped": False}
    cell = run(client, session, "import time; time.sleep(100)", mode="detach")["id"]
    eventually(lambda: _queue(client, session) == 1, "it runs")
    assert client.post(f"{cells(session)}/{cell}/stop").json() == {"stopped": True}
    ended = client.get(f"{cells(session)}/{cell}", params={"wait_s": "30"}).json()
    assert ended["result"]["outcome"] == "interrupted"
    assert client.post(f"{cells(session)}/{cell}/stop").json() == {"stopped": False}
    answer = client.post(f"/v1/sessions/{session}/commands", json={"command": "sleep 100", "mode": "detach"})
    place = answer.headers["location"]
    assert client.post(f"{place}/stop").json() == {"stopped": True}
    assert client.get(place, params={"wait_s": "30"}).json()["result"]["outcome"] == "interrupted"


def test_a_flood_is_streamed_whole(client: httpx2.Client, session: str) -> None:
    code = "for n in range(20_000): print(n)"
    with client.stream("POST", cells(session), json={"code": code, "mode": "stream"}) as answer:
        seen = list(events_of(answer.iter_lines()))
    assert text_of(seen) == "".join(f"{n}\n" for n in range(20_000))
    assert seen[-1].name == "end"
