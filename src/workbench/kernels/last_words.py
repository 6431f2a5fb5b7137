"""What a kernel's process said outside of the protocol, and what it had printed but not sent when it died."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from workbench.contracts.engine import Process
from workbench.model.execution import Piece, PieceKind
from workbench_guest.kernel.flight_recorder import STREAMS, last_request, sent, unrecorded, unsent

# What children left in the pipes; more than this is not last words but a stream.
_MOST_LEFT_BYTES = 4 * 1024 * 1024
_CHUNK = 256 * 1024
_MOST_OWN_BYTES = 64 * 1024
_FRAME = re.compile(r'  File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.*)')
# Where cells are compiled as if they were files; what lies above the first of them is the kernel's own.
_CELL = re.compile(r".*/ipykernel_\d+/\d+\.py")


class LastWords:
    """Owns the reading ends of the pipes and the descriptor of the shared memory."""

    quiet_s = 0.03
    """what a dead kernel sent has come when nothing has come for this long"""

    def __init__(self, process: Process, readers: list[int], memory: int) -> None:
        self._process = process
        self._readers = readers
        self._memory = memory
        self._received = dict.fromkeys(STREAMS, 0)
        self._own = b""
        for reader in readers:
            os.set_blocking(reader, False)

    def note(self, stream: str, text: str) -> None:
        """That much has come by the protocol."""
        if stream in self._received:
            self._received[stream] += len(text.encode("utf-8", "surrogatepass"))

    async def follow(self) -> None:
        """Keep what the interpreter itself writes, which is a crash report or nothing, until its streams end."""
        async for chunk in self._process.output():
            self._own = (self._own + chunk.data)[-_MOST_OWN_BYTES:]

    @property
    def tail(self) -> str:
        """What the interpreter itself wrote last."""
        return self._own.decode("utf-8", "replace")

    def has_begun(self, request: str) -> bool:
        """Whether it is the request that was begun last."""
        return last_request(self._memory) == request

    def listen(self, tell: Callable[[Piece, int], None]) -> None:
        """Nothing: the kernel reads its pipes itself, and tells by the protocol."""

    def pause(self) -> None:
        """Nothing."""

    def resume(self) -> None:
        """Nothing."""

    def catch_up(self) -> None:
        """Nothing."""

    def sent(self) -> int:
        """How many messages it handed over to be sent; its own word."""
        return sent(self._memory)

    def take_rest(self) -> list[Piece]:
        """Once the process is dead: what it printed and did not send, then what its pipes still hold."""
        pieces = []
        for stream, reader in zip(STREAMS, self._readers, strict=True):
            data = unsent(self._memory, stream, self._received[stream])
            data += unrecorded(self._memory, stream) + _left_in(reader)
            if data:
                pieces.append(Piece(kind=PieceKind(stream), text=data.decode("utf-8", "replace")))
        if report := crash_report(self.tail):
            pieces.append(Piece(kind=PieceKind.STDERR, text=report))
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


def crash_report(said: str) -> str:
    """The interpreter's own report of a crash, down to the agent's first line: below that are only our frames."""
    kept: list[str] = []
    lines = said.splitlines()
    last_of_cell = max((place for place, line in enumerate(lines) if _is_of_a_cell(line)), default=-1)
    for place, line in enumerate(lines):
        if line.startswith("Extension modules:") or (_FRAME.fullmatch(line) and place > last_of_cell):
            continue
        kept.append(_FRAME.sub(r"  File <cell>, line \g<line> in \g<function>", line) if _is_of_a_cell(line) else line)
    return "\n".join(kept).strip() + "\n" if "".join(kept).strip() else ""


def _is_of_a_cell(line: str) -> bool:
    frame = _FRAME.fullmatch(line)
    return frame is not None and _CELL.fullmatch(frame["file"]) is not None
