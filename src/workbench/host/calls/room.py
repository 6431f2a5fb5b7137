"""Bytes of calls and answers in the host's memory: so many for one sandbox, and so many for all together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

# Of all sandboxes together, and what is too small to be refused because of others.
_MOST_BYTES = 256 * 1024 * 1024
_SMALL_BYTES = 64 * 1024


class AllRoom:
    """One per host."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.left = most_bytes


class Room:
    """Of one sandbox."""

    def __init__(self, of: AllRoom, most_bytes: int) -> None:
        self._of = of
        self._left = most_bytes

    @contextlib.contextmanager
    def held(self) -> Iterator[Callable[[int], bool]]:
        """A way to ask for more, which says whether there is room; all of it is given back at the end."""
        mine = shared = 0

        def more(size: int) -> bool:
            nonlocal mine, shared
            of_all = size if size > _SMALL_BYTES else 0
            if size > self._left or of_all > self._of.left:
                return False
            self._left -= size
            self._of.left -= of_all
            mine, shared = mine + size, shared + of_all
            return True

        try:
            yield more
        finally:
            self._left += mine
            self._of.left += shared
