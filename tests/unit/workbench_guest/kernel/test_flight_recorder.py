"""What had been printed but not sent, read by the host after the process is dead, whatever it wrote there."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import pytest

from workbench_guest.kernel.flight_recorder import (
    RING_BYTES,
    TOTAL_BYTES,
    FlightRecorder,
    last_request,
    note_request,
    unrecorded,
    unsent,
)


@pytest.fixture
def descriptor() -> Iterator[int]:
    memory = os.memfd_create("test")
    os.ftruncate(memory, TOTAL_BYTES)
    yield memory
    os.close(memory)


@pytest.fixture
def memory(descriptor: int) -> Iterator[mmap.mmap]:
    with mmap.mmap(descriptor, TOTAL_BYTES) as mapped:
        yield mapped


def test_nothing_was_printed(descriptor: int) -> None:
    assert unsent(descriptor, "stdout", 0) == b""
    assert last_request(descriptor) == ""


def test_only_what_was_not_received_is_given(descriptor: int, memory: mmap.mmap) -> None:
    recorder = FlightRecorder(memory, "stdout")
    recorder.record(b"sent ")
    recorder.record("unsent é".encode())
    assert unsent(descriptor, "stdout", 5) == "unsent é".encode()
    assert unsent(descriptor, "stdout", 14) == b""
    assert unsent(descriptor, "stderr", 0) == b""


@pytest.mark.parametrize("before", [0, 1, RING_BYTES - 3, RING_BYTES, 3 * RING_BYTES - 1])
def test_the_ring_goes_round(descriptor: int, memory: mmap.mmap, before: int) -> None:
    recorder = FlightRecorder(memory, "stderr")
    for start in range(0, before, 100_000):
        recorder.record(b"." * min(100_000, before - start))
    recorder.record(b"the last words")
    assert unsent(descriptor, "stderr", before) == b"the last words"


def test_of_more_than_the_ring_the_latest_is_kept(descriptor: int, memory: mmap.mmap) -> None:
    FlightRecorder(memory, "stdout").record(b"a" * 10 + b"b" * RING_BYTES)
    assert unsent(descriptor, "stdout", 0) == b"b" * RING_BYTES


def test_the_request_under_way_is_known(descriptor: int, memory: mmap.mmap) -> None:
    note_request(memory, "0123456789abcdef" * 2)
    note_request(memory, "short")
    assert last_request(descriptor) == "short"


def test_a_hostile_counter_gives_no_more_than_the_ring(descriptor: int, memory: mmap.mmap) -> None:
    memory[:] = b"\xff" * TOTAL_BYTES
    assert len(unsent(descriptor, "stdout", 0)) == RING_BYTES
    assert len(last_request(descriptor)) <= 64


@pytest.mark.parametrize("size", [0, 10, TOTAL_BYTES // 2])
def test_memory_that_was_cut_off_gives_nothing_and_harms_nobody(descriptor: int, size: int) -> None:
    os.ftruncate(descriptor, size)
    assert unsent(descriptor, "stderr", 0) == b""
    last_request(descriptor)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_what_was_read_from_a_pipe_is_there_until_it_is_recorded(
    descriptor: int, memory: mmap.mmap, pipe: tuple[int, int]
) -> None:
    recorder = FlightRecorder(memory, "stderr")
    assert recorder.take(pipe[0]) == b""
    os.write(pipe[1], b"of a child")
    assert recorder.take(pipe[0]) == b"of a child"
    assert unrecorded(descriptor, "stderr") == b"of a child"
    assert unrecorded(descriptor, "stdout") == b""
    recorder.record(b"of a child")
    assert unrecorded(descriptor, "stderr") == b""


def test_what_is_still_in_the_pipe_is_not_told_twice(
    descriptor: int, memory: mmap.mmap, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.write(pipe[1], b"of a child")

    def die(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "readv", die)
    with pytest.raises(KeyboardInterrupt):
        FlightRecorder(memory, "stdout").take(pipe[0])
    assert unrecorded(descriptor, "stdout") == b""


def test_a_guest_that_lies_about_what_it_read_gets_no_more_than_there_is_room(
    descriptor: int, memory: mmap.mmap
) -> None:
    memory[:] = b"\x7f" * TOTAL_BYTES
    # All counters say the same, and more than there is.
    assert len(unrecorded(descriptor, "stdout")) == 64 * 1024
    os.ftruncate(descriptor, 10)
    assert unrecorded(descriptor, "stdout") == b""
