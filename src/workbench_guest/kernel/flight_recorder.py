"""Memory that the host shares, for what a process cannot tell any more once it has died.

First the request that is being run, and how many messages were handed over to be sent. Then one part a stream: a
counter of all bytes ever printed, and a ring of the latest; the host knows how many of each it received.
"""

from __future__ import annotations

import mmap
import os
import struct

# Also the most that may wait to be sent: what is older has left.
RING_BYTES = 1024 * 1024
_COUNTER = struct.Struct("<Q")
_PART_BYTES = _COUNTER.size + RING_BYTES
_REQUEST_BYTES = 64
STREAMS = ("stdout", "stderr")
_FIRST_PART = _REQUEST_BYTES + _COUNTER.size
TOTAL_BYTES = _FIRST_PART + len(STREAMS) * _PART_BYTES


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


class FlightRecorder:
    """The writing side of one stream."""

    def __init__(self, memory: mmap.mmap, stream: str) -> None:
        self._memory = memory
        self._start = _start_of(stream)
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
