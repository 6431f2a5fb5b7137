"""Bytes arrive whole and in order, whoever is slow waits, and a side that goes takes nothing along that it had said."""

from __future__ import annotations

import random
import select
import socket
import time
from collections.abc import Iterator

import pytest

from workbench_guest.keeper.pump import MOST_IN, MOST_OUT, Link, Pump

MUCH = 50_000_000
WAIT_S = 20.0


class Bench:
    """A pump with one link, and the far ends of both of its sockets."""

    def __init__(self) -> None:
        self.poller = select.poll()
        self.pump = Pump(self.poller)
        self.host, inner_host = socket.socketpair()
        self.program, inner_program = socket.socketpair()
        for far in (self.host, self.program):
            far.setblocking(False)
        self.link = Link(inner_host, inner_program)
        self.pump.add(self.link)

    def turn(self, within_ms: int = 0) -> int:
        """What the poller had to say."""
        ready = self.poller.poll(within_ms)
        for descriptor, events in ready:
            self.pump.serve(descriptor, events)
        return len(ready)

    def push(self, far: socket.socket, data: bytes) -> int:
        """As much as is taken with nobody at the other end; how much that was."""
        sent = 0
        while sent < len(data):
            try:
                sent += far.send(data[sent : sent + 65536])
            except BlockingIOError:
                if not self.turn():
                    return sent
        return sent

    def drain(self, far: socket.socket, most: int) -> bytes:
        """Up to so much, or up to the end."""
        got = bytearray()
        deadline = time.monotonic() + WAIT_S
        while len(got) < most and time.monotonic() < deadline:
            try:
                data = far.recv(262144)
            except BlockingIOError:
                self.turn(10)
                continue
            if not data:
                break
            got += data
        return bytes(got)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.pump.close()
    made.host.close()
    made.program.close()


def _noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_both_ways_at_once_in_order(bench: Bench) -> None:
    there, back = _noise(3_000_000), _noise(2_000_000)
    sent_there = sent_back = 0
    got_there, got_back = b"", b""
    while len(got_there) < len(there) or len(got_back) < len(back):
        sent_there += bench.push(bench.host, there[sent_there : sent_there + 100_000])
        sent_back += bench.push(bench.program, back[sent_back : sent_back + 100_000])
        got_there += bench.drain(bench.program, min(150_000, sent_there - len(got_there)))
        got_back += bench.drain(bench.host, min(150_000, sent_back - len(got_back)))
    assert got_there == there
    assert got_back == back


@pytest.mark.parametrize(("writer", "reader", "most"), [("program", "host", MOST_OUT), ("host", "program", MOST_IN)])
def test_who_writes_waits_for_a_reader_that_does_not_read(bench: Bench, writer: str, reader: str, most: int) -> None:
    data = _noise(MUCH)
    taken = bench.push(getattr(bench, writer), data)
    # What we hold, and what the system holds of two connections.
    assert most <= taken < most + 20_000_000
    assert bench.push(getattr(bench, writer), data[taken:]) == 0
    assert bench.drain(getattr(bench, reader), taken) == data[:taken]
    assert bench.push(getattr(bench, writer), data[taken:]) > 0


def test_nothing_is_asked_of_the_system_while_nothing_can_be_done(bench: Bench) -> None:
    bench.push(bench.program, _noise(MUCH))
    bench.program.close()
    # Its socket has hung up and is not read, as there is no room: a poller that waited for it would always be ready.
    assert bench.poller.poll(50) == []


def test_what_a_side_had_said_before_it_went_arrives(bench: Bench) -> None:
    data = _noise(5_000_000)
    sent = bench.push(bench.program, data)
    bench.program.close()
    assert bench.drain(bench.host, MUCH) == data[:sent] == data
    assert len(bench.pump) == 0
    assert bench.host.recv(1) == b""


def test_a_program_that_has_ended_is_read_to_its_last_byte(bench: Bench) -> None:
    data = _noise(6_000_000)
    sent = bench.push(bench.program, data)
    bench.program.close()
    got = b""
    while not bench.pump.take_all():
        got += bench.drain(bench.host, 100_000)
    got += bench.drain(bench.host, MUCH)
    assert got == data[:sent]


def test_a_host_that_goes_takes_the_link_with_it(bench: Bench) -> None:
    bench.push(bench.program, b"for nobody")
    bench.host.close()
    for _ in range(10):
        bench.turn(10)
    assert len(bench.pump) == 0
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        bench.program.send(b"more")


def test_fifty_megabytes_take_about_a_second_at_most(bench: Bench) -> None:
    data = bytes(65536)
    began, sent, got = time.monotonic(), 0, 0
    while got < MUCH:
        if sent < MUCH:
            sent += bench.push(bench.program, data)
        bench.turn()
        try:
            got += len(bench.host.recv(262144))
        except BlockingIOError:
            continue
    # Ten times what it takes on a machine that does nothing else.
    assert time.monotonic() - began < 3.0
