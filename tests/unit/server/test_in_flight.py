"""Nobody takes all that the server can do at once."""

from __future__ import annotations

import contextlib

import pytest

from workbench.errors import QuotaExceeded
from workbench.server.in_flight import InFlight, Most

MIB = 1024 * 1024


def test_one_key_has_so_many_requests_at_once_and_others_have_theirs() -> None:
    flight = InFlight(Most(requests=2, of_bytes=MIB), Most(requests=3, of_bytes=MIB))
    with contextlib.ExitStack() as open_ones:
        for _ in range(2):
            open_ones.enter_context(flight.one("a"))
        with pytest.raises(QuotaExceeded, match="this key has 2 requests") as caught, flight.one("a"):
            pass
        assert caught.value.retryable
        open_ones.enter_context(flight.one("b"))
        with pytest.raises(QuotaExceeded, match="there are 3 requests"), flight.one("c"):
            pass
    with flight.one("a"), flight.one("c"):
        pass


def test_bytes_are_held_until_the_answer_and_are_free_again_however_it_ended() -> None:
    flight = InFlight(Most(requests=9, of_bytes=2 * MIB), Most(requests=9, of_bytes=3 * MIB))
    with flight.one("a") as one, flight.one("a") as two, flight.one("b") as other:
        one.hold(MIB)
        two.hold(MIB)
        with pytest.raises(QuotaExceeded, match="this key that are not answered yet hold 2 MiB"):
            two.hold(1)
        other.hold(MIB)
        with pytest.raises(QuotaExceeded, match="all that are not answered yet hold 3 MiB"):
            other.hold(1)
    with contextlib.suppress(KeyError), flight.one("a") as one:
        one.hold(2 * MIB)
        raise KeyError
    with flight.one("a") as one:
        one.hold(2 * MIB)
    assert not flight._by_key


def test_what_a_request_began_counts_until_it_has_ended_though_its_sender_is_gone() -> None:
    flight = InFlight(Most(requests=1, of_bytes=MIB), Most(requests=9, of_bytes=MIB))
    with contextlib.ExitStack() as work:
        with flight.one("a") as one:
            one.hold(MIB)
            work.enter_context(one.going_on())
        with pytest.raises(QuotaExceeded, match="this key has 1 requests"), flight.one("a"):
            pass
        with flight.one("b") as other, pytest.raises(QuotaExceeded, match="all that are not answered yet"):
            other.hold(1)
    with flight.one("a") as one:
        one.hold(MIB)
    assert not flight._by_key
