"""Records in a database of PostgreSQL, which any number of servers use at once. Imported when a URL asks for it."""

from __future__ import annotations

import contextlib
import functools
import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict

from workbench.errors import InvalidSetting, StoreUnavailable
from workbench.model.ids import MountId
from workbench.storage.database import (
    BUSY_S,
    Connection,
    Orphaned,
    Refused,
    Row,
    Threads,
    Value,
    cannot_be_kept,
    check_keepable,
)
from workbench.storage.schema import migrate_postgres

CONNECTIONS = 8
_CONNECT_S = 10
# Deadlocks between a step and the clearing of old records are found and undone by the server; again is the answer.
_TRIES = 5
_PAUSE_S = 0.02
_LIMITS = f"SET lock_timeout = '{BUSY_S:.0f}s'; SET statement_timeout = '120s'"
# The whole of a table is looked through.
_SCRUB_S = 3600

T = TypeVar("T")


class PostgresDatabase:
    """A Database on a server. Connections are opened at the first use, and lent to one thread each."""

    def __init__(self, url: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # Without its reason, which repeats the URL with the password in it.
            raise InvalidSetting(
                "WORKBENCH_DATABASE_URL cannot be read; write it as postgresql://user:password@host:5432/database"
            ) from None
        self._url = url
        self._where = f"{parts.get('host') or 'localhost'}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"
        self._threads = Threads(CONNECTIONS)
        self._opening = threading.Lock()
        self._pool: psycopg_pool.ConnectionPool | None = None

    async def do(self, work: Callable[[Connection], T]) -> T:
        """As the contract has it."""
        return await self._threads.run(lambda: self._done(work))

    def _done(self, work: Callable[[Connection], T]) -> T:
        with _own_errors(self._where):
            pool = self._opened()
            for tries in range(1, _TRIES):
                with contextlib.suppress(psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                    return _lent(pool, work)
                # Whoever was in the way goes first.
                time.sleep(_PAUSE_S * tries)
            return _lent(pool, work)

    def _opened(self) -> psycopg_pool.ConnectionPool:
        with self._opening:
            if self._pool is None:
                # By itself first: a pool tries for minutes, and says of every reason that there was no connection.
                with psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_S) as first:
                    _limit(first)
                    migrate_postgres(first)
                self._pool = psycopg_pool.ConnectionPool(
                    self._url,
                    kwargs={"autocommit": True, "connect_timeout": _CONNECT_S},
                    min_size=1,
                    max_size=CONNECTIONS,
                    timeout=BUSY_S,
                    configure=_limit,
                    # One that broke while nobody used it, as when the server was started anew, is replaced unseen.
                    check=_check,
                    open=True,
                )
            return self._pool

    async def aclose(self) -> None:
        """As the contract has it."""
        await self._threads.aclose(self._close)

    def _close(self) -> None:
        with self._opening:
            if self._pool is not None:
                self._pool.close(timeout=_CONNECT_S)
            self._pool = None


class PostgresConnection:
    """A Connection to a server."""

    def __init__(self, raw: psycopg.Connection) -> None:
        self._raw = raw

    def change(self, sql: str, *values: Value) -> int:
        """As the contract has it."""
        return self._executed(sql, values).rowcount

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """As the contract has it."""
        return self._executed(sql, values).fetchall()

    def rows_held(self, sql: str, *values: Value) -> list[Row]:
        """As the contract has it."""
        return self.rows(f"{sql} FOR UPDATE", *values)

    def _executed(self, sql: str, values: tuple[Value, ...]) -> psycopg.Cursor[Row]:
        check_keepable(values)
        try:
            return self._raw.execute(_in_their_words(sql), values)
        except psycopg.errors.ForeignKeyViolation as problem:
            raise Orphaned from problem
        except psycopg.IntegrityError as problem:
            raise Refused from problem

    def together(self) -> contextlib.AbstractContextManager[None]:
        """As the contract has it."""
        return self._together()

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        with self._raw.transaction():
            yield

    @contextlib.contextmanager
    def durable(self) -> Iterator[None]:
        """As the contract has it; here every step is, unless who runs the server chose otherwise."""
        yield

    def hold(self, family: MountId) -> None:
        """As the contract has it."""
        self._raw.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (family,))

    def scrub(self, *tables: str) -> None:
        """As the contract has it, for the tables; the server's own logs and copies follow its own settings."""
        self._raw.execute(f"SET statement_timeout = '{_SCRUB_S}s'".encode())
        try:
            for table in tables:
                self._raw.execute(f"VACUUM {table}".encode())
        finally:
            _limit(self._raw)


@functools.lru_cache(maxsize=256)
def _in_their_words(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _lent(pool: psycopg_pool.ConnectionPool, work: Callable[[Connection], T]) -> T:
    with pool.connection() as raw:
        return work(PostgresConnection(raw))


def _check(connection: psycopg.Connection) -> None:
    """Raises what is wrong with one that nobody used for a while."""
    # A server that ended it has sent so; asking each time would double what a call costs.
    heard = select.poll()
    heard.register(connection.fileno(), select.POLLIN)
    if heard.poll(0):
        psycopg_pool.ConnectionPool.check_connection(connection)


def _limit(connection: psycopg.Connection) -> None:
    connection.execute(_LIMITS.encode())


@contextlib.contextmanager
def _own_errors(where: str) -> Iterator[None]:
    try:
        yield
    except (psycopg.DataError, UnicodeEncodeError, OverflowError) as problem:
        raise cannot_be_kept(problem) from problem
    except psycopg.Error as problem:
        reason = problem.diag.message_primary or str(problem).strip()
        raise StoreUnavailable(
            f"the records in PostgreSQL at {where} cannot be used: {reason}; see that the server runs, and that "
            "WORKBENCH_DATABASE_URL is right",
            {"database": where},
        ) from problem
