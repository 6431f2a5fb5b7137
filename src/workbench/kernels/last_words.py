"""What a kernel's process said outside of the protocol, and what it had printed but not sent when it died."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable

from workbench.contracts.engine import Process
from workbench.model.execution import Piece, PieceKind
from workbench_guest.kernel.flight_recorder import STREAMS, last_request, unsent

# What children left in the pipes; more than this is not last words but a stream.
_MOST_LEFT_BYTES = 4 * 1024 * 1024
_CHUNK = 256 * 1024
_SAID_TAIL = 400


class LastWords:
    """Owns the reading ends of the pipes and the descriptor of the shared memory."""

    def __init__(self, process: Process, readers: list[int], memory: int) -> None:
        self._process = process
        self._readers = readers
        self._memory = memory
        self._received = dict.fromkeys(STREAMS, 0)
        self.tail = ""
        for reader in readers:
            os.set_blocking(reader, False)

    def note(self, stream: str, text: str) -> None:
        """That much has come by the protocol."""
        if stream in self._received:
            self._received[stream] += len(text.encode("utf-8", "surrogatepass"))

    async def follow(self, tell: Callable[[Piece], None]) -> None:
        """Tell what the interpreter itself writes, a crash report mostly, until its streams end."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        async for chunk in self._process.output():
            text = decoder.decode(chunk.data)
            self.tail = (self.tail + text)[-_SAID_TAIL:]
            if text:
                tell(Piece(kind=PieceKind.STDERR, text=text))

    def begun(self) -> str:
        """The request that was begun last."""
        return last_request(self._memory)

    def take_rest(self) -> list[Piece]:
        """Once the process is dead: what it printed and did not send, then what its pipes still hold."""
        pieces = []
        for stream, reader in zip(STREAMS, self._readers, strict=True):
            data = unsent(self._memory, stream, self._received[stream]) + _left_in(reader)
            if data:
                pieces.append(Piece(kind=PieceKind(stream), text=data.decode("utf-8", "replace")))
        return pieces

    def close(self) -> None:
        """May be called twice."""
        for descriptor in (*self._readers, *filter(None, (self._memory,))):
            os.close(descriptor)
        self._readers, self._memory = [], 0


def _left_in(reader: int) -> bytes:
    left = b""
    while len(left) < _MOST_LEFT_BYTES:
        try:
            data = os.read(reader, _CHUNK)
        except BlockingIOError:
            return left
        if not data:
            return left
        left += data
    return left
