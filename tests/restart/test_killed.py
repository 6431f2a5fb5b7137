"""kill -9 of the server in the middle of everything, and a start again: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.host.support import eventually, workbench
from tests.restart.server import Server
from tests.restart.work import KINDS, WHOLE, Place, asked, body_of, ended, new_session, run, written

pytestmark = pytest.mark.timeout(240)


def post(server: Server, place: Place, kind: str, key: str = "once") -> dict[str, Any]:
    with server.client() as client:
        told: dict[str, Any] = asked(client, "POST", place.path(kind), body_of(kind), {"idempotency-key": key})
        return told


def whole(cell: dict[str, Any]) -> bool:
    return bool(cell["result"]["outcome"] == "ok" and cell["result"]["stdout"]["text"] == WHOLE)


def test_sessions_and_variables_are_there_after_a_kill(any_store: Server) -> None:
    server = any_store
    with server.client() as client:
        place = new_session(client, server.settings, sandbox_size="medium", idle={"freeze_after_s": 0})
        before = run(client, place, "x = {'a': 1}")["receipt"]
        server.kill()
        server.start()
        told = asked(client, "GET", place.path("").rstrip("/"))
        assert (told["state"], told["sandbox"]["sandbox_size"]) == ("idle", "medium")
        after = run(client, place, "x")
        assert (after["results"]["text"], after["receipt"]["state"]) == ("{'a': 1}", "intact")
        assert after["receipt"]["epoch"] == before["epoch"]
        assert [outcome for _, outcome in written(client, place)] == ["ok", "ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_awaited_caller_that_retries_gets_the_one_answer(any_store: Server, kind: str) -> None:
    server = any_store
    with server.client() as client, ThreadPoolExecutor(1) as callers:
        place = new_session(client, server.settings)
        first = callers.submit(post, server, place, kind)
        place.until_half_way()
        server.kill()
        assert isinstance(first.exception(30), httpx2.TransportError)
        server.start()
        again = callers.submit(post, server, place, kind)
        place.let_go()
        answer = again.result(60)
        assert whole(answer)
        assert place.effects() == "."
        assert post(server, place, kind) == answer
        assert place.effects() == "."
        assert written(client, place) == [("ended", "ok")]


@pytest.mark.parametrize("kind", KINDS)
def test_what_ended_while_no_server_ran_is_written_down_by_the_next(any_store: Server, kind: str) -> None:
    server = any_store
    with server.client() as client:
        place = new_session(client, server.settings)
        cell = asked(client, "POST", place.path(kind), body_of(kind, "detach"))
        assert cell["status"] == "pending"
        place.until_half_way()
        server.kill()
        place.let_go()
        eventually(lambda: not _runs(server, place), "it has ended in the host")
        server.start()
        # The history asks nobody: that it has an end is the work of the server's start.
        eventually(lambda: written(client, place) == [("ended", "ok")], "it is written down", 30)
        assert whole(ended(client, place, kind, cell["id"]))
        assert place.effects() == "."


def _runs(server: Server, place: Place) -> bool:
    """As the host sees it: what it says is all there."""
    shown = workbench(server.settings, "sessions", "show", place.session, "--json")
    out, _ = shown.communicate(timeout=60)
    return b'"state": "busy"' in out


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_runs_through_two_kills_ends_complete(server: Server, kind: str) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        cell = asked(client, "POST", place.path(kind), body_of(kind, "detach"))
        place.until_half_way()
        for _ in range(2):
            server.kill()
            server.start()
            found = asked(client, "GET", place.path(f"{kind}/{cell['id']}"))
            assert found["status"] == "pending"
        place.let_go()
        assert whole(ended(client, place, kind, cell["id"]))
        assert place.effects() == "."


def test_cells_that_wait_behind_one_run_in_their_order_after_a_kill(server: Server) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        first = asked(client, "POST", place.path("cells"), body_of("cells", "detach"))
        behind = [
            asked(client, "POST", place.path("cells"), {"code": f"end += ' {number}'\nend", "mode": "detach"})
            for number in range(3)
        ]
        place.until_half_way()
        server.kill()
        server.start()
        place.let_go()
        assert whole(ended(client, place, "cells", first["id"]))
        said = [ended(client, place, "cells", one["id"])["result"]["results"]["text"] for one in behind]
        assert said == ["'of the cell 0'", "'of the cell 0 1'", "'of the cell 0 1 2'"]


def test_the_sdk_waits_for_the_server_to_come_back(server: Server) -> None:
    with server.client() as client, server.bench() as bench, ThreadPoolExecutor(2) as callers:
        place = new_session(client, server.settings)
        session = bench.use(place.session)
        running = callers.submit(session.run, body_of("cells")["code"])
        place.until_half_way()
        server.kill()
        place.let_go()
        server.start()
        result = running.result(60)
        assert (result.ok, result.stdout == WHOLE, place.effects()) == (True, True, ".")
        assert session.run("end").results == "'of the cell'"


def test_a_cell_that_a_killed_command_had_waited_for_is_written_down_by_the_server(server: Server) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        waiting = workbench(server.settings, "exec", "-s", place.session, body_of("cells")["code"])
        place.until_half_way()
        waiting.send_signal(signal.SIGKILL)
        waiting.communicate(timeout=30)
        server.kill()
        place.let_go()
        server.start()
        eventually(lambda: written(client, place) == [("ended", "ok")], "it is written down", 30)
        (cell,) = asked(client, "GET", place.path("history"))["items"]
        assert whole(cell)
        assert place.effects() == "."


def test_a_server_that_is_asked_to_leave_tells_its_callers_what_it_knows(server: Server) -> None:
    with server.client() as client, ThreadPoolExecutor(2) as callers:
        place = new_session(client, server.settings)
        awaited = callers.submit(post, server, place, "cells")
        place.until_half_way()
        assert server.end(signal.SIGTERM) == 0
        told = awaited.result(30)
        assert (told["status"], told["result"]) == ("pending", None)
        server.start()
        place.let_go()
        assert whole(ended(client, place, "cells", told["id"]))
        assert whole(post(server, place, "cells"))
        assert place.effects() == "."


def test_a_quick_cell_ends_before_a_server_that_is_asked_to_leave_does(server: Server) -> None:
    with server.client() as client, ThreadPoolExecutor(2) as callers:
        place = new_session(client, server.settings)
        awaited = callers.submit(post, server, place, "cells")
        place.until_half_way()
        leaving = callers.submit(server.end, signal.SIGTERM)
        place.let_go()
        assert whole(awaited.result(30))
        assert leaving.result(30) == 0
        server.start()
        assert written(client, place) == [("ended", "ok")]
