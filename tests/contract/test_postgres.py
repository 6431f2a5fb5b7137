"""What only a database server can get wrong: its tables, its restarts, and steps that get into each other's way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from tests.postgres import PostgresServer, running_postgres

from workbench.contracts.storage import CellPageRequest, Records
from workbench.errors import InvalidRequest, StoreUnavailable
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.ids import DEFAULT_PROJECT, CellId, SessionId
from workbench.storage.database import Connection
from workbench.storage.opening import open_records
from workbench.storage.postgres import PostgresDatabase
from workbench.storage.schema import MIGRATIONS, migrate_postgres
from workbench.testing.cell_contract import a_cell, a_result
from workbench.testing.storage_contract import LATE, a_session


@pytest_asyncio.fixture
async def records(postgres_url: str) -> AsyncIterator[Records]:
    records = open_records(Path("/nowhere"), postgres_url)
    yield records
    await records.aclose()


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def _tables(connection: psycopg.Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_steps_are_taken_from_where_a_database_is_and_once(connection: psycopg.Connection) -> None:
    migrate_postgres(connection, MIGRATIONS[:1])
    later = (*MIGRATIONS, "CREATE TABLE more (a TEXT); CREATE TABLE even_more (b TEXT)")
    for _ in range(2):
        migrate_postgres(connection, later)
    assert {"sessions", "cells", "keys", "audit", "more", "even_more"} <= _tables(connection)
    assert connection.execute("SELECT version FROM workbench_version").fetchall() == [(len(later),)]


async def test_records_of_before_there_were_configurations_keep_whether_they_have_tools(
    records: Records, connection: psycopg.Connection
) -> None:
    migrate_postgres(connection, MIGRATIONS[:5])
    for name, tools in (("with", 1), ("without", 0)):
        connection.execute(
            'INSERT INTO sessions (id, "user", tier, env, start_up, working_folder, created_at, used_at, sandbox,'
            " begun, epoch, last_loss, ending, mount, tool_execution)"
            " VALUES (%s, 'local', 'large', '{}', '', '/home/user', 't1', 't2', 'sb-1', 1, 7, '', 0, %s, %s)",
            (name, name, tools),
        )
    store = records.sessions(DEFAULT_PROJECT)
    assert (await store.get(SessionId("with"))).spec.config == SessionConfig()
    without = await store.get(SessionId("without"))
    assert without.spec.config == SessionConfig(sandbox=SandboxSwitches(tool_execution=False))


def test_a_step_that_fails_leaves_the_database_as_it_was(connection: psycopg.Connection) -> None:
    migrate_postgres(connection)
    with pytest.raises(psycopg.errors.SyntaxError):
        migrate_postgres(connection, (*MIGRATIONS, "CREATE TABLE more (a TEXT); NONSENSE"))
    assert "more" not in _tables(connection)
    assert connection.execute("SELECT version FROM workbench_version").fetchall() == [(len(MIGRATIONS),)]


async def test_a_database_of_a_newer_version_is_refused(records: Records, connection: psycopg.Connection) -> None:
    migrate_postgres(connection)
    connection.execute("UPDATE workbench_version SET version = 99")
    with pytest.raises(StoreUnavailable, match=r"version 99 and this program knows [0-9]+: upgrade"):
        await records.check()


def test_texts_are_compared_by_their_bytes(connection: psycopg.Connection) -> None:
    migrate_postgres(connection)
    columns = connection.execute(
        "SELECT table_name, column_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND data_type = 'text'"
    ).fetchall()
    assert len(columns) > 30
    assert [column for column in columns if column[2] != "C"] == []


async def test_what_waits_for_each_other_is_tried_again(postgres_url: str, connection: psycopg.Connection) -> None:
    """Two steps that lock two rows crosswise: the server ends one of them, and both are done in the end."""
    database = PostgresDatabase(postgres_url)
    migrate_postgres(connection)
    connection.execute("CREATE TABLE crossed (id TEXT PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO crossed VALUES ('a', 0), ('b', 0)")
    met = threading.Barrier(2)
    tries: list[str] = []

    def step(names: str) -> Callable[[Connection], None]:
        def work(open_: Connection) -> None:
            tries.append(names)
            with open_.together():
                open_.change("UPDATE crossed SET n = n + 1 WHERE id = ?", names[0])
                if len(tries) <= 2:
                    met.wait(30)
                open_.change("UPDATE crossed SET n = n + 1 WHERE id = ?", names[1])

        return work

    await asyncio.gather(database.do(step("ab")), database.do(step("ba")))
    assert connection.execute("SELECT n FROM crossed").fetchall() == [(2,), (2,)]
    assert len(tries) > 2
    await database.aclose()


async def test_connections_that_broke_while_nobody_used_them_are_not_noticed(
    records: Records, postgres: PostgresServer, postgres_url: str
) -> None:
    store = records.sessions(DEFAULT_PROJECT)
    await store.add(a_session())
    name = postgres_url.partition("@/")[2].partition("?")[0]
    for _ in range(3):
        postgres.tell(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'")
        assert await store.get(SessionId("one"))


async def test_a_server_that_is_started_anew_has_everything(tmp_path: Path) -> None:
    with running_postgres() as server:
        records = open_records(tmp_path / "none", server.url())
        await records.sessions(DEFAULT_PROJECT).add(a_session())
        server.restart()
        assert await records.sessions(DEFAULT_PROJECT).use(SessionId("one"), LATE)
        await records.aclose()


async def test_a_text_that_cannot_be_kept_is_the_callers_matter(records: Records) -> None:
    for user in ("with a \0", "with a \ud800"):
        with pytest.raises(InvalidRequest, match="cannot be kept"):
            await records.sessions(DEFAULT_PROJECT).add(a_session(user=user))
    await records.sessions(DEFAULT_PROJECT).add(a_session())


async def test_what_is_forgotten_leaves_no_rows_behind(records: Records, connection: psycopg.Connection) -> None:
    cells = records.cells(DEFAULT_PROJECT)
    await records.sessions(DEFAULT_PROJECT).add(a_session(user="alice"))
    for n in range(20):
        await cells.add(a_cell(f"c-{n}"))
        await cells.finish(SessionId("one"), CellId(f"c-{n}"), LATE, a_result(f"c-{n}"))
    await records.sessions(DEFAULT_PROJECT).remove(a_session())
    await records.house.forget_user(DEFAULT_PROJECT, "alice")
    assert await cells.list(CellPageRequest(session=SessionId("one"))) == ()
    for table in ("sessions", "cells", "keys", "audit"):
        size = connection.execute(f"SELECT pg_relation_size('{table}')".encode()).fetchone()
        assert size == (0,), f"{table} still has pages with what was deleted"


async def test_calls_at_once_share_a_few_connections(records: Records, connection: psycopg.Connection) -> None:
    store = records.sessions(DEFAULT_PROJECT)
    await store.add(a_session())
    await asyncio.gather(*(store.use(SessionId("one"), LATE) for _ in range(200)))
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    (count,) = connection.execute(query).fetchone() or (0,)
    assert 1 <= count <= 8
