"""What runs with every call goes by an index: a long history costs no more than a short one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from workbench.storage import cell_rows, key_rows, records, session_rows
from workbench.storage.schema import migrate_sqlite

_PER_CALL = {
    "use": session_rows._USE,
    "get": session_rows._GET,
    "list": session_rows._LIST,
    "list of a user": session_rows._LIST_OF_USER,
    "family": session_rows._FAMILY,
    "replace": session_rows._REPLACE,
    "take along": session_rows._TAKE_ALONG,
    "remove": session_rows._REMOVE_UNLESS_LAST,
    "add a cell": cell_rows._ADD,
    "get a cell": cell_rows._GET,
    "by idempotency key": cell_rows._WITH_IDEMPOTENCY_KEY,
    "finish": cell_rows._FINISH,
    "history": f"{cell_rows._SELECT} AND (created_at, id) > (?, ?) {cell_rows._OLDEST_FIRST}",
    "history backwards": f"{cell_rows._SELECT} AND (created_at, id) < (?, ?) {cell_rows._NEWEST_FIRST}",
    "pending in a sandbox": cell_rows._PENDING_IN,
    "left over": records._LEFT_OVER,
    "latest step": cell_rows._LATEST_STEP,
    "last end": cell_rows._LAST_END,
    "pending": records._PENDING_AFTER,
    "old cells": "SELECT session, id FROM cells WHERE ended_at <> '' AND ended_at < ? LIMIT ?",
    "key": key_rows._GET_KEY,
    "audit": f"{key_rows._LIST_AUDIT} AND at < ? ORDER BY at DESC, number DESC LIMIT ?",
}


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize("sql", _PER_CALL.values(), ids=_PER_CALL.keys())
def test_a_query_of_every_call_looks_through_no_table_and_sorts_nothing(
    connection: sqlite3.Connection, sql: str
) -> None:
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("",) * sql.count("?"))]
    bad = [step for step in plan if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]
    assert bad + [step for step in plan if "TEMP B-TREE" in step] == [], plan


def test_what_goes_with_a_session_is_found_by_an_index(connection: sqlite3.Connection) -> None:
    for table in ("cells", "keys"):
        (step,) = connection.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE session = ?", ("",))
        assert step[3].startswith("SEARCH"), step
