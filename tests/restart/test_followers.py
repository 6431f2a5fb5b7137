"""Followers of a cell while its server is killed: they come back with their offset, and have each byte once."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from tests.host.support import eventually
from tests.restart.server import Server
from tests.restart.work import Place, asked, ended, events_of, new_session, over_losses, run

from workbench import AsyncWorkbench

pytestmark = pytest.mark.timeout(240)

# Long enough that kills fall into it, with pieces of every size; the test ends it.
CHATTER = """
import pathlib, sys, time
stop, number = pathlib.Path('/mnt/files/stop'), 0
while not stop.exists():
    for _ in range(50):
        number += 1
        print(f'line {number} ' + 'x' * (number % 97))
        if number % 7 == 0: print(f'beside {number}', file=sys.stderr)
    if number == 50: pathlib.Path('/mnt/files/began').touch()
    time.sleep(0.01)
number
"""
KILLS = 3


def right(lines: int) -> tuple[str, str]:
    """What a chatter of so many lines prints."""
    out = "".join(f"line {number} {'x' * (number % 97)}\n" for number in range(1, lines + 1))
    return out, "".join(f"beside {number}\n" for number in range(7, lines + 1, 7))


def with_kills(server: Server, place: Place, heard: threading.Event, number: int = signal.SIGKILL) -> None:
    """Some, once its follower has heard something; then the chatter may end."""
    assert heard.wait(60)
    for _ in range(KILLS):
        server.end(number)
        server.start()
        # So that it is followed for a while by whoever comes back.
        with server.client() as client:
            asked(client, "GET", f"/v1/sessions/{place.session}")
    (place.files / "stop").touch()


class RawFollower:
    """What any client of server-sent events does: it keeps what came with an id, and goes on from there."""

    def __init__(self, server: Server, path: str, heard: threading.Event) -> None:
        self._server = server
        self._path = path
        self._heard = heard
        self._last_id = "0"
        self._kept: dict[str, str] = {"stdout": "", "stderr": ""}
        self.connections = 0

    def follow(self) -> tuple[str, str]:
        """To the end."""
        with self._server.client() as client:
            over_losses(lambda: self._once(client))
        return self._kept["stdout"], self._kept["stderr"]

    def _once(self, client: httpx2.Client) -> bool:
        fresh = dict(self._kept)
        with client.stream("GET", self._path, headers={"last-event-id": self._last_id}) as answer:
            assert answer.status_code == 200
            self.connections += 1
            for name, last_id, data in events_of(answer.iter_lines()):
                self._heard.set()
                told = json.loads(data)
                if name == "piece" and told["kind"] in fresh:
                    fresh[told["kind"]] += told["text"]
                if last_id:
                    # Only now it is known where to go on behind it.
                    self._last_id, self._kept = last_id, dict(fresh)
                if name == "end":
                    return True
        return False


def by_sdk(server: Server, place: Place, cell: str, heard: threading.Event) -> tuple[str, str]:
    said = {"stdout": "", "stderr": ""}
    with server.bench() as bench, bench.use(place.session).cell(cell).follow() as stream:
        for piece in stream:
            heard.set()
            if piece.kind in said:
                said[piece.kind] += piece.text
        assert stream.result.ok
    return said["stdout"], said["stderr"]


def raw(server: Server, place: Place, cell: str, heard: threading.Event) -> tuple[str, str]:
    follower = RawFollower(server, place.path(f"cells/{cell}/events"), heard)
    said = follower.follow()
    assert follower.connections > 1
    return said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("follow", [raw, by_sdk])
def test_a_follower_gets_every_byte_once_over_restarts(
    server: Server, follow: Callable[[Server, Place, str, threading.Event], tuple[str, str]], number: int
) -> None:
    with server.client() as client, ThreadPoolExecutor(2) as followers:
        place = new_session(client, server.settings)
        cell = asked(client, "POST", place.path("cells"), {"code": CHATTER, "mode": "detach"})["id"]
        heard = threading.Event()
        following = followers.submit(follow, server, place, cell, heard)
        with_kills(server, place, heard, number)
        out, err = following.result(90)
        lines = int(ended(client, place, "cells", cell)["result"]["results"]["text"])
        assert (out, err) == right(lines)


def test_a_stream_that_was_broken_off_is_followed_from_its_offset(server: Server) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        said, last_id, cell = "", "", ""
        with client.stream("POST", place.path("cells"), json={"code": CHATTER, "mode": "stream"}) as answer:
            cell = answer.headers["x-cell-id"]
            for _, event_id, data in events_of(answer.iter_lines()):
                told = json.loads(data)
                said += told["text"] if told["kind"] == "stdout" else ""
                if event_id:
                    last_id = event_id
                    break
        server.kill()
        (place.files / "stop").touch()
        server.start()
        with client.stream("GET", place.path(f"cells/{cell}/events?offset={last_id}")) as answer:
            for name, _, data in events_of(answer.iter_lines()):
                told = json.loads(data)
                said += told["text"] if name == "piece" and told["kind"] == "stdout" else ""
        lines = int(ended(client, place, "cells", cell)["result"]["results"]["text"])
        assert said == right(lines)[0]


async def test_an_async_stream_of_the_sdk_runs_once_and_has_every_byte_over_a_kill(server: Server) -> None:
    async with AsyncWorkbench(server.url, server.key) as bench:
        session = await bench.create()
        place = Place(server.settings, session.id)
        said = ""
        async with await session.stream(CHATTER) as stream:
            heard = threading.Event()
            killing = asyncio.create_task(asyncio.to_thread(with_kills, server, place, heard))
            async for piece in stream:
                heard.set()
                said += piece.text if piece.kind == "stdout" else ""
            await killing
            assert said == right(int(stream.result.results))[0]
        await session.delete()


def test_what_a_killed_server_had_told_nobody_is_told_by_the_next(server: Server) -> None:
    """A follower that comes late, when cell and server are long gone, reads all from the start."""
    with server.client() as client:
        place = new_session(client, server.settings)
        cell = asked(client, "POST", place.path("cells"), {"code": CHATTER, "mode": "detach"})["id"]
        eventually((place.files / "began").exists, "it talks")
        server.kill()
        (place.files / "stop").touch()
        server.start()
        lines = int(ended(client, place, "cells", cell)["result"]["results"]["text"])
        follower = RawFollower(server, place.path(f"cells/{cell}/events"), threading.Event())
        assert follower.follow() == right(lines)
        assert run(client, place, "number")["results"]["text"] == str(lines)
