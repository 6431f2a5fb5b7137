"""kill -9 of the server while sessions are made, branched and deleted: nothing half made stays in the way."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from tests.host.support import ephemeral_files
from tests.restart.server import Server
from tests.restart.work import Place, new_session, run

from workbench.host_client.find import connect_or_start
from workbench.wire import host as wire

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

# Seconds after the request was sent: from before it is read to about its end.
MOMENTS = (0.0, 0.015, 0.04, 0.1)


@pytest.fixture(autouse=True)
def nothing_left(server: Server) -> Iterator[None]:
    """Of what the test has deleted: no record, sandbox or folder."""
    yield
    with server.client() as client:
        assert client.get("/v1/sessions").json()["items"] == []
    assert asyncio.run(_sandboxes(server)) == []
    assert ephemeral_files(server.settings) == []
    folder = server.settings.data_dir / "files"
    assert [path.name for path in folder.iterdir() if path.name.startswith("t-")] == []


async def _sandboxes(server: Server) -> list[str]:
    async with await connect_or_start(server.settings, os.environ) as host:
        listed = await host.ask(wire.ListSandboxes(), wire.SandboxList)
        return [one.sandbox for one in listed.sandboxes]


def killed_during(server: Server, seconds: float, method: str, path: str, body: object = None) -> None:
    """The request is under way when its server dies, or was just answered."""
    with server.client() as client, ThreadPoolExecutor(1) as callers:
        # So that the request itself finds a connection.
        client.get("/healthz")
        asking = callers.submit(client.request, method, path, json=body)
        time.sleep(seconds)
        server.kill()
        problem = asking.exception(30)
        assert problem is None or isinstance(problem, httpx2.TransportError)
    server.start()


def delete(client: httpx2.Client, name: str) -> None:
    assert client.delete(f"/v1/sessions/{name}").status_code in {204, 404}
    assert client.get(f"/v1/sessions/{name}").status_code == 404


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_session_whose_making_was_cut_off_can_be_used_or_made(server: Server, moment: float) -> None:
    place = Place(server.settings, f"t-{secrets.token_hex(4)}")
    body = {"id": place.session, "eager": True}
    killed_during(server, moment, "POST", "/v1/sessions", body)
    with server.client() as client:
        assert client.post("/v1/sessions", json=body).status_code in {201, 409}
        assert run(client, place, "x = 6 * 7\nx")["results"]["text"] == "42"
        delete(client, place.session)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("copy", [False, True], ids=["branch", "copy"])
def test_a_branch_whose_making_was_cut_off_can_be_used_or_made_anew(server: Server, moment: float, copy: bool) -> None:
    with server.client() as client:
        origin = new_session(client, server.settings)
        run(client, origin, "x = 'kept'")
        branch = Place(server.settings, f"{origin.session}-b")
        body = {"id": branch.session, "copy": copy}
        killed_during(server, moment, "POST", origin.path("branch"), body)
        again = client.post(origin.path("branch"), json=body)
        assert again.status_code in {201, 409}, again.text
        if client.get(f"/v1/sessions/{branch.session}").json()["state"] == "unfinished":
            delete(client, branch.session)
            assert client.post(origin.path("branch"), json=body).status_code == 201
        for place in (branch, origin):
            assert run(client, place, "x")["results"]["text"] == "'kept'"
        delete(client, branch.session)
        assert run(client, origin, "x")["results"]["text"] == "'kept'"
        delete(client, origin.session)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_deletion_that_was_cut_off_is_finished_by_another_and_the_name_is_free(server: Server, moment: float) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        run(client, place, "x = 1\nopen('/mnt/files/mine', 'w').close()")
        killed_during(server, moment, "DELETE", f"/v1/sessions/{place.session}")
        delete(client, place.session)
        assert client.post("/v1/sessions", json={"id": place.session}).status_code == 201
        assert run(client, place, "import os\nos.listdir('/mnt/files')")["results"]["text"] == "[]"
        delete(client, place.session)
