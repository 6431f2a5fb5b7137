"""Bytes that go from a socket into a file by themselves."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator

import pytest

from workbench.storage.moving import moved

MIB = 1024 * 1024


@pytest.fixture
def target() -> Iterator[int]:
    with tempfile.TemporaryFile(prefix="wb-", dir="/tmp") as file:
        yield file.fileno()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


def test_all_that_a_fast_sender_has_is_moved(target: int, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    data = os.urandom(8 * MIB)
    sending = threading.Thread(target=far.sendall, args=(data,))
    sending.start()
    at = 0
    until = time.monotonic() + 20
    while at < len(data):
        assert time.monotonic() < until
        at += sum(moved(near.fileno(), target, at, len(data) - at))
    sending.join()
    assert os.pread(target, len(data), 0) == data


def test_a_slow_sender_has_no_thread_for_long(target: int, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.0005):
            far.sendall(b"x")

    sending = threading.Thread(target=drip)
    sending.start()
    try:
        held, at, ending = 0.0, 0, time.monotonic() + 1
        while time.monotonic() < ending:
            began = time.monotonic()
            at += sum(moved(near.fileno(), target, at, MIB))
            held += (took := time.monotonic() - began)
            assert took < 0.5
            time.sleep(0.02)
        assert at
        assert held < 0.5
    finally:
        over.set()
        sending.join()


def test_the_end_of_the_source_is_told(target: int, ends: tuple[socket.socket, socket.socket]) -> None:
    near, far = ends
    far.sendall(b"some")
    far.close()
    steps = moved(near.fileno(), target, 0, 100)
    assert next(steps) == 4
    with pytest.raises(EOFError):
        next(steps)
