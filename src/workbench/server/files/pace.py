"""How slow a client may be: who has a link holds a place among a few, and threads, for no longer than they use it."""

from __future__ import annotations

import time

from workbench.errors import InvalidRequest

# An average line of the slowest kind has ten times as much.
LEAST_BYTES_S = 1024
WITHIN_S = 120.0
# Whatever its pace.
LONGEST_S = 24 * 3600.0


class Pace:
    """Of one body."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._waited = 0.0
        self._bytes = 0

    def note(self, waited_s: float, count: int) -> None:
        """So many bytes came after we waited so long for the client; what we ourselves were busy does not count.

        Raises:
            InvalidRequest: that is too slow, or has taken too long.
        """
        self._waited += waited_s
        self._bytes += count
        # BARRIER: a few bytes now and then would hold a place for months; held by tests/unit/server/test_files.py.
        if self._waited >= WITHIN_S:
            if self._bytes < LEAST_BYTES_S * self._waited:
                raise InvalidRequest(
                    f"{self._bytes:,} bytes came within {self._waited:.0f} s, and {LEAST_BYTES_S:,} in a second are "
                    "the least; send it again over another line, or in pieces by PATCH"
                )
            self._waited, self._bytes = 0.0, 0
        if time.monotonic() - self._began > LONGEST_S:
            raise InvalidRequest(f"this has taken {LONGEST_S / 3600:g} hours, the most; send it in pieces by PATCH")


def longest_s(count: int) -> float:
    """In which a client takes so many bytes, if it takes them at all."""
    return WITHIN_S + count / LEAST_BYTES_S
