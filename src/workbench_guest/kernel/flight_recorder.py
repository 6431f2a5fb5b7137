"""Memory that the host shares, for what a process cannot tell any more once it has died.

First the request that is being run, and how many messages were handed over to be sent. Then one part a stream: a
counter of all bytes ever printed, and a ring of the latest; the host knows how many of each it received. Then one part
a stream for what was just read from a child's pipe: until it is in the ring it is in no other place.
"""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import struct
import termios

# Also the most that may wait to be sent: what is older has left.
RING_BYTES = 1024 * 1024
_COUNTER = struct.Struct("<Q")
_TAKEN = struct.Struct("<QQ")
"""how many bytes were read, and what the stream's counter was then"""
_PART_BYTES = _COUNTER.size + RING_BYTES
_REQUEST_BYTES = 64
STREAMS = ("stdout", "stderr")
_FIRST_PART = _REQUEST_BYTES + _COUNTER.size
# As much as a pipe holds.
_TAKEN_BYTES = 64 * 1024
_TAKEN_PART_BYTES = _TAKEN.size + _TAKEN_BYTES
_FIRST_TAKEN = _FIRST_PART + len(STREAMS) * _PART_BYTES
TOTAL_BYTES = _FIRST_TAKEN + len(STREAMS) * _TAKEN_PART_BYTES
# What no text begins with: while it is there nothing was read.
_NOT_YET = 0xFF


def note_request(memory: mmap.mmap, request: str) -> None:
    """It begins now: whatever becomes of us, it must not be taken for one that never began."""
    memory[:_REQUEST_BYTES] = request.encode()[:_REQUEST_BYTES].ljust(_REQUEST_BYTES, b"\0")


def last_request(descriptor: int) -> str:
    """For the host: the request that was begun last."""
    return os.pread(descriptor, _REQUEST_BYTES, 0).rstrip(b"\0").decode("ascii", "replace")


def note_sent(memory: mmap.mmap, messages: int) -> None:
    """So many in all; noted before the last of them is handed over."""
    _COUNTER.pack_into(memory, _REQUEST_BYTES, messages)


def sent(descriptor: int) -> int:
    """For the host: how many messages it will have received when all have come; a guest's word."""
    told = os.pread(descriptor, _COUNTER.size, _REQUEST_BYTES)
    return int(_COUNTER.unpack(told)[0]) if len(told) == _COUNTER.size else -1


def _start_of(stream: str) -> int:
    return _FIRST_PART + STREAMS.index(stream) * _PART_BYTES


def _start_of_taken(stream: str) -> int:
    return _FIRST_TAKEN + STREAMS.index(stream) * _TAKEN_PART_BYTES


class FlightRecorder:
    """The writing side of one stream."""

    def __init__(self, memory: mmap.mmap, stream: str) -> None:
        self._memory = memory
        self._start = _start_of(stream)
        self._taken = _start_of_taken(stream)
        self._written = 0

    def record(self, data: bytes) -> None:
        """Keep it; the counter moves after the bytes are there."""
        for begin in range(0, len(data), RING_BYTES):
            piece = data[begin : begin + RING_BYTES]
            at = self._written % RING_BYTES
            first = min(len(piece), RING_BYTES - at)
            ring = self._start + _COUNTER.size
            self._memory[ring + at : ring + at + first] = piece[:first]
            self._memory[ring : ring + len(piece) - first] = piece[first:]
            self._written += len(piece)
        _COUNTER.pack_into(self._memory, self._start, self._written)

    def take(self, pipe: int) -> bytes:
        """What it holds, read to where the host finds it until it is recorded; empty if it holds nothing.

        Whoever reads gives up the interpreter meanwhile, and another thread may end the process before it has it back.
        Nothing else may be recorded between this and the record of it.
        """
        held = array.array("i", [0])
        fcntl.ioctl(pipe, termios.FIONREAD, held)
        size = min(held[0], _TAKEN_BYTES)
        if size <= 0:
            return b""
        begin = self._taken + _TAKEN.size
        self._memory[begin] = _NOT_YET
        _TAKEN.pack_into(self._memory, self._taken, size, self._written)
        with memoryview(self._memory) as whole, whole[begin : begin + size] as room:
            size = os.readv(pipe, [room])
        return self._memory[begin : begin + size]


def unrecorded(descriptor: int, stream: str) -> bytes:
    """For the host, once the process is dead: what it had read from a pipe and not recorded; a guest's word."""
    part = os.pread(descriptor, _TAKEN_PART_BYTES, _start_of_taken(stream))
    if len(part) < _TAKEN_PART_BYTES:
        return b""
    size, before = _TAKEN.unpack_from(part)
    data = part[_TAKEN.size :][: min(size, _TAKEN_BYTES)]
    recorded = os.pread(descriptor, _COUNTER.size, _start_of(stream)) != _COUNTER.pack(before)
    return b"" if recorded or not data or data[0] == _NOT_YET else data


def unsent(descriptor: int, stream: str, received: int) -> bytes:
    """For the host, once the process is dead: what was printed after the first `received` bytes.

    BARRIER: read, not mapped, so that a guest which shortens the memory cannot end the host; whatever it wrote there,
    the answer is no longer than the ring. Held by tests/unit/workbench_guest/kernel/test_flight_recorder.py.
    """
    part = os.pread(descriptor, _PART_BYTES, _start_of(stream))
    if len(part) < _PART_BYTES:
        return b""
    (written,) = _COUNTER.unpack_from(part)
    missing = min(written - received, RING_BYTES)
    if missing <= 0:
        return b""
    at = (written - missing) % RING_BYTES
    ring = part[_COUNTER.size :]
    return (ring[at:] + ring[:at])[:missing]
