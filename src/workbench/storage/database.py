"""What the SQL of the records stands on, so that it is written once: a connection and who lends it, and no more.

Statements are in the part of SQL that SQLite and PostgreSQL share, with `?` for values. A piece of work is a plain
function over a connection. It runs in a thread, so that a whole step costs one change of threads and the loop never
waits for a disk.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from workbench.errors import InvalidRequest
from workbench.model.ids import MountId

Value = str | int | float | None
Row = tuple[Any, ...]
T = TypeVar("T")

# Writers hold a record for milliseconds; whoever waits this long has met a stuck process or a dead disk.
BUSY_S = 20.0


class Refused(Exception):
    """A rule of the tables forbids it: the name is taken."""


class Orphaned(Refused):
    """Or what it belongs to is not there."""


class Connection(Protocol):
    """One to a database. A statement outside of `together` is a step of its own."""

    def change(self, sql: str, *values: Value) -> int:
        """How many rows it changed. Raises: Refused."""
        ...

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """All that it gives; it may change them as well, with RETURNING. Raises: Refused."""
        ...

    def rows_held(self, sql: str, *values: Value) -> list[Row]:
        """Rows of a SELECT that nobody else changes before the end of this `together`."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """What is done within is one step."""
        ...

    def durable(self) -> AbstractContextManager[None]:
        """A step within it survives a crash of the machine. Around `together`, never inside."""
        ...

    def hold(self, family: MountId) -> None:
        """Nobody else who does so comes between, until the end of this `together`."""
        ...

    def scrub(self, *tables: str) -> None:
        """Nothing that was deleted from these is left behind in what the store wrote."""
        ...


class Database(Protocol):
    """Who lends connections; opened at the first use."""

    async def do(self, work: Callable[[Connection], T]) -> T:
        """Have it done, in a thread.

        Raises:
            StoreUnavailable: the database cannot be used.
            InvalidRequest: a value is of a kind that it cannot keep.
        """
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...


class Threads:
    """Some threads of a store's own: the loop's are shared with work that takes long."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """In one of them."""
        return await asyncio.get_running_loop().run_in_executor(self._opened(), work)

    def _opened(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="records")
            return self._pool

    async def aclose(self, last: Callable[[], None]) -> None:
        """End them with what they still have to do, and then do this; nothing happens if none was ever needed."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)
            await asyncio.to_thread(last)


def check_keepable(values: tuple[Value, ...]) -> None:
    """PostgreSQL keeps no NUL in texts, and what one store takes the other takes too.

    Raises:
        InvalidRequest: there is one.
    """
    for value in values:
        if isinstance(value, str) and "\0" in value:
            raise InvalidRequest("a text with a NUL character cannot be kept; leave it out")


def cannot_be_kept(problem: Exception) -> InvalidRequest:
    """For a value that a database does not take."""
    return InvalidRequest(f"a value cannot be kept: {str(problem).splitlines()[0]}")
