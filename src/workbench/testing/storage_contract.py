"""The suite that every session store passes. For the author of the next one:

class TestMyStore(SessionStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):      # -> a callable: each call opens the same records once more
        return lambda: MyStore(tmp_path / "records")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import pytest_asyncio

from workbench.contracts.storage import PageRequest, SessionStore
from workbench.errors import Conflict, NotFound
from workbench.model.ids import SessionId, new_sandbox_id
from workbench.model.session import Session, SessionSpec
from workbench.model.tier import LARGE, MEDIUM

OpenStore = Callable[[], SessionStore]
_EARLY, _LATE = "2030-01-01T00:00:00.000000Z", "2030-01-02T00:00:00.000000Z"


def a_session(name: str = "one", user: str = "local") -> Session:
    """With something in every field."""
    spec = SessionSpec(
        id=SessionId(name),
        user=user,
        tier=MEDIUM,
        env={"NAME": "värde\n=", "EMPTY": ""},
        start_up="import os\n",
        working_folder="/mnt/files/work",
    )
    return Session(spec=spec, created_at=_EARLY, used_at=_EARLY, sandbox=new_sandbox_id(), last_loss="it's gone")


async def take_steps(store: SessionStore, name: SessionId, steps: int) -> None:
    """Raise the epoch so many times, whoever else does the same."""
    for _ in range(steps):
        while True:
            seen = await store.get(name)
            if await store.replace(seen, replace(seen, epoch=seen.epoch + 1)):
                break


class SessionStoreContract:
    """Subclass it, with the fixture above."""

    @pytest_asyncio.fixture
    async def store(self, open_store: OpenStore) -> AsyncIterator[SessionStore]:
        """One, closed after the test."""
        store = open_store()
        yield store
        await store.aclose()

    @pytest_asyncio.fixture
    async def second(self, open_store: OpenStore) -> AsyncIterator[SessionStore]:
        """The same records, opened once more."""
        store = open_store()
        yield store
        await store.aclose()

    async def test_a_record_comes_back_as_it_was_kept(self, store: SessionStore, second: SessionStore) -> None:
        """In another opening of the same records as well."""
        await store.add(a_session())
        kept = await second.get(SessionId("one"))
        assert kept == replace(a_session(), sandbox=kept.sandbox)

    async def test_a_name_can_be_taken_once(self, store: SessionStore, second: SessionStore) -> None:
        """And the first record stays."""
        first = a_session()
        await store.add(first)
        with pytest.raises(Conflict, match="already"):
            await second.add(a_session())
        assert await second.get(first.spec.id) == first

    async def test_of_many_who_want_a_name_at_once_one_gets_it(self, store: SessionStore, second: SessionStore) -> None:
        """Whatever the order."""
        wanted = [(store, second)[n % 2].add(a_session()) for n in range(8)]
        results = await asyncio.gather(*wanted, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Conflict"] * 7 + ["NoneType"]

    async def test_an_unknown_name_is_not_found(self, store: SessionStore) -> None:
        """With the next step in the message; removing it is no error."""
        for asked in (store.get(SessionId("none")), store.use(SessionId("none"), _LATE)):
            with pytest.raises(NotFound, match="sessions ls"):
                await asked
        await store.remove(SessionId("none"))

    async def test_use_is_noted_and_never_goes_back(self, store: SessionStore) -> None:
        """Clocks of several processes differ."""
        await store.add(a_session())
        assert (await store.use(SessionId("one"), _LATE)).used_at == _LATE
        assert (await store.use(SessionId("one"), _EARLY)).used_at == _LATE
        assert (await store.get(SessionId("one"))).used_at == _LATE

    async def test_a_record_is_replaced_only_if_it_is_as_seen(self, store: SessionStore, second: SessionStore) -> None:
        """Who comes second with the same view is told so."""
        seen = a_session()
        await store.add(seen)
        moved = replace(seen, sandbox=new_sandbox_id(), epoch=7, last_loss="", begun=True)
        assert await store.replace(seen, moved)
        assert not await second.replace(seen, replace(seen, epoch=8))
        assert await second.get(seen.spec.id) == moved
        assert await second.replace(moved, replace(moved, ending=True, spec=replace(moved.spec, tier=LARGE)))
        now = await store.get(seen.spec.id)
        assert (now.ending, now.spec.tier, now.spec.env) == (True, LARGE, seen.spec.env)

    async def test_use_in_between_does_not_spoil_a_replacement_and_is_kept(self, store: SessionStore) -> None:
        """It says nothing about the sandbox."""
        seen = a_session()
        await store.add(seen)
        await store.use(seen.spec.id, _LATE)
        assert await store.replace(seen, replace(seen, epoch=2))
        assert (await store.get(seen.spec.id)).used_at == _LATE

    async def test_another_session_of_the_same_name_is_not_replaced(self, store: SessionStore) -> None:
        """What was seen was deleted and made anew."""
        seen = a_session()
        await store.add(seen)
        await store.remove(seen.spec.id)
        assert not await store.replace(seen, replace(seen, epoch=2))
        await store.add(replace(seen, created_at=_LATE))
        assert not await store.replace(seen, replace(seen, epoch=2))

    async def test_of_many_replacements_at_once_none_is_lost(self, store: SessionStore, second: SessionStore) -> None:
        """Epochs are never given twice."""
        await store.add(a_session())
        await asyncio.gather(*(take_steps((store, second)[n % 2], SessionId("one"), 10) for n in range(6)))
        assert (await store.get(SessionId("one"))).epoch == 61

    async def test_pages_go_on_where_the_last_one_ended(self, store: SessionStore) -> None:
        """Whatever came and went between, and without those of others."""
        for name in ("e", "c", "a", "d", "b"):
            await store.add(a_session(name))
        await store.add(a_session("b2", user="other"))
        first = await store.list(PageRequest(user="local", limit=2))
        assert [one.spec.id for one in first] == ["a", "b"]
        await store.remove(SessionId("b"))
        await store.add(a_session("a2"))
        rest = await store.list(PageRequest(user="local", after=SessionId("b"), limit=10))
        assert [one.spec.id for one in rest] == ["c", "d", "e"]
        assert [one.spec.id for one in await store.list(PageRequest(user="other"))] == ["b2"]

    async def test_closing_twice_is_no_error(self, store: SessionStore) -> None:
        """As for everything that is owned."""
        await store.add(a_session())
        await store.aclose()
        await store.aclose()
