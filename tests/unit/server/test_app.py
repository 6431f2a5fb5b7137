"""The app on a stand-in for the service: what cannot be brought about with the real one at will."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.server.stand_in import StandInService, asked, page, record

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
from workbench.model.ids import KeyId, ProjectId
from workbench.model.records import CellStatus
from workbench.server import background, events, waiting

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
    monkeypatch.setattr(waiting, "_GRACE_S", 0.01)

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
