"""Streams and handles against a real server on the loopback: connections that break in the middle of things."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.unit.client.loopback import DROPPED, KEY, Loopback, Reply, cell_body, event, printed, refused
from tests.unit.client.loopback import serving as loopback_serving

from workbench import AsyncSession, AsyncWorkbench, Session, Workbench
from workbench.client._sending import AsyncSender, Target
from workbench.errors import Conflict, NotFound, QuotaExceeded

PENDING, ENDED = Reply(body=cell_body(status="pending")), Reply(body=cell_body(stdout={"text": "ab"}))
END = event("end", cell_body(stdout={"text": "ab"}))
EVENTS = "/v1/sessions/ses-1/cells/cel-1/events"


def events(*pieces: str, breaks_off: bool = False) -> Reply:
    return Reply(kind="text/event-stream", pieces=pieces, breaks_off=breaks_off)


@contextmanager
def serving(*script: Reply) -> Iterator[Loopback]:
    """The loopback, and a client of it that is closed with it."""
    with loopback_serving(*script) as loopback, Workbench(loopback.url, KEY, retry_for_s=10.0) as bench:
        CLIENTS[loopback.url] = bench
        yield loopback


CLIENTS: dict[str, Workbench] = {}


def session(loopback: Loopback) -> Session:
    return Session(CLIENTS[loopback.url]._sender, "ses-1", "local")


def targets(loopback: Loopback) -> list[str]:
    return [asked.target for asked in loopback.asked]


def test_a_stream_gives_pieces_as_they_come_and_then_the_result() -> None:
    with serving(PENDING, events(": keep-alive\n\n", printed("a", 5), printed("b", 9), END)) as loopback:
        stream = session(loopback).stream("print('ab')")
        assert [piece.text for piece in stream] == ["a", "b"]
    assert stream.result.stdout == "ab"
    assert stream.offset == 9
    assert stream.cell.done


def test_a_stream_whose_connection_breaks_goes_on_behind_the_last_piece() -> None:
    broken, shut = events(printed("a", 5), breaks_off=True), events(printed("b", 9))
    with serving(PENDING, DROPPED, broken, shut, events(printed("c", 12), END)) as loopback:
        stream = session(loopback).stream("x")
        assert [piece.text for piece in stream] == ["a", "b", "c"]
    assert targets(loopback)[1:] == [f"{EVENTS}?offset={offset}" for offset in (0, 0, 5, 9)]


def test_pieces_that_came_together_are_told_once_when_the_connection_breaks_between_them() -> None:
    first, second, third = (event("piece", {"kind": "stdout", "text": text}) for text in "bcd")
    broken = events(printed("a", 5), first, second, breaks_off=True)
    again = events(first, breaks_off=True)
    more = events(first, second, third, printed("e", 20), END)
    with serving(PENDING, broken, again, more) as loopback:
        assert [piece.text for piece in session(loopback).stream("x")] == ["a", "b", "c", "d", "e"]
    assert targets(loopback)[1:] == [f"{EVENTS}?offset={offset}" for offset in (0, 5, 5)]


def test_an_event_that_was_cut_in_two_is_told_once() -> None:
    whole = printed("b", 9)
    broken = events(printed("a", 5), whole[: len(whole) // 2], breaks_off=True)
    with serving(PENDING, broken, events(whole, END)) as loopback:
        assert [piece.text for piece in session(loopback).stream("x")] == ["a", "b"]


def test_events_that_this_client_does_not_know_are_passed_over() -> None:
    strange = (event("confetti", {"n": 1}, 7), event("end", cell_body(status="pending")))
    with serving(PENDING, events(*strange, printed("a", 9), END)) as loopback:
        assert [piece.text for piece in session(loopback).stream("x")] == ["a"]


def test_what_the_host_could_not_keep_is_told() -> None:
    with serving(PENDING, events(printed("a", 5), event("dropped", {"bytes": 77}), END)) as loopback:
        stream = session(loopback).stream("x")
        assert len(list(stream)) == 1
    assert stream.dropped_bytes == 77


def test_a_result_before_the_end_of_the_stream_is_a_conflict() -> None:
    with (
        serving(PENDING, events(printed("a", 5), END)) as loopback,
        session(loopback).stream("x") as stream,
        pytest.raises(Conflict, match="not read to its end"),
    ):
        _ = stream.result


def test_a_stream_of_a_cell_that_never_began_raises() -> None:
    with (
        serving(PENDING, events(event("end", cell_body(status="failed")))) as loopback,
        pytest.raises(QuotaExceeded),
    ):
        list(session(loopback).stream("x"))


def test_output_that_went_with_its_sandbox_does_not_hide_the_result() -> None:
    broken, gone = events(printed("a", 5), breaks_off=True), refused("conflict", "the output is gone", 409)
    lost = Reply(body=cell_body(outcome="lost"))
    with serving(PENDING, broken, gone, lost) as loopback:
        stream = session(loopback).stream("x")
        assert [piece.text for piece in stream] == ["a"]
        assert stream.result.outcome == "lost"


def test_who_asks_for_output_that_is_not_kept_is_told_so() -> None:
    with (
        serving(ENDED, refused("not_found", "the output is gone", 404), ENDED) as loopback,
        pytest.raises(NotFound, match="the output is gone"),
    ):
        list(session(loopback).cell("cel-1").follow())


def test_a_handle_waits_and_gives_up_when_it_is_told_to() -> None:
    with serving(PENDING) as loopback:
        cell = session(loopback).start("x")
        with pytest.raises(TimeoutError, match=r"cel-1 still runs after 0\.05 s"):
            cell.wait(timeout_s=0.05)
        loopback.script[:] = [ENDED]
        assert cell.wait().stdout == "ab"
        assert cell.done


def test_a_command_is_followed_and_stopped_where_commands_are() -> None:
    pending = Reply(body=cell_body(status="pending", kind="command"))
    with serving(pending, events(END), Reply(body={"stopped": True})) as loopback:
        cell = session(loopback).start_bash("sleep 9")
        assert list(cell.follow(offset=3)) == []
    assert targets(loopback)[1] == "/v1/sessions/ses-1/commands/cel-1/events?offset=3"


def test_a_handle_stops_its_own_cell() -> None:
    with serving(PENDING, Reply(body={"stopped": True})) as loopback:
        assert session(loopback).start("x").stop() is True
    assert targets(loopback)[1] == "/v1/sessions/ses-1/cells/cel-1/stop"


def test_run_calls_back_with_every_piece() -> None:
    heard: list[str] = []
    with serving(PENDING, events(printed("a", 5), printed("b", 9), END)) as loopback:
        result = session(loopback).run("x", on_output=lambda piece: heard.append(piece.text))
    assert heard == ["a", "b"]
    assert result.stdout == "ab"
    assert loopback.asked[0].body["mode"] == "detach"


async def test_an_async_stream_goes_on_behind_the_last_piece() -> None:
    script = (PENDING, events(printed("a", 5), breaks_off=True), events(printed("b", 9), END))
    with serving(*script) as loopback:
        sender = AsyncSender(Target(loopback.url, KEY, retry_for_s=10.0))
        stream = await AsyncSession(sender, "ses-1", "local").stream("x")
        assert [piece.text async for piece in stream] == ["a", "b"]
        await sender.close()
    assert stream.result.stdout == "ab"
    assert targets(loopback)[1:] == [f"{EVENTS}?offset=0", f"{EVENTS}?offset=5"]


async def test_async_output_may_go_to_either_kind_of_function() -> None:
    heard: list[str] = []

    async def later(piece: object) -> None:
        heard.append("later")

    script = (PENDING, events(printed("a", 5), END))
    for on_output in (later, lambda _piece: heard.append("now")):
        with serving(*script) as loopback:
            async with AsyncWorkbench(loopback.url, KEY) as bench:
                session = AsyncSession(bench._sender, "ses-1", "local")
                await session.run("x", on_output=on_output)
    assert heard == ["later", "now"]


def test_leaving_a_stream_early_closes_its_connection() -> None:
    with serving(PENDING, events(printed("a", 5), printed("b", 9), END)) as loopback:
        with Workbench(loopback.url, KEY) as bench, Session(bench._sender, "ses-1", "local").stream("x") as stream:
            assert next(stream).text == "a"
        assert list(stream) == []
