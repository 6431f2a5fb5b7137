"""Every store of sessions passes the contract; those on disk also with several processes at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.contract.stores import InMemory, InPostgres, InSqlite

from workbench.contracts.storage import CellPageRequest, Records
from workbench.model.ids import DEFAULT_PROJECT, SessionId
from workbench.storage.opening import open_records
from workbench.testing.storage_contract import SessionStoreContract, a_family, a_session

_OPENED = """
import asyncio, pathlib, sys
from dataclasses import replace
from workbench.model.ids import DEFAULT_PROJECT, SessionId
from workbench.storage.opening import open_records
from workbench.testing.cell_contract import a_cell
from workbench.testing.storage_contract import a_session, take_steps
async def main(names):
    records = open_records(pathlib.Path(sys.argv[1]), sys.argv[2])
    store, cells = records.sessions(DEFAULT_PROJECT), records.cells(DEFAULT_PROJECT)
    await work(store, cells, names)
    await records.aclose()
"""
_RUN = "\nasyncio.run(main(sys.argv[3:]))"
_STEPS = 'async def work(store, cells, names): await take_steps(store, SessionId("one"), 50)'
_MAKE = "async def work(store, cells, names): await store.add(a_session(names[0]))"
_LEAVE = """
async def work(store, cells, names):
    for name in names:
        print(await store.remove_unless_last(await store.get(SessionId(name))))
"""
_ASK = """
async def work(store, cells, names):
    for n in range(50):
        known = await cells.add(replace(a_cell(f"{names[0]}-{n}"), idempotency_key=f"k{n}"))
        print(known.id if known else "kept")
"""


class TestMemorySessionStore(InMemory, SessionStoreContract):
    pass


class TestSqliteSessionStore(InSqlite, SessionStoreContract):
    pass


class TestPostgresSessionStore(InPostgres, SessionStoreContract):
    pass


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """What a store is opened with."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return str(tmp_path / "new" / "workbench.db"), url


@pytest_asyncio.fixture
async def records(place: tuple[str, str]) -> AsyncIterator[Records]:
    records = open_records(Path(place[0]), place[1])
    yield records
    await records.aclose()


def started(place: tuple[str, str], work: str, *names: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _OPENED + work + _RUN, *place, *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told_by(workers: list[subprocess.Popen[str]]) -> list[list[str]]:
    told = [worker.communicate(timeout=60)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return told


async def test_of_the_replacements_of_several_processes_none_is_lost(place: tuple[str, str], records: Records) -> None:
    store = records.sessions(DEFAULT_PROJECT)
    await store.add(a_session())
    told_by([started(place, _STEPS) for _ in range(4)])
    assert (await store.get(SessionId("one"))).epoch == 201


async def test_several_processes_can_be_the_first_at_once(place: tuple[str, str], records: Records) -> None:
    told_by([started(place, _MAKE, f"s{n}") for n in range(6)])
    for n in range(6):
        assert await records.sessions(DEFAULT_PROJECT).get(SessionId(f"s{n}"))


async def test_of_families_that_several_processes_leave_at_once_one_member_each_is_the_last(
    place: tuple[str, str], records: Records
) -> None:
    store = records.sessions(DEFAULT_PROJECT)
    roots = [(await a_family(store, *(f"s{n}-{m}" for m in range(3))))[0] for n in range(20)]
    told = told_by([started(place, _LEAVE, *(f"s{n}-{m}" for n in range(20))) for m in range(3)])
    assert [sorted(of_one) for of_one in zip(*told, strict=True)] == [["False", "True", "True"]] * 20
    for root in roots:
        assert len(await store.family(root.mount)) == 1


async def test_of_requests_that_several_processes_retry_at_once_each_is_kept_once(
    place: tuple[str, str], records: Records
) -> None:
    await records.sessions(DEFAULT_PROJECT).add(a_session())
    told = told_by([started(place, _ASK, f"w{m}") for m in range(4)])
    for n, answers in enumerate(zip(*told, strict=True)):
        assert answers.count("kept") == 1
        keeper = f"w{answers.index('kept')}-{n}"
        assert [one for one in answers if one != "kept"] == [keeper] * 3
    kept = await records.cells(DEFAULT_PROJECT).list(CellPageRequest(session=SessionId("one"), limit=1000))
    assert len(kept) == 50
