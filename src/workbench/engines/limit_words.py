"""Which limit a failed process met, by what it said last: some caps leave no other trace than the C library's words."""

from __future__ import annotations

import re

from workbench.model.process import Limit

# A traceback's last lines and then some; the message comes at the very end.
TAIL_BYTES = 4096

_WORDS: dict[Limit, re.Pattern[bytes]] = {
    Limit.MEMORY: re.compile(rb"Cannot allocate memory|MemoryError|std::bad_alloc"),
    # EAGAIN alone may be about a socket; it is about processes only near the name of a call that makes one.
    Limit.PROCESSES: re.compile(
        rb"(?:fork|clone|spawn|pthread_create)[^\n]*(?:\n[^\n]*){0,3}Resource temporarily unavailable"
        rb"|Cannot fork|can't start new thread"
    ),
    Limit.DISK: re.compile(rb"No space left on device"),
    Limit.OPEN_FILES: re.compile(rb"Too many open files"),
}


def limits_named(tail: bytes) -> tuple[Limit, ...]:
    """The limits that the last words of a failed process name."""
    return tuple(limit for limit, words in _WORDS.items() if words.search(tail))
