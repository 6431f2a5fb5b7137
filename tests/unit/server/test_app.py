"""The app on a stand-in for the service: what cannot be brought about with the real one at will."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.server.stand_in import KEY, StandInService, asked, page, record

from workbench.core import requests
from workbench.errors import (
    Conflict,
    HostUnavailable,
    IsolationTooWeak,
    NotFound,
    QuotaExceeded,
    StoreUnavailable,
    WorkbenchError,
)
from workbench.model.access import Caller, Scope
from workbench.model.ids import CellId, KeyId, ProjectId
from workbench.model.records import CellStatus
from workbench.server import background, events, heartbeat, past, waiting

CELLS = "/v1/sessions/mine/cells"


def raising(problem: Exception) -> Any:
    async def method(_: object) -> Any:
        raise problem

    return method


def giving(value: object) -> Any:
    async def method(_: object) -> Any:
        return value

    return method


async def test_a_defect_is_answered_with_its_request_id_and_logged_without_its_message() -> None:
    async with asked() as app:
        app.bench.perform = raising(RuntimeError("the secret is hunter2"))
        answer = await app.client.post(CELLS, json={"code": "1"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["retryable"]) == (500, "internal_error", False)
        assert error["request_id"] == answer.headers["x-request-id"]
        assert error["request_id"] in error["message"]
        assert answer.headers["x-should-retry"] == "false"
    defect = next(line for line in app.events() if line["event"] == "defect")
    assert (defect["problem"], defect["request_id"]) == ("RuntimeError", error["request_id"])
    assert "test_app.py" in defect["where"]
    assert "hunter2" not in "".join(app.lines) + answer.text


@pytest.mark.parametrize(
    ("problem", "status", "retry"),
    [
        (HostUnavailable("away"), 503, "true"),
        (StoreUnavailable("away"), 503, "false"),
        (IsolationTooWeak("weak"), 503, "false"),
        (QuotaExceeded("full"), 429, "false"),
        (Conflict("not now"), 409, None),
    ],
)
async def test_clients_that_retry_by_themselves_are_told_whether_to(
    problem: WorkbenchError, status: int, retry: str | None
) -> None:
    async with asked() as app:
        app.bench.perform = raising(problem)
        answer = await app.client.post(CELLS, json={"code": "1"})
    assert (answer.status_code, answer.headers.get("x-should-retry")) == (status, retry)
    assert ("retry-after" in answer.headers) is (retry == "true")


async def test_a_server_that_is_not_ready_says_why() -> None:
    service = StandInService()
    service.checks = {"records": "ok", "host": "no answer within 3 s"}
    async with asked(service) as app:
        answer = await app.client.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["host"]) == (503, "no answer within 3 s")
        service.checks = {"records": "ok", "host": "ok: none runs yet"}
        assert (await app.client.get("/readyz")).status_code == 200
        app.app.state.door.stopping.set()
        answer = await app.client.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["server"]) == (503, "it is about to leave")


async def test_a_key_with_the_scope_of_something_else_gets_nowhere() -> None:
    caller = Caller(project=ProjectId("p"), key=KeyId("k"), scopes=frozenset({Scope.PROXY}))
    async with asked(StandInService(caller)) as app:
        for method, path in (
            ("POST", CELLS),
            ("GET", "/v1/sessions/mine"),
            ("GET", "/v1/sessions"),
            ("GET", "/v1/keys"),
        ):
            answer = await app.client.request(method, path, json={"code": "1"} if method == "POST" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "denied")


async def test_output_is_sent_in_events_with_signs_of_life_between(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [page(at=0), page("a", "b", at=20), page(at=20), page("c", at=30, ended=True, dropped=7)]
    asked_for: list[int] = []

    async def read(request: Any) -> Any:
        asked_for.append(request.offset)
        return pages.pop(0)

    records = [record(CellStatus.PENDING), record(CellStatus.PENDING), record()]

    async def get(_: object) -> Any:
        return records.pop(0)

    async with asked() as app:
        app.bench.read_output, app.bench.get_cell = read, get
        answer = await app.client.get(f"{CELLS}/c-1/events")
    assert asked_for == [0, 0, 20, 20]
    blocks = answer.text.split("\n\n")
    kinds = [block.split("\n")[0] for block in blocks if block]
    alive = ": still here"
    assert kinds == [
        alive, "event: piece", "event: piece", alive, "event: piece", "event: dropped", alive, "event: end",
    ]  # fmt: skip
    assert "id: " not in blocks[1]
    assert "id: 20" in blocks[2]
    assert "id: 30" in blocks[4]
    assert '"bytes":7' in blocks[5]


async def test_a_core_that_is_silent_does_not_silence_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_HEARTBEAT_S", -0.99)
    first = True

    async def read(_: object) -> Any:
        nonlocal first
        if first:
            first = False
            return page("a", at=10)
        await asyncio.sleep(0.2)
        return page(at=10, ended=True)

    async with asked() as app:
        app.bench.read_output, app.bench.get_cell = read, giving(record())
        answer = await app.client.get(f"{CELLS}/c-1/events")
    assert answer.text.count(": still here") > 3
    assert "event: end" in answer.text


async def test_a_stream_whose_output_is_gone_midway_still_tells_the_end() -> None:
    pages: list[Any] = [page("a", at=10), Conflict("not kept any more")]

    async def read(_: object) -> Any:
        found = pages.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async with asked() as app:
        app.bench.read_output, app.bench.get_cell = read, giving(record())
        answer = await app.client.get(f"{CELLS}/c-1/events")
        assert answer.text.rstrip().split("\n")[-3:-1] == ["event: end", "id: 10"]
        pages[:] = [page("a", at=10), HostUnavailable("away")]
        app.bench.get_cell = giving(record(CellStatus.PENDING))
        answer = await app.client.get(f"{CELLS}/c-1/events")
    assert "event: end" not in answer.text
    assert ": host_unavailable; connect again with Last-Event-ID" in answer.text


async def test_a_stop_ends_streams_at_once() -> None:
    async def read(request: Any) -> Any:
        if request.wait_s:
            await asyncio.sleep(60)
        return page(at=0)

    async with asked() as app:
        app.bench.read_output, app.bench.get_cell = read, giving(record(CellStatus.PENDING))
        follower = asyncio.create_task(app.client.get(f"{CELLS}/c-1/events"))
        await asyncio.sleep(0.05)
        app.app.state.door.stopping.set()
        async with asyncio.timeout(5):
            answer = await follower
    assert ": the server stops; connect again" in answer.text


async def test_a_slow_cell_that_fails_after_the_headers_is_told_as_it_was_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat, "GRACE_S", 0.01)

    async def perform(_: object) -> Any:
        await asyncio.sleep(0.1)
        raise HostUnavailable("away", {"host": "h"})

    async with asked() as app:
        app.bench.perform, app.bench.get_cell = perform, raising(NotFound("nobody wrote it down"))
        answer = await app.client.post(CELLS, json={"code": "1 + 1", "limit_s": 7})
    cell = answer.json()
    assert (answer.status_code, cell["status"], cell["code"], cell["limit_s"]) == (200, "failed", "1 + 1", 7.0)
    assert (cell["error"]["code"], cell["error"]["retryable"]) == ("host_unavailable", True)


async def test_a_detached_cell_is_waited_for_though_the_host_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PAUSE_S", 0.0)
    answers: list[Any] = [HostUnavailable("away"), record(CellStatus.PENDING), record()]
    ended = asyncio.Event()

    async def get(_: object) -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        if not answers:
            ended.set()
        return found

    async with asked() as app:
        app.bench.submit, app.bench.get_cell = giving(record(CellStatus.PENDING)), get
        answer = await app.client.post(CELLS, json={"code": "1", "mode": "detach"})
        assert (answer.status_code, answer.headers["location"]) == (202, f"{CELLS}/c-1")
        async with asyncio.timeout(5):
            await ended.wait()
        await asyncio.sleep(0)
        told = app.app.state.door.metrics.text().decode()
    assert 'workbench_cells_total{kind="cell",outcome="ok"} 1.0' in told


async def test_the_caretaker_looks_again_after_a_round_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_LOOK_EVERY_S", 0.01)
    service = StandInService()
    looks: list[Exception | None] = [StoreUnavailable("away"), RuntimeError("hunter2")]
    again = asyncio.Event()
    usual = service.caretaker.look

    async def look() -> Any:
        if looks:
            problem = looks.pop(0)
            assert problem is not None
            raise problem
        again.set()
        return await usual()

    service.caretaker.look = look
    async with asked(service) as app, asyncio.timeout(5):
        await again.wait()
    told = [line for line in app.events() if line["event"] == "caretaker.look"]
    assert [line.get("outcome") or line.get("problem") for line in told] == ["store_unavailable", "RuntimeError"]
    assert "hunter2" not in "".join(app.lines)


async def slowly(_: object) -> Any:
    await asyncio.sleep(60)


async def test_a_stop_answers_who_waits_for_a_cell_with_what_is_known() -> None:
    async def get(request: Any) -> Any:
        return await slowly(request) if request.wait_s else record(CellStatus.PENDING)

    async with asked() as app:
        app.bench.get_cell = get
        waiting = asyncio.create_task(app.client.get(f"{CELLS}/c-1", params={"wait_s": "60"}))
        await asyncio.sleep(0.05)
        app.app.state.door.stopping.set()
        async with asyncio.timeout(5):
            answer = await waiting
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")


async def _cancelled(app: Any, method: str, path: str, **headers: str) -> dict[str, Any]:
    """What is answered when the server has no more time for a request, as uvicorn does it."""
    told: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"x-api-key", KEY.encode()), *raw], "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    task = asyncio.create_task(app.app(scope, receive, send))
    await asyncio.sleep(0.05)
    app.app.state.door.stopping.set()
    task.cancel()
    await task
    assert told[0]["status"] == 503
    error: dict[str, Any] = json.loads(told[1]["body"])["error"]
    headers_out = dict(told[0]["headers"])
    assert headers_out[b"x-request-id"].decode() == error["request_id"]
    # The sessions API says it there only.
    retry = headers_out[b"x-should-retry"] == b"true"
    assert error.setdefault("retryable", retry) == retry
    return error


async def test_what_a_stop_leaves_without_an_answer_is_told_so() -> None:
    async with asked() as app:
        app.bench.restart_kernel = app.bench.describe_session = slowly
        asking = await _cancelled(app, "GET", "/v1/sessions/mine")
        doing = await _cancelled(app, "POST", "/v1/sessions/mine/restart")
        keyed = await _cancelled(app, "POST", "/v1/sessions/mine/restart", idempotency_key="k")
    assert {one["code"] for one in (asking, doing, keyed)} == {"server_unavailable"}
    assert [one["retryable"] for one in (asking, doing, keyed)] == [True, False, True]
    assert "ask again in a moment" in asking["message"]
    assert "whether this was done is not known" in doing["message"]


async def test_a_key_of_the_sessions_api_keeps_nothing_that_could_be_asked_for_again() -> None:
    async with asked() as app:
        app.bench.user_of = slowly
        told = await _cancelled(app, "DELETE", "/api/v3.1/tool_router/session/mine", idempotency_key="k")
    assert "whether this was done is not known" in told["message"]
    assert not told["retryable"]


async def test_a_key_that_is_no_more_good_ends_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_HEARTBEAT_S", 0.05)
    reads = 0

    async def read(_: object) -> Any:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0.01)
        if reads == 10:
            app.service.access.good = False
        return page("more", at=reads)

    async with asked() as app, asyncio.timeout(10):
        app.bench.read_output, app.bench.get_cell = read, giving(record(CellStatus.PENDING))
        answer = await app.client.get(f"{CELLS}/c-1/events")
    assert answer.text.rstrip().split("\n")[-1].startswith(": unauthenticated")
    assert "event: end" not in answer.text
    assert [line["outcome"] for line in app.events() if line["event"] == "request"] == ["unauthenticated"]


async def test_a_key_that_is_no_more_good_is_not_told_how_a_cell_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "GRACE_S", 0.01)
    monkeypatch.setattr(heartbeat, "_SPACE_EVERY_S", 0.02)
    async with asked() as app, asyncio.timeout(10):
        app.bench.perform, app.bench.get_cell = slowly, giving(record())
        run = asyncio.create_task(app.client.post(CELLS, json={"code": "1"}))
        await asyncio.sleep(0.1)
        app.service.access.good = False
        cell = (await run).json()
        assert (cell["status"], cell["result"], cell["error"]) == ("pending", None, None)
        answer = await app.client.get(f"{CELLS}/c-1", params={"wait_s": "5"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")


async def test_a_page_of_large_results_ends_early_and_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [replace(record(code="x" * 3000), id=CellId(f"c-{number:02}")) for number in range(70)]
    asked_for: list[int] = []

    async def list_cells(ask: requests.ListCells) -> Any:
        asked_for.append(ask.limit)
        left = [one for one in kept if ask.after is None or one.id > ask.after[1]]
        shown = tuple(left[: ask.limit])
        more = len(left) > len(shown)
        return requests.CellPage(cells=shown, next_after=(shown[-1].created_at, shown[-1].id) if more else None)

    async def pages(app: Any, limit: int) -> list[list[str]]:
        found, cursor = [], None
        while True:
            query = {"limit": str(limit)} | ({"cursor": cursor} if cursor else {})
            told = (await app.client.get("/v1/sessions/mine/history", params=query)).json()
            found.append([one["id"] for one in told["items"]])
            cursor = told["next_cursor"]
            if cursor is None:
                return found

    async with asked() as app:
        app.bench.list_cells = list_cells
        assert [len(one) for one in await pages(app, 1000)] == [70]
        assert [len(one) for one in await pages(app, 30)] == [30, 30, 10]
        monkeypatch.setattr(past, "_MOST_PAGE_BYTES", 100_000)
        few = await pages(app, 1000)
        assert max(map(len, few)) < 34
        assert [one for some in few for one in some] == [one.id for one in kept]
        monkeypatch.setattr(past, "_MOST_PAGE_BYTES", 1)
        assert [len(one) for one in await pages(app, 1000)] == [1] * 70
    assert max(asked_for) == 25


async def test_a_notebook_is_sent_cell_by_cell() -> None:
    async def parts(_: object) -> Any:
        yield {"nbformat": 4, "metadata": {}}
        for number in range(cells):
            yield {"id": str(number), "source": "ä"}

    async with asked() as app:
        app.bench.notebook_parts = parts
        for cells in (0, 1, 3):
            told = (await app.client.get("/v1/sessions/mine/history.ipynb")).json()
            assert (told["nbformat"], [one["id"] for one in told["cells"]]) == (4, [str(n) for n in range(cells)])


@pytest.mark.parametrize(
    "before",
    [
        "2026-02-29T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-01-01T99:99:99Z",
        "2026-01-01T::::::::Z",
    ],
)
async def test_a_time_that_is_none_is_refused(before: str) -> None:
    async with asked() as app:
        answer = await app.client.get("/v1/audit", params={"before": before})
    assert (answer.status_code, answer.json()["error"]["context"]) == (422, {"parameter": "before"})


async def test_health_is_told_to_those_who_ask_for_the_status_alone() -> None:
    service = StandInService()
    async with asked(service) as app:
        for path in ("/healthz", "/readyz"):
            assert (await app.client.head(path)).status_code == 200
        service.checks = {"host": "gone"}
        assert (await app.client.head("/readyz")).status_code == 503


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8787", 200), ("localhost", 200), ("[::1]:8787", 200), ("workbench.example.com", 401),
     ("10.0.0.1", 401), ("localhost.evil.com", 401)],
)  # fmt: skip
async def test_metrics_without_a_key_are_for_who_asks_this_machine_by_its_own_name(host: str, status: int) -> None:
    async with asked(metrics_open=True) as app:
        del app.client.headers["authorization"]
        assert (await app.client.get("/metrics", headers={"host": host})).status_code == status
        assert (await app.client.get("/metrics", headers={"host": host, "via": "1.1 x"})).status_code == 401


@pytest.mark.parametrize(
    ("before", "asked_for"),
    [("", ""), ("2028-02-29T23:59:59Z", "2028-02-29T23:59:59.000000Z"),
     ("2026-12-31T00:00:00.5Z", "2026-12-31T00:00:00.500000Z")],
)  # fmt: skip
async def test_a_time_is_asked_for_as_times_are_written_down(before: str, asked_for: str) -> None:
    seen: list[str] = []

    async def list_audit(request: Any) -> Any:
        seen.append(request.before)
        return ()

    async with asked() as app:
        app.service.access.list_audit = list_audit
        assert (await app.client.get("/v1/audit", params={"before": before})).status_code == 200
    assert seen == [asked_for]
