"""The file that carries variables: frames, each with labels and one pickle. It knows nothing of what is in them."""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# How long the labels and the pickle are; both follow. The second is written last: 0 is a frame that was broken off.
_HEADER = struct.Struct("<IQ")
_BUFFER = 256 * 1024


class Sink:
    """Writes frames; one that fails halfway is taken back."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = 0

    @contextlib.contextmanager
    def frame(self, labels: tuple[str, ...]) -> Iterator[None]:
        """What is written in the body is the pickle; nothing is left of it if the body raises."""
        start, coded = self.size, "\n".join(labels).encode()
        try:
            self.write(_HEADER.pack(len(coded), 0) + coded)
            body = self.size
            yield
            os.pwrite(self._descriptor, _HEADER.pack(len(coded), self.size - body), start)
        except BaseException:
            self.back_to(start)
            raise

    def write(self, data: Any) -> int:
        """All of it: a file that a pickler is told of must not write less than it was given."""
        left = memoryview(data).cast("B")
        while left:
            written = os.write(self._descriptor, left)
            self.size += written
            left = left[written:]
        return len(data)

    def back_to(self, size: int) -> None:
        """Forget what was written after `size`."""
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self.size = size


@dataclass(frozen=True, slots=True)
class Frame:
    """Where one is in its file."""

    labels: tuple[str, ...]
    start: int
    end: int

    def open(self, descriptor: int) -> io.BufferedReader:
        """Its pickle, with a position of its own: frames are read while others are."""
        return io.BufferedReader(_Part(descriptor, self.start, self.end), _BUFFER)


def frames(descriptor: int) -> Iterator[Frame]:
    """All that are whole."""
    at, size = 0, os.fstat(descriptor).st_size
    while at + _HEADER.size <= size:
        label_bytes, body_bytes = _HEADER.unpack(os.pread(descriptor, _HEADER.size, at))
        start = at + _HEADER.size + label_bytes
        at = start + body_bytes
        if body_bytes == 0 or at > size:
            return
        coded = os.pread(descriptor, label_bytes, start - label_bytes)
        yield Frame(tuple(coded.decode().split("\n")), start, at)


class _Part(io.RawIOBase):
    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self._descriptor, self._at, self._end = descriptor, start, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)[: self._end - self._at]
        count = os.preadv(self._descriptor, [room], self._at) if room else 0
        self._at += count
        return count
