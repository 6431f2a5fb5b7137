"""When a lost answer is asked for again, and when not."""

from __future__ import annotations

import httpx2
import pytest

from workbench.client import _requests
from workbench.client._retries import Attempts, Connection
from workbench.errors import ServerUnavailable

GET, POST = _requests.get_session("ses-1"), _requests.undo("ses-1", 1)
LOST, NO_ONE = httpx2.ReadError("gone"), httpx2.ConnectError("refused")


def attempts(request: _requests.Request[object], *, reached: bool = True, at: list[float] | None = None) -> Attempts:
    clock = at if at is not None else [0.0]
    connection = Connection(server="http://there", retry_for_s=30.0, reached=reached)
    return Attempts(request=request, connection=connection, now=lambda: clock[0], spread=lambda: 1.0)


def test_pauses_grow_to_a_bound() -> None:
    again = attempts(GET)
    assert [again.pause_s(LOST) for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_an_answer_in_between_begins_anew() -> None:
    at = [0.0]
    again = attempts(GET, at=at)
    again.pause_s(LOST)
    at[0] = 29.0
    again.got_through()
    at[0] = 40.0
    assert again.pause_s(LOST) == 0.1


def test_it_is_given_up_in_the_end_and_the_error_names_the_next_step() -> None:
    at = [0.0]
    again = attempts(GET, at=at)
    again.pause_s(LOST)
    at[0] = 30.0
    with pytest.raises(ServerUnavailable, match=r"http://there.*start it with `workbench serve`"):
        again.pause_s(LOST)


def test_what_may_have_been_done_is_not_done_again() -> None:
    with pytest.raises(ServerUnavailable, match="whether it was done is not known"):
        attempts(POST).pause_s(LOST)


def test_what_was_never_sent_may_be_sent_whatever_it_is() -> None:
    assert attempts(POST).pause_s(NO_ONE) == 0.1


def test_a_server_that_never_answered_is_a_wrong_address_and_told_at_once() -> None:
    with pytest.raises(ServerUnavailable, match="OPEN_WORKBENCH_URL"):
        attempts(GET, reached=False).pause_s(NO_ONE)


def test_a_request_that_cannot_be_sent_at_all_is_not_tried_again() -> None:
    with pytest.raises(ServerUnavailable):
        attempts(GET).pause_s(httpx2.LocalProtocolError("illegal header"))
