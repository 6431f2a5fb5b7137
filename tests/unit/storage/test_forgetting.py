"""Of a user who is forgotten no byte is left in the files, wherever SQLite had moved it to."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.contracts.storage import Records
from workbench.errors import StoreUnavailable
from workbench.model.execution import Text
from workbench.model.ids import DEFAULT_PROJECT
from workbench.model.session import Session
from workbench.storage import sqlite
from workbench.storage.opening import open_records
from workbench.testing.cell_contract import a_cell, a_result
from workbench.testing.connection_contract import a_link, an_account
from workbench.testing.key_contract import an_entry
from workbench.testing.storage_contract import LATE, a_session

_SECRETS = {"alice": "ALICE-SECRET", "bob": "BOB-SECRET"}
# With this one rows were moved so that a copy stays behind in a page, unless the whole file is written anew.
_SEED = 5


async def _work(records: Records, session: Session, chance: random.Random) -> None:
    """A cell and a note of its user's."""
    secret, cells = _SECRETS[session.spec.user], records.cells(DEFAULT_PROJECT)
    cell = replace(a_cell("c-1", session.spec.id), code=secret * chance.choice([1, 10, 80, 2000]))
    await cells.add(replace(cell, idempotency_key=secret))
    result = replace(a_result(), stdout=Text(text=secret * chance.choice([1, 10, 100, 3000])))
    await cells.finish(session.spec.id, cell.id, LATE, result)
    await _connect(records, session, chance)
    await records.audit.add(replace(an_entry(), user=session.spec.user, session=session.spec.id, detail=secret))


async def _connect(records: Records, session: Session, chance: random.Random) -> None:
    """An account of its user's, with a link to it; some change, and some go."""
    secret, store, name = _SECRETS[session.spec.user], records.connections, f"ca_{session.spec.id}"
    account = replace(an_account(name, session.spec.user), label=secret * chance.choice([1, 30, 500]))
    await store.add(account, secret.encode())
    await store.add_link(replace(a_link(secret + name, name), user=session.spec.user, callback_url=secret))
    seen = await store.get(DEFAULT_PROJECT, account.id)
    assert await store.replace(seen, replace(account, status_reason=secret * chance.choice([1, 200])), b"")
    if chance.random() < 0.3:
        await store.remove(DEFAULT_PROJECT, account.id)


async def _come_and_go(records: Records, chance: random.Random) -> list[Session]:
    """Sessions of two users, whose rows grow and move; those that are left."""
    store, left = records.sessions(DEFAULT_PROJECT), list[Session]()
    for n in range(400):
        if chance.random() < 0.4 or not left:
            new = a_session(f"s{n}", chance.choice(["alice", "bob"]))
            secret = _SECRETS[new.spec.user] * chance.choice([1, 5, 50, 400])
            left.append(replace(new, spec=replace(new.spec, env={"KEY": secret})))
            await store.add(left[-1])
            if n % 5 == 0:
                await _work(records, left[-1], chance)
            continue
        seen = left.pop(chance.randrange(len(left)))
        if chance.random() < 0.3:
            await store.remove(seen)
            continue
        left.append(replace(seen, last_loss=_SECRETS[seen.spec.user] * chance.choice([1, 20, 200])))
        assert await store.replace(seen, left[-1])
    return left


async def test_nothing_of_them_is_left_in_any_file(tmp_path: Path) -> None:
    records = open_records(tmp_path / "workbench.db")
    for session in await _come_and_go(records, random.Random(_SEED)):
        if session.spec.user == "alice":
            await records.sessions(DEFAULT_PROJECT).remove(session)
    await records.house.forget_user(DEFAULT_PROJECT, "alice")
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"workbench.db", "workbench.db-wal"} <= written.keys()
    assert [name for name, content in written.items() if b"ALICE-SECRET" in content or b"alice" in content] == []
    assert b"BOB-SECRET" in written["workbench.db"]
    await records.aclose()


async def test_a_log_that_somebody_reads_is_named_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "workbench.db"
    monkeypatch.setattr(sqlite, "BUSY_S", 0.2)
    records = open_records(path)
    await records.sessions(DEFAULT_PROJECT).add(a_session(user="alice"))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sessions").fetchone()
    await records.audit.add(an_entry())
    with pytest.raises(StoreUnavailable, match="another process reads them; do it again"):
        await records.house.forget_user(DEFAULT_PROJECT, "alice")
    reader.close()
    await records.house.forget_user(DEFAULT_PROJECT, "alice")
    assert (tmp_path / "workbench.db-wal").stat().st_size == 0
    await records.aclose()
