"""What a program that is a kernel prints past the protocol: the host reads its descriptors 1 and 2 itself."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
from collections.abc import Callable

from workbench.contracts.engine import Process
from workbench.kernels.last_words import LastWords, crash_report
from workbench.model.execution import Piece, PieceKind

_CHUNK = 256 * 1024
# In one go, before others get their turn.
_MOST_IN_A_ROW = 1024 * 1024
# At the end of a cell, or of the program: more than pipes hold is being written by something in the background.
_MOST_AT_ONCE = 4 * 1024 * 1024
_STREAMS = (PieceKind.STDOUT, PieceKind.STDERR)

Tell = Callable[[Piece, int], None]


class ProgramWords(LastWords):
    """Of a kernel without memory that is shared with the host."""

    quiet_s = 0.1

    def __init__(self, process: Process, readers: list[int]) -> None:
        super().__init__(process, readers, memory=0)
        self._decoders = {reader: codecs.getincrementaldecoder("utf-8")(errors="replace") for reader in self._readers}
        self._tell: Tell | None = None
        self._listening: set[int] = set()

    def listen(self, tell: Tell) -> None:
        """Tell what is printed as it comes, from now on."""
        self._tell = tell
        self.resume()

    def pause(self) -> None:
        """Read no more for now: who prints will wait."""
        for reader in self._listening:
            asyncio.get_running_loop().remove_reader(reader)
        self._listening.clear()

    def resume(self) -> None:
        """Go on."""
        if self._tell is None:
            return
        for reader in set(self._decoders) - self._listening:
            asyncio.get_running_loop().add_reader(reader, self._take, reader, _MOST_IN_A_ROW)
            self._listening.add(reader)

    def catch_up(self) -> None:
        """Tell what is there now: what was printed before something that came by the protocol is told before it."""
        for reader in list(self._decoders):
            self._take(reader, _MOST_AT_ONCE)

    def told_so_far(self) -> str:
        """What the keeper itself had to say before the program was up; given once."""
        said, self._own = self.tail, b""
        return said

    def has_begun(self, request: str) -> bool:  # noqa: ARG002
        """Nobody can tell, so it has."""
        return True

    def sent(self) -> int:
        """Unknown."""
        return -1

    def take_rest(self) -> list[Piece]:
        """As for every kernel; what the pipes hold goes the way of everything that was in them."""
        self.catch_up()
        report = crash_report(self.tail)
        return [Piece(kind=PieceKind.STDERR, text=report)] if report else []

    def close(self) -> None:
        """May be called twice."""
        self.pause()
        self._tell = None
        self._decoders.clear()
        super().close()

    def _take(self, reader: int, most: int) -> None:
        taken = 0
        while taken < most and reader in self._decoders:
            try:
                data = os.read(reader, _CHUNK)
            except BlockingIOError:
                return
            taken += len(data)
            text = self._decoders[reader].decode(data, final=not data)
            if text and self._tell is not None:
                self._tell(Piece(kind=_STREAMS[self._readers.index(reader)], text=text), len(data))
            if not data:
                self._forget(reader)

    def _forget(self, reader: int) -> None:
        """Nobody can print there any more; the descriptor is closed with the others."""
        del self._decoders[reader]
        if reader in self._listening:
            self._listening.discard(reader)
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(reader)
