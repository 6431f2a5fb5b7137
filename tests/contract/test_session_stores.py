"""Both session stores pass the contract; the one on disk also with several processes at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workbench.model.ids import SessionId
from workbench.storage.memory import MemorySessionStore
from workbench.storage.sqlite import SqliteSessionStore
from workbench.testing.storage_contract import OpenStore, SessionStoreContract, a_family, a_session

_WORKER = """
import asyncio, pathlib, sys
from workbench.model.ids import SessionId
from workbench.storage.sqlite import SqliteSessionStore
from workbench.testing.storage_contract import take_steps
store = SqliteSessionStore(pathlib.Path(sys.argv[1]))
asyncio.run(take_steps(store, SessionId("one"), 50))
"""
_MAKER = """
import asyncio, pathlib, sys
from workbench.storage.sqlite import SqliteSessionStore
from workbench.testing.storage_contract import a_session
asyncio.run(SqliteSessionStore(pathlib.Path(sys.argv[1])).add(a_session(sys.argv[2])))
"""
_LEAVER = """
import asyncio, pathlib, sys
from workbench.model.ids import SessionId
from workbench.storage.sqlite import SqliteSessionStore
async def leave():
    store = SqliteSessionStore(pathlib.Path(sys.argv[1]))
    for name in sys.argv[2:]:
        print(await store.remove_unless_last(await store.get(SessionId(name))))
asyncio.run(leave())
"""


class TestMemorySessionStore(SessionStoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemorySessionStore()
        return lambda: store


class TestSqliteSessionStore(SessionStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: SqliteSessionStore(tmp_path / "data" / "workbench.db")

    async def test_of_the_replacements_of_several_processes_none_is_lost(self, tmp_path: Path) -> None:
        path = tmp_path / "workbench.db"
        store = SqliteSessionStore(path)
        await store.add(a_session())
        workers = [subprocess.Popen([sys.executable, "-c", _WORKER, str(path)]) for _ in range(4)]
        assert [worker.wait(60) for worker in workers] == [0] * 4
        assert (await store.get(SessionId("one"))).epoch == 201
        await store.aclose()

    async def test_several_processes_can_be_the_first_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "workbench.db"
        makers = [subprocess.Popen([sys.executable, "-c", _MAKER, str(path), f"s{n}"]) for n in range(6)]
        assert [maker.wait(60) for maker in makers] == [0] * 6
        store = SqliteSessionStore(path)
        for n in range(6):
            assert await store.get(SessionId(f"s{n}"))
        await store.aclose()

    async def test_of_families_that_several_processes_leave_at_once_one_member_each_is_the_last(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "workbench.db"
        store = SqliteSessionStore(path)
        roots = [(await a_family(store, *(f"s{n}-{m}" for m in range(3))))[0] for n in range(20)]
        command = [sys.executable, "-c", _LEAVER, str(path)]
        leavers = [
            subprocess.Popen([*command, *(f"s{n}-{m}" for n in range(20))], stdout=subprocess.PIPE, text=True)
            for m in range(3)
        ]
        told = [leaver.communicate(timeout=60)[0].split() for leaver in leavers]
        assert [sorted(of_one) for of_one in zip(*told, strict=True)] == [["False", "True", "True"]] * 20
        for root in roots:
            assert len(await store.family(root.mount)) == 1
        await store.aclose()
