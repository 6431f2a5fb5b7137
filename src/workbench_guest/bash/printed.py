"""What the shell prints, on its way out: in pieces that are neither tiny nor large, in the order they were read."""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable

_CHUNK = 64 * 1024
_PIECE = 256 * 1024
# What is printed line by line leaves together, this late at most.
_HOLD_S = 0.02
# At the end of a cell, of each stream: what goes on printing in the background must not put it off.
_MOST_LEFT = 4 * 1024 * 1024


class Printed:
    """`send` gets the name of a stream and text."""

    def __init__(self, readers: dict[int, str], send: Callable[[str, str], None]) -> None:
        self._readers = readers
        self._send = send
        self._decoders = {reader: codecs.getincrementaldecoder("utf-8")("replace") for reader in readers}
        self._held: list[str] = []
        self._held_of = ""
        self._size = 0
        self._since = 0.0

    @property
    def patience_ms(self) -> int | None:
        """How long one may wait before what is held has to leave."""
        return max(0, int((self._since + _HOLD_S - time.monotonic()) * 1000)) if self._held else None

    def take(self, reader: int) -> int:
        """What is there, once; how much it was."""
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return 0
        text = self._decoders[reader].decode(data)
        if text:
            self._hold(self._readers[reader], text)
        return len(data)

    def _hold(self, stream: str, text: str) -> None:
        if stream != self._held_of:
            self.flush()
        if not self._held:
            self._held_of, self._since = stream, time.monotonic()
        self._held.append(text)
        self._size += len(text)
        if self._size >= _PIECE:
            self.flush()

    def flush_if_due(self) -> None:
        """After a wait."""
        if self.patience_ms == 0:
            self.flush()

    def flush(self) -> None:
        """Everything that is held."""
        if self._held:
            text, self._held, self._size = "".join(self._held), [], 0
            if text:
                self._send(self._held_of, text)

    def take_all(self, *, cut_short: bool = False) -> None:
        """What was printed up to now has left when this returns; without the shell's own end of a cell cut short."""
        for reader in self._readers:
            taken = 0
            while taken < _MOST_LEFT and (size := self.take(reader)):
                taken += size
        if cut_short and self._held_of == "stderr" and self._held:
            self._held[-1] = self._held[-1].removesuffix("\n")
        self.flush()
