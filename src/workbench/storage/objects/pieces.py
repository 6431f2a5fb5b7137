"""Contents of files on their way: read and written in pieces, and what fails here is not taken for the store's."""

from __future__ import annotations

import io
import os
from typing import Any

from workbench.storage.moving import WriteFailed


class Window(io.RawIOBase):
    """A part of an open file, read as it is sent."""

    def __init__(self, descriptor: int, start: int, size: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._start = start
        self._size = size
        self._at = 0
        self.problem: OSError | None = None
        """why it could not be read: what was sent then is not in the file"""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: a part may be sent again."""
        return True

    def tell(self) -> int:
        """From the beginning of the part."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """From the beginning of the part."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = min(max(base + offset, 0), self._size)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """What fits. A file that was cut meanwhile is filled with zeros: it is not taken in the end."""
        view = memoryview(buffer).cast("B")[: self._size - self._at]
        read = self._read(view) if view else 0
        if view and not read:
            view[:] = bytes(len(view))
            read = len(view)
        self._at += read
        return read

    def _read(self, view: memoryview) -> int:
        try:
            return os.preadv(self._descriptor, [view], self._start + self._at)
        except OSError as problem:
            # Raised, the client would take it for a trouble of the network.
            self.problem = problem
            return 0


def read_whole(descriptor: int, size: int) -> bytes:
    """From its beginning; less if there is less."""
    pieces, at = [], 0
    while at < size and (piece := os.pread(descriptor, size - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def write_piece(descriptor: int, piece: bytes) -> None:
    """Behind what is there; where all of it is zeros a hole is left, as there may have been one.

    Raises:
        WriteFailed: say as the disk is full.
    """
    try:
        if not piece.strip(b"\0"):
            os.ftruncate(descriptor, os.lseek(descriptor, len(piece), os.SEEK_CUR))
            return
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as problem:
        raise WriteFailed(problem) from problem
