"""The suite that every store of what is remembered of tools passes. `testing.storage_contract` says how it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from workbench.contracts.storage import Records
from workbench.errors import NotFound
from workbench.model.approval import ApprovalMark, MarkState, SeenShape
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId
from workbench.testing.storage_contract import EARLY, LATE, OTHERS, OpenedRecords, a_session

_BETWEEN, _AFTER = "2030-01-01T12:00:00.000000Z", "2031-01-01T00:00:00.000000Z"
_ONE, _TWO = SessionId("one"), SessionId("two")


def a_mark(subject: str = "tool:APP_DO", state: MarkState = MarkState.GRANTED, until: str = LATE) -> ApprovalMark:
    """With something in every field."""
    return ApprovalMark(subject=subject, state=state, words="für Ålice", until=until)


class ToolMemoryContract(OpenedRecords):
    """What is kept about approvals goes with its session; what answers look like with its project."""

    @pytest.fixture
    async def two(self, records: Records) -> Records:
        """With two sessions."""
        await records.sessions(DEFAULT_PROJECT).add(a_session("one"))
        await records.sessions(DEFAULT_PROJECT).add(a_session("two"))
        return records

    async def test_what_is_kept_is_read_back_by_its_session_alone(self, two: Records) -> None:
        """Sessions are apart."""
        assert await two.tools.keep(_ONE, a_mark("b"), EARLY)
        assert await two.tools.keep(_ONE, a_mark("a", MarkState.WAITING), EARLY)
        assert await two.tools.marks(_ONE, EARLY) == (a_mark("a", MarkState.WAITING), a_mark("b"))
        assert await two.tools.marks(_TWO, EARLY) == ()

    async def test_of_many_who_keep_the_same_one_does(self, two: Records) -> None:
        """An answer is used once, among all processes."""
        marks = [two.tools.keep(_ONE, a_mark("answer:1", MarkState.USED), EARLY) for _ in range(8)]
        assert sorted(await asyncio.gather(*marks)) == [False] * 7 + [True]

    async def test_what_is_over_does_not_count_and_is_dropped(self, two: Records) -> None:
        """What was approved for a while is not for ever."""
        assert await two.tools.keep(_ONE, a_mark("a", until=_BETWEEN), EARLY)
        assert await two.tools.marks(_ONE, _AFTER) == ()
        assert not await two.tools.take(_ONE, "a", _AFTER)
        assert await two.tools.keep(_ONE, a_mark("a", MarkState.USED, until="2032-01-01T00:00:00.000000Z"), _AFTER)
        assert [mark.state for mark in await two.tools.marks(_ONE, _AFTER)] == [MarkState.USED]

    async def test_what_is_put_replaces_what_was_kept(self, two: Records) -> None:
        """A call that waited is granted."""
        assert await two.tools.keep(_ONE, a_mark("a", MarkState.WAITING), EARLY)
        await two.tools.put(_ONE, a_mark("a"), EARLY)
        assert await two.tools.marks(_ONE, EARLY) == (a_mark("a"),)

    async def test_what_was_granted_is_taken_once(self, two: Records) -> None:
        """And a call that waits is not taken for granted."""
        await two.tools.put(_ONE, a_mark("a"), EARLY)
        await two.tools.put(_ONE, a_mark("b", MarkState.WAITING), EARLY)
        assert sorted(await asyncio.gather(*[two.tools.take(_ONE, "a", EARLY) for _ in range(4)])) == [False] * 3 + [
            True
        ]
        assert not await two.tools.take(_ONE, "b", EARLY)
        assert not await two.tools.take(_TWO, "a", EARLY)

    async def test_what_is_dropped_is_gone(self, two: Records) -> None:
        """The others stay."""
        for subject in ("a", "b"):
            await two.tools.put(_ONE, a_mark(subject), EARLY)
        await two.tools.drop(_ONE, ["a", "none"])
        assert [mark.subject for mark in await two.tools.marks(_ONE, EARLY)] == ["b"]

    async def test_marks_go_with_their_session_and_none_is_kept_for_one_that_is_not(self, two: Records) -> None:
        """A later one of the same name has not been asked."""
        await two.tools.put(_ONE, a_mark("a"), EARLY)
        sessions = two.sessions(DEFAULT_PROJECT)
        await sessions.remove(await sessions.get(_ONE))
        assert await two.tools.marks(_ONE, EARLY) == ()
        with pytest.raises(NotFound):
            await two.tools.put(_ONE, a_mark("a"), EARLY)
        with pytest.raises(NotFound):
            await two.tools.keep(SessionId("none"), a_mark("a"), EARLY)

    async def test_answers_are_counted_and_no_shape_is_lost_among_many(self, records: Records) -> None:
        """What is read and written is one step."""

        def merging(number: int) -> Callable[[str], str]:
            return lambda before: ",".join(sorted({*before.split(","), str(number)} - {""}))

        saw = [records.tools.saw(DEFAULT_PROJECT, "APP_DO", EARLY, merging(number)) for number in range(8)]
        await asyncio.gather(*saw)
        seen = await records.tools.shapes(DEFAULT_PROJECT, ["APP_DO", "APP_NONE"])
        assert seen == {"APP_DO": SeenShape(tool="APP_DO", calls=8, shape="0,1,2,3,4,5,6,7", at=EARLY)}

    async def test_shapes_are_a_projects_own_and_forgotten_with_it(self, records: Records) -> None:
        """No project learns what another one calls."""
        for project in (DEFAULT_PROJECT, OTHERS):
            await records.tools.saw(project, "APP_DO", EARLY, lambda _: "{}")
        assert await records.tools.shapes(ProjectId("third"), ["APP_DO"]) == {}
        await records.tools.saw(OTHERS, "APPLE_DO", EARLY, lambda _: "{}")
        assert await records.tools.forget_shapes(OTHERS, "app") == 1
        assert set(await records.tools.shapes(OTHERS, ["APP_DO", "APPLE_DO"])) == {"APPLE_DO"}
        assert await records.tools.forget_shapes(None, "apple") == 1
        await records.tools.saw(OTHERS, "APP_DO", EARLY, lambda _: "{}")
        assert await records.tools.forget_shapes(OTHERS) == 1
        assert await records.tools.shapes(OTHERS, ["APP_DO"]) == {}
        assert set(await records.tools.shapes(DEFAULT_PROJECT, ["APP_DO"])) == {"APP_DO"}

    async def test_shapes_go_with_a_user_whose_answers_they_may_have_been(self, records: Records) -> None:
        """Nobody knows whose they were: all of the project's go, and no other's."""
        for project in (DEFAULT_PROJECT, OTHERS):
            await records.tools.saw(project, "APP_DO", EARLY, lambda _: "{}")
        await records.house.forget_user(DEFAULT_PROJECT, "alice")
        assert await records.tools.shapes(DEFAULT_PROJECT, ["APP_DO"]) == {}
        assert set(await records.tools.shapes(OTHERS, ["APP_DO"])) == {"APP_DO"}
