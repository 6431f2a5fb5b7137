"""Sessions that nobody uses, with short limits and a real server: they stand still, end, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.host.support import eventually
from tests.restart.server import Server, own_settings, served
from tests.restart.work import Place, asked, body_of, ended, new_session, run

pytestmark = pytest.mark.timeout(240)

# The server looks around every 15 seconds or so; nothing here depends on how often.
SOON_S = 90.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that freezes after a second; sessions of their own say otherwise."""
    with own_settings(freeze_after_s=1, end_after_s=0) as settings, served(settings) as server:
        yield server


def described(client: httpx2.Client, place: Place) -> dict[str, Any]:
    told: dict[str, Any] = asked(client, "GET", f"/v1/sessions/{place.session}")
    return told


def state(client: httpx2.Client, place: Place) -> str:
    return str(described(client, place)["state"])


def is_over(client: httpx2.Client, place: Place) -> bool:
    """Ended by the caretaker, and written down."""
    told = described(client, place)
    return told["state"] == "lost" and "not used for" in told["detail"]


def test_idle_sessions_freeze_or_end_and_used_ones_do_not(server: Server) -> None:
    with server.client() as client:
        frozen = new_session(client, server.settings)
        over = new_session(client, server.settings, idle={"freeze_after_s": 0, "end_after_s": 3})
        never = new_session(client, server.settings, idle={"freeze_after_s": 0, "end_after_s": 0})
        busy = new_session(client, server.settings, idle={"freeze_after_s": 1, "end_after_s": 3})
        working = new_session(client, server.settings, idle={"freeze_after_s": 1, "end_after_s": 3})
        everyone = (frozen, over, never, busy, working)
        before = {place: run(client, place, "x = 1\nopen('/mnt/files/kept', 'w').close()") for place in everyone}
        cell = asked(client, "POST", busy.path("cells"), body_of("cells", "detach"))
        command = asked(client, "POST", working.path("commands"), body_of("commands", "detach"))

        eventually(lambda: state(client, frozen) == "frozen", "one is frozen", SOON_S)
        eventually(lambda: is_over(client, over), "one has ended", SOON_S)
        assert (state(client, never), state(client, busy)) == ("idle", "busy")

        thawed = run(client, frozen, "x")
        assert (thawed["results"]["text"], thawed["receipt"]["state"]) == ("1", "intact")
        anew = run(client, over, "import os\nprint(os.path.exists('/mnt/files/kept'))\nx")
        assert (anew["stdout"]["text"], anew["error"]["name"]) == ("True\n", "NameError")
        assert anew["receipt"]["state"] == "lost"
        assert "not used for 3 s" in anew["receipt"]["reason"]
        assert anew["receipt"]["epoch"] > before[over]["receipt"]["epoch"]
        again = run(client, over, "1")["receipt"]
        assert (again["state"], again["reason"]) == ("intact", "")

        for place, kind, one in ((busy, "cells", cell), (working, "commands", command)):
            place.let_go()
            assert ended(client, place, kind, one["id"])["result"]["outcome"] == "ok"
            after = run(client, place, "x")
            assert (after["results"]["text"], after["receipt"]["state"]) == ("1", "intact")


def test_keeping_a_session_alive_keeps_it_while_another_of_the_same_limits_ends(server: Server) -> None:
    with server.client() as client:
        limits = {"freeze_after_s": 0, "end_after_s": 5}
        kept, left = (
            new_session(client, server.settings, idle=limits),
            new_session(client, server.settings, idle=limits),
        )
        for place in (kept, left):
            run(client, place, "x = 1")

        def left_has_ended() -> bool:
            asked(client, "POST", kept.path("keep-alive"))
            return is_over(client, left)

        eventually(left_has_ended, "the other has ended", SOON_S)
        after = run(client, kept, "x")
        assert (after["results"]["text"], after["receipt"]["state"]) == ("1", "intact")


def test_a_frozen_session_is_still_there_after_a_kill_of_the_server(server: Server) -> None:
    with server.client() as client:
        place = new_session(client, server.settings)
        run(client, place, "x = 1")
        eventually(lambda: state(client, place) == "frozen", "it is frozen", SOON_S)
        server.kill()
        server.start()
        assert state(client, place) == "frozen"
        thawed = run(client, place, "x")
        assert (thawed["results"]["text"], thawed["receipt"]["state"]) == ("1", "intact")
