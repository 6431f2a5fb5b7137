"""What R prints, on its way to who listens: in large pieces while much is printed, soon while little is."""

from __future__ import annotations

import codecs
import os
import threading
from collections.abc import Callable

from workbench_guest.r.wire import without_interrupts

# Pieces of a flood; a reader holds one of them in memory.
_PIECE = 256 * 1024
# What is printed waits so long for more of it.
_PATIENCE_S = 0.03
# A value's text above this is no result any more but a flood.
_MOST_KEPT = 1024 * 1024
STREAMS = ("stdout", "stderr")


class Printed:
    """Takes bytes from R, gives texts. A fork of R's prints to its own descriptors instead."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        """`tell` gets a stream and a text, in order."""
        self._tell = tell
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._kind = 0
        """of what waits: where it is in STREAMS"""
        self._pieces: list[bytes] = []
        self._size = 0
        self._kept: list[bytes] | None = None
        self._kept_size = 0
        self._some = threading.Event()
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in STREAMS]
        without_interrupts(threading.Thread(target=self._send_soon, name="printed", daemon=True).start)

    def write(self, data: bytes, _size: int, kind: int) -> None:
        """`kind` is 0 for stdout. R calls this, several times for one `cat`: everything else waits until it is sent."""
        if os.getpid() != self._owner:
            os.write(1 + kind, data)
            return
        with self._lock:
            if kind == self._kind and self._pieces and self._kept is None and self._size < _PIECE:
                self._pieces.append(data)
                self._size += len(data)
            elif self._kept is not None and not kind:
                self._keep(data)
            else:
                self._add(data, kind)

    def _add(self, data: bytes, kind: int) -> None:
        if kind != self._kind or self._size >= _PIECE:
            self.flush()
            self._kind = kind
        self._pieces.append(data)
        self._size += len(data)
        self._some.set()

    def _keep(self, data: bytes) -> None:
        assert self._kept is not None
        self._kept.append(data)
        self._kept_size += len(data)
        if self._kept_size > _MOST_KEPT:
            self.say("stdout", self.release())

    def say(self, stream: str, text: str) -> None:
        """Add to a stream."""
        with self._lock:
            self._add(text.encode("utf-8", "replace"), STREAMS.index(stream))

    def keep(self) -> None:
        """Hold stdout back from now on: it may be the text of a value."""
        with self._lock:
            self._kept, self._kept_size = [], 0

    def release(self) -> str:
        """What was held back; nothing is any more."""
        with self._lock:
            kept, self._kept = self._kept or [], None
            return b"".join(kept).decode("utf-8", "replace")

    def flush(self) -> None:
        """All of it, now."""
        with self._lock:
            text = self._decoders[self._kind].decode(b"".join(self._pieces))
            self._pieces, self._size = [], 0
            self._some.clear()
            for start in range(0, len(text), _PIECE):
                self._tell(STREAMS[self._kind], text[start : start + _PIECE])

    def _send_soon(self) -> None:
        pause = threading.Event()
        while True:
            self._some.wait()
            pause.wait(_PATIENCE_S)
            self.flush()
