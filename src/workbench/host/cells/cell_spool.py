"""Everything that a cell said, on disk as it came: one append-only log of frames, read from any offset by anyone.

A frame is its length and a msgpack piece. Writing never waits for a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from workbench.errors import InvalidRequest
from workbench.model.execution import CellError, Display, Piece, PieceKind
from workbench.model.truncation import excerpt

_LENGTH = struct.Struct(">I")
_HEADER = _LENGTH.size
# Longer texts are cut into several pieces, so that one answer can always carry one.
_TEXT_CHARACTERS = 1024 * 1024
# What one answer can carry beside everything else; a display above it is told about, and is whole in the spool.
_TELLABLE_BYTES = 16 * 1024 * 1024
_TOLD_OF_A_HUGE_FORMAT, _FORMATS_TOLD, _TOLD_OF_A_NAME = 64 * 1024, 20, 200
_READ_AHEAD = 1024 * 1024

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Piece)


@dataclass(frozen=True, slots=True)
class Page:
    """Pieces in the order they came."""

    pieces: tuple[Piece, ...]
    next_offset: int
    ended: bool


class CellSpool:
    """Owned by its cell. The file is made with the first piece, so that a waiting or silent cell costs nothing."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: int | None = None
        self._readers = 0
        self._changed = asyncio.Event()
        self.size = 0
        self.dropped_bytes = 0
        self.dropped_kinds: set[PieceKind] = set()
        self.ended = False

    def append(self, piece: Piece) -> None:
        """Keep it, or count it if there is no room. Once something was dropped all that follows is: no hidden holes."""
        for part in _parts(piece):
            body = _encoder.encode(part)
            if self.dropped_bytes or not self._write(_LENGTH.pack(len(body)) + body):
                self.dropped_bytes += len(body)
                self.dropped_kinds.add(part.kind)
        self._tell()

    def _write(self, frame: bytes) -> bool:
        if self.size + len(frame) > self._max_bytes:
            return False
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if os.pwrite(self._file, frame, self.size) < len(frame):
                return False
        except OSError:
            # The host's disk is full: what cannot be kept is counted, and never read as the end of it.
            return False
        self.size += len(frame)
        return True

    def _tell(self) -> None:
        if self._readers:
            self._changed.set()
            self._changed = asyncio.Event()

    def end(self) -> None:
        """Nothing more will come. May be called twice."""
        self.ended = True
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._tell()

    async def read(self, offset: int, limit: int, wait_s: float) -> Page:
        """Whole pieces from `offset`, after waiting for something new; one is always given if there is one.

        Raises:
            InvalidRequest: no piece begins there.
        """
        if offset > self.size:
            raise InvalidRequest(f"offset {offset} is after the end, which is {self.size}")
        self._readers += 1
        try:
            async with asyncio.timeout(wait_s):
                while offset >= self.size and not self.ended:
                    await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            self._readers -= 1
        pieces, after = self._page(offset, limit)
        return Page(tuple(pieces), after, self.ended and after >= self.size)

    def _page(self, offset: int, limit: int) -> tuple[list[Piece], int]:
        pieces: list[Piece] = []
        with self._open() as file:
            start, budget = offset, min(limit, _TELLABLE_BYTES)
            for piece, after in _frames(file, offset, self.size, min(limit, _READ_AHEAD)):
                if pieces and after - start > budget:
                    break
                pieces.append(_tellable(piece) if after - offset > _TELLABLE_BYTES else piece)
                offset = after
        return pieces, offset

    def pieces(self, offset: int = 0) -> Iterator[Piece]:
        """All that is kept from there on, for a thread of its own; the cell has ended."""
        with self._open() as file:
            for piece, _ in _frames(file, offset, self.size, _READ_AHEAD):
                yield piece

    @contextlib.contextmanager
    def _open(self) -> Iterator[int | None]:
        """The file: our own descriptor while it is written, one for the occasion afterwards."""
        if self._file is not None or not self.size:
            yield self._file
            return
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Forgotten between two reads.
            yield None
            return
        try:
            yield file
        finally:
            os.close(file)

    def remove(self) -> None:
        """From the disk; who still reads is told that it ended. May be called twice."""
        self.end()
        self.size = 0
        self._path.unlink(missing_ok=True)


def _frames(file: int | None, offset: int, end: int, ahead: int) -> Iterator[tuple[Piece, int]]:
    """Each piece from `offset` on, and where the next one begins."""
    if file is None:
        return
    held = _Held(file, end, ahead)
    at = offset
    while at < end:
        (length,) = _LENGTH.unpack(held.bytes(at, _HEADER).ljust(_HEADER, b"\xff"))
        try:
            # Too long is cut short, and no piece then.
            piece = _decoder.decode(held.bytes(at + _HEADER, min(length, end - at)))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise InvalidRequest(f"no piece begins at offset {at}; use 0 or an earlier next_offset") from None
        at += _HEADER + length
        yield piece, at


class _Held:
    """A window of the file, moved on when something outside of it is wanted."""

    def __init__(self, file: int, end: int, ahead: int) -> None:
        self._file = file
        self._end = end
        self._ahead = ahead
        self._start = 0
        self._data = b""

    def bytes(self, at: int, length: int) -> bytes:
        """Those of the file, or fewer at its end."""
        if not self._start <= at <= at + length <= self._start + len(self._data):
            self._data = os.pread(self._file, min(max(self._ahead, length), self._end - at), at)
            self._start = at
        return self._data[at - self._start : at - self._start + length]


def _parts(piece: Piece) -> Iterator[Piece]:
    if len(piece.text) <= _TEXT_CHARACTERS:
        yield piece
        return
    for start in range(0, len(piece.text), _TEXT_CHARACTERS):
        yield replace(piece, text=piece.text[start : start + _TEXT_CHARACTERS])


def _tellable(piece: Piece) -> Piece:
    display, error = piece.display, piece.error
    return replace(
        piece, display=display and _shortened(display), error=error and short_error(error, _TOLD_OF_A_HUGE_FORMAT)
    )


def _shortened(display: Display) -> Display:
    """What of it can be told: texts by head and tail, and of the rest only how large it is."""
    data: dict[str, str] = {}
    for mime, value in list(display.data.items())[:_FORMATS_TOLD]:
        if len(mime) > _TOLD_OF_A_NAME:
            continue
        if len(value) <= _TOLD_OF_A_HUGE_FORMAT:
            data[mime] = value
        elif mime.startswith("text/"):
            data[mime] = excerpt(value, _TOLD_OF_A_HUGE_FORMAT)
        else:
            data.setdefault("text/plain", f"[{mime} of {len(value):,} characters, too large to be sent]")
    metadata = display.metadata if len(display.metadata) <= _TOLD_OF_A_HUGE_FORMAT else "{}"
    return replace(display, data=data, metadata=metadata, display_id=display.display_id[:_TOLD_OF_A_NAME])


def short_error(error: CellError, most: int) -> CellError:
    """With no text over `most` characters."""
    return CellError(
        name=error.name[:_TOLD_OF_A_NAME],
        message=excerpt(error.message, most),
        traceback=excerpt(error.traceback, most),
    )
