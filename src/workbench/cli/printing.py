"""Handing output on to whoever reads ours, however slowly: pieces of a cell become bytes of stdout and stderr."""

from __future__ import annotations

import base64
import contextlib
import struct

import click

from workbench.core.requests import Follower
from workbench.descriptor_writer import DescriptorWriter
from workbench.model.execution import CellError, Display, Piece, PieceKind

_STDOUT, _STDERR = 1, 2
_PNG = b"\x89PNG\r\n\x1a\n"


def notice(line: str) -> None:
    """What we say ourselves, apart from what the code says."""
    click.echo(f"[workbench] {line}", err=True)


class Output:
    """What a cell or command says, on our own stdout and stderr."""

    def __init__(self) -> None:
        self._writers = {_STDOUT: DescriptorWriter(_STDOUT), _STDERR: DescriptorWriter(_STDERR)}
        self._open_line = False
        self._told: CellError | None = None

    @property
    def follower(self) -> Follower:
        """To be told of everything."""
        return Follower(on_piece=self.piece, on_dropped=self._dropped)

    async def piece(self, piece: Piece) -> None:
        """One piece, as it came."""
        match piece.kind:
            case PieceKind.STDOUT:
                await self._write(_STDOUT, piece.text)
            case PieceKind.STDERR:
                await self._write(_STDERR, piece.text)
            case PieceKind.DISPLAY | PieceKind.UPDATE if piece.display is not None:
                await self._display(piece.display)
            case PieceKind.ERROR if piece.error is not None:
                await self.error(piece.error)
            case _:
                # What was printed on a terminal cannot be taken away.
                pass

    async def text(self, text: str, *, is_stdout: bool) -> None:
        """What was kept of a stream, as it was."""
        await self._write(_STDOUT if is_stdout else _STDERR, text)

    async def error(self, error: CellError) -> None:
        """What was raised; told once."""
        if self._told is not None:
            return
        self._told = error
        said = exit_message(error) if error.name == "SystemExit" else error.traceback
        if said:
            await self._write(_STDERR, said.rstrip("\n") + "\n")

    async def _display(self, display: Display) -> None:
        pictures = [mime for mime in display.data if mime.startswith("image/")]
        plain = display.data.get("text/plain")
        if plain is not None and (display.is_result or not pictures):
            await self._write(_STDOUT, f"{'' if not self._open_line else chr(10)}{plain}\n")
        for mime in pictures or ([] if plain is not None else list(display.data)[:1]):
            notice(f"{mime}, {_size(mime, display.data[mime])}; --json has it")

    async def _dropped(self, count: int) -> None:
        notice(f"{count} bytes of output were over what the host keeps of one cell; write so much into a file")

    async def _write(self, descriptor: int, text: str) -> None:
        if not text:
            return
        if descriptor == _STDOUT:
            self._open_line = not text.endswith("\n")
        await self._writers[descriptor].write(text.encode("utf-8", "replace"))


def exit_message(error: CellError) -> str:
    """What Python itself prints for `sys.exit(...)`: nothing, unless it was given words."""
    return "" if exit_status(error) != 1 or error.message == "1" else error.message


def exit_status(error: CellError) -> int:
    """The exit code that `sys.exit(...)` asked for, as the system has it."""
    if error.message in ("", "None"):
        return 0
    try:
        return int(error.message) & 0xFF
    except ValueError:
        return 1


def _size(mime: str, data: str) -> str:
    text = mime in ("image/svg+xml",) or not mime.startswith("image/")
    count = len(data) if text else len(data) * 3 // 4
    words = f"{count / 1024:.0f} KB" if count >= 1024 else f"{count} bytes"
    if mime == "image/png":
        with contextlib.suppress(ValueError, struct.error):
            head = base64.b64decode(data[:64].strip() + "=" * (-len(data[:64].strip()) % 4))
            if head.startswith(_PNG):
                width, height = struct.unpack(">II", head[16:24])
                return f"{width}x{height}, {words}"
    return words
