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
        self._stream = "stdout"
        self._texts: list[str] = []
        self._size = 0
        self._kept: list[str] | None = None
        self._kept_size = 0
        self._some = threading.Event()
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in STREAMS]
        without_interrupts(threading.Thread(target=self._send_soon, name="printed", daemon=True).start)

    def write(self, data: bytes, kind: int) -> None:
        """`kind` is 0 for stdout; R calls this."""
        if os.getpid() != self._owner:
            os.write(1 + bool(kind), data)
            return
        with self._lock:
            text = self._decoders[bool(kind)].decode(data)
            if self._kept is not None and not kind:
                self._keep(text)
            else:
                self.say(STREAMS[bool(kind)], text)

    def _keep(self, text: str) -> None:
        assert self._kept is not None
        self._kept.append(text)
        self._kept_size += len(text)
        if self._kept_size > _MOST_KEPT:
            self.say("stdout", self.release())

    def say(self, stream: str, text: str) -> None:
        """Add to a stream."""
        with self._lock:
            if stream != self._stream:
                self.flush()
                self._stream = stream
            self._texts.append(text)
            self._size += len(text)
            if self._size >= _PIECE:
                self.flush()
            elif not self._some.is_set():
                self._some.set()

    def keep(self) -> None:
        """Hold stdout back from now on: it may be the text of a value."""
        with self._lock:
            self._kept, self._kept_size = [], 0

    def release(self) -> str:
        """What was held back; nothing is any more."""
        with self._lock:
            kept, self._kept = self._kept or [], None
            return "".join(kept)

    def flush(self) -> None:
        """All of it, now."""
        with self._lock:
            text = "".join(self._texts)
            self._texts, self._size = [], 0
            self._some.clear()
            for start in range(0, len(text), _PIECE):
                self._tell(self._stream, text[start : start + _PIECE])

    def _send_soon(self) -> None:
        pause = threading.Event()
        while True:
            self._some.wait()
            pause.wait(_PATIENCE_S)
            self.flush()
