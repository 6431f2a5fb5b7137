"""The records' file: who may read it, what becomes of old, new and damaged ones."""

from __future__ import annotations

import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.contracts.storage import CellPageRequest, PageRequest
from workbench.errors import InvalidRequest, StoreUnavailable
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.ids import DEFAULT_PROJECT, CellId, SessionId
from workbench.model.records import CellStatus
from workbench.model.session import IdleLimits
from workbench.storage.opening import open_records
from workbench.storage.schema import MIGRATIONS, migrate_sqlite
from workbench.testing.cell_contract import a_cell, a_result
from workbench.testing.storage_contract import LATE, a_session


async def test_only_the_owner_can_read_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "data" / "workbench.db"
    records = open_records(path)
    store = records.sessions(DEFAULT_PROJECT)
    await store.add(a_session())
    found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert found["workbench.db"] == 0o600
    assert "workbench.db-wal" in found
    assert set(found.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await records.aclose()


async def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    path.touch(mode=0o644)
    records = open_records(path)
    store = records.sessions(DEFAULT_PROJECT)
    await store.add(a_session())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await records.aclose()


async def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnavailable, match=r"version 99 and this program knows [0-9]+: upgrade"):
        await open_records(path).check()


async def test_a_damaged_file_is_named_with_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    path.write_bytes(b"this is no database, although it is long enough to be one" * 100)
    records = open_records(path)
    with pytest.raises(StoreUnavailable, match="move it away or restore") as raised:
        await records.check()
    assert raised.value.context == {"file": str(path)}
    await records.aclose()


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"Not a directory|exists"):
        await open_records(tmp_path / "file" / "workbench.db").check()


def test_steps_are_taken_from_where_a_file_is_and_once() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    later = (*MIGRATIONS, "CREATE TABLE more (a TEXT); CREATE TABLE even_more (b TEXT)")
    for _ in range(2):
        migrate_sqlite(connection, later)
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"sessions", "more", "even_more"} <= names
    assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    connection.close()


def test_a_step_that_fails_leaves_the_file_as_it_was() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate_sqlite(connection, (*MIGRATIONS, "CREATE TABLE more (a TEXT); NONSENSE"))
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "more" not in names
    connection.close()


async def test_records_of_before_there_were_branches_are_families_of_one(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate_sqlite(connection, MIGRATIONS[:1])
    connection.execute(
        "INSERT INTO sessions VALUES ('old', 'local', 'large', '{\"A\": \"b\"}', 'x = 1', '/home/user', 't1', 't2',"
        " 'sb-1', 1, 7, 'a loss', 0)"
    )
    connection.close()
    records = open_records(path)
    store = records.sessions(DEFAULT_PROJECT)
    old = await store.get(SessionId("old"))
    assert (old.mount, old.principal, old.parent, old.kernel) == ("old", "old", None, "main")
    assert (old.spec.snapshots, old.unfinished, old.begun, old.epoch, old.last_loss) == (True, False, True, 7, "a loss")
    assert (old.spec.tier.name, old.spec.env, old.created_at, old.used_at) == ("large", {"A": "b"}, "t1", "t2")
    assert await store.family(old.mount) == (old,)
    await records.aclose()


async def test_records_of_before_there_were_projects_are_kept_in_the_default_one(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate_sqlite(connection, MIGRATIONS[:2])
    connection.execute(
        "INSERT INTO sessions VALUES ('old', 'alice', 'large', '{}', '', '/home/user', 't1', 't2', 'sb-1', 1, 7, '', 0,"
        " 'm', 'p', '', 'main', 1, 0)"
    )
    connection.close()
    records = open_records(path)
    old = await records.sessions(DEFAULT_PROJECT).get(SessionId("old"))
    assert (old.spec.project, old.spec.idle) == (DEFAULT_PROJECT, IdleLimits())
    assert (old.spec.user, old.mount, old.principal, old.epoch, old.used_at) == ("alice", "m", "p", 7, "t2")
    assert await records.sessions(DEFAULT_PROJECT).list(PageRequest(user="alice")) == (old,)
    cells = records.cells(DEFAULT_PROJECT)
    assert await cells.add(a_cell(session="old")) is None
    assert await cells.list(CellPageRequest(session=old.spec.id)) == (a_cell(session="old"),)
    await records.aclose()


async def test_records_of_before_there_were_configurations_keep_whether_they_have_tools(tmp_path: Path) -> None:
    path = tmp_path / "workbench.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate_sqlite(connection, MIGRATIONS[:5])
    for name, tools in (("with", 1), ("without", 0)):
        connection.execute(
            'INSERT INTO sessions (id, "user", tier, env, start_up, working_folder, created_at, used_at, sandbox,'
            " begun, epoch, last_loss, ending, mount, tool_execution)"
            " VALUES (?, 'local', 'large', '{}', '', '/home/user', 't1', 't2', 'sb-1', 1, 7, '', 0, ?, ?)",
            (name, name, tools),
        )
    connection.close()
    records = open_records(path)
    store = records.sessions(DEFAULT_PROJECT)
    plain, without = await store.get(SessionId("with")), await store.get(SessionId("without"))
    assert (plain.spec.config, plain.config_version, plain.configured_at) == (SessionConfig(), 1, "")
    assert without.spec.config == SessionConfig(sandbox=SandboxSwitches(tool_execution=False))
    assert await store.replace(without, replace(without, config_version=2, configured_at="t3"))
    (kept,) = await store.past_configurations(SessionId("without"), 2, 9)
    assert (kept.version, kept.at, kept.config) == (1, "t1", without.spec.config)
    await records.aclose()


@pytest.mark.parametrize("user", ["with a \0", "with a \ud800"])
async def test_a_text_that_cannot_be_kept_is_the_callers_matter(tmp_path: Path, user: str) -> None:
    records = open_records(tmp_path / "workbench.db")
    with pytest.raises(InvalidRequest, match="cannot be kept"):
        await records.sessions(DEFAULT_PROJECT).add(a_session(user=user))
    await records.sessions(DEFAULT_PROJECT).add(a_session())
    await records.aclose()


async def test_a_row_that_cannot_be_read_is_told_and_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    """As one that an earlier version wrote, with a limit that JSON does not have."""
    path = tmp_path / "workbench.db"
    records = open_records(path)
    await records.sessions(DEFAULT_PROJECT).add(a_session())
    cells, one = records.cells(DEFAULT_PROJECT), SessionId("one")
    for name in ("c-1", "c-2", "c-3"):
        await cells.add(a_cell(name))
    await cells.finish(one, CellId("c-2"), LATE, a_result("c-2"))
    with sqlite3.connect(path) as connection:
        connection.execute("""UPDATE cells SET asked = '{"code": "x", "limit_s": null}' WHERE id = 'c-1'""")
        connection.execute("UPDATE cells SET answer = '{' WHERE id = 'c-2'")
    connection.close()
    listed = await cells.list(CellPageRequest(session=one))
    assert [(cell.id, cell.status) for cell in listed] == [
        ("c-1", CellStatus.PENDING), ("c-2", CellStatus.FAILED), ("c-3", CellStatus.PENDING)]  # fmt: skip
    assert "what was asked cannot be read any more" in listed[0].code
    assert listed[1].problem is not None
    assert "the end of cell c-2 cannot be read any more" in listed[1].problem.message
    assert [cell.id for _, cell in await records.house.pending(None, 10)] == ["c-1", "c-3"]
    # And what it said in the end is kept as that of any other.
    ended = await cells.finish(one, CellId("c-1"), LATE, a_result("c-1"))
    assert ended is not None
    assert ended.result == a_result("c-1")
    await records.aclose()
