"""Sessions of projects and users: whose they are, what they say about their progress, and how a user is forgotten."""

from __future__ import annotations

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.access import Access
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.model.access import Caller
from workbench.model.ids import ProjectId, SessionId
from workbench.model.records import Progress
from workbench.model.session import IdleLimits, SessionDescription

ONE, TWO = SessionId("one"), SessionId("two")
OTHER = ProjectId("other")


@pytest.fixture
def world() -> World:
    return World()


async def describe(world: World, name: SessionId = ONE) -> SessionDescription:
    return await world.bench().describe_session(requests.DescribeSession(session=name))


async def test_a_session_is_of_the_project_that_made_it_and_does_not_exist_for_others(world: World) -> None:
    other = world.bench(OTHER)
    made = await other.create_session(requests.CreateSession(session=ONE))
    assert made.session.spec.project == OTHER
    for asking in (
        world.bench().describe_session(requests.DescribeSession(session=ONE)),
        world.bench().delete_session(requests.DeleteSession(session=ONE)),
        world.bench().keep_alive(requests.KeepAlive(session=ONE)),
        world.bench().set_idle_limits(requests.SetIdleLimits(session=ONE, idle=IdleLimits())),
    ):
        with pytest.raises(NotFound):
            await asking
    # Its name is taken for all.
    with pytest.raises(Conflict):
        await world.bench().create_session(requests.CreateSession(session=ONE))
    assert (await world.bench().list_sessions(requests.ListSessions(user=None))).sessions == ()
    await other.delete_session(requests.DeleteSession(session=ONE))


async def test_a_branch_has_project_user_and_limits_of_what_it_was_branched_from(world: World) -> None:
    bench, idle = world.bench(OTHER), IdleLimits(freeze_after_s=5, end_after_s=0)
    await bench.create_session(requests.CreateSession(session=ONE, user="me", idle=idle, eager=True))
    await bench.run_cell(requests.RunCell(session=ONE, code="x=1"))
    for copy, name in ((False, TWO), (True, SessionId("three"))):
        made = await bench.branch(requests.BranchSession(session=ONE, branch=name, copy=copy))
        spec = made.described.session.spec
        assert (spec.project, spec.user, spec.idle) == (OTHER, "me", idle)


async def test_sessions_are_listed_by_user_or_for_everybody(world: World) -> None:
    for name, user in ((ONE, "me"), (TWO, "you")):
        await world.bench().create_session(requests.CreateSession(session=name, user=user))
    for wanted, found in (("me", [ONE]), ("you", [TWO]), (None, [ONE, TWO]), ("local", [])):
        page = await world.bench().list_sessions(requests.ListSessions(user=wanted))
        assert [one.session.spec.id for one in page.sessions] == found


async def test_a_session_shows_what_its_latest_cells_said_about_where_they_are(world: World) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE))
    assert (await describe(world)).progress == Progress()
    said = Progress(thought="read them all", current_step="READ", current_step_metric="10/100 emails")
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1", progress=said))
    await world.bench().run_cell(requests.RunCell(session=ONE, code="y=1"))
    assert (await describe(world)).progress == said


@pytest.mark.parametrize("idle", [IdleLimits(freeze_after_s=-1), IdleLimits(end_after_s=10**9)])
async def test_limits_that_cannot_be_are_refused(world: World, idle: IdleLimits) -> None:
    with pytest.raises(InvalidRequest, match=r"0 \(never\) to"):
        await world.bench().create_session(requests.CreateSession(session=ONE, idle=idle))
    await world.bench().create_session(requests.CreateSession(session=ONE))
    with pytest.raises(InvalidRequest):
        await world.bench().set_idle_limits(requests.SetIdleLimits(session=ONE, idle=idle))


async def test_deleting_a_user_deletes_all_their_sessions_and_what_is_written_about_them(world: World) -> None:
    access = Access(records=world.records, clock=world.clock)
    for number in range(120):
        name = SessionId(f"s{number:03}")
        await world.bench().create_session(requests.CreateSession(session=name, user="me"))
    await world.bench().run_cell(requests.RunCell(session=SessionId("s000"), code="x=1"))
    await world.bench().branch(requests.BranchSession(session=SessionId("s000"), branch=TWO))
    await world.bench().create_session(requests.CreateSession(session=ONE, user="you"))
    await access.note(Caller(), "session.create", session=SessionId("s000"), user="me")
    await access.note(Caller(), "session.create", session=ONE, user="you")
    assert await world.bench().delete_user(requests.DeleteUser(user="me")) == 121
    assert world.host.sandboxes == {}
    left = await world.bench().list_sessions(requests.ListSessions(user=None))
    assert [one.session.spec.id for one in left.sessions] == [ONE]
    assert {entry.user for entry in await access.list_audit(requests.ListAudit(by=Caller()))} == {"you"}
    assert await world.bench().delete_user(requests.DeleteUser(user="me")) == 0


async def test_deleting_a_user_leaves_the_same_name_of_another_project_alone(world: World) -> None:
    await world.bench().create_session(requests.CreateSession(session=ONE, user="me"))
    assert await world.bench(OTHER).delete_user(requests.DeleteUser(user="me")) == 0
    assert (await describe(world)).state == "cold"


async def test_what_was_noted_of_a_users_branches_goes_with_them(world: World) -> None:
    bench, access = world.bench(), Access(records=world.records, clock=world.clock)
    one, branch = SessionId("one"), SessionId("branch")
    await bench.create_session(requests.CreateSession(session=one, user="alice"))
    await bench.run_cell(requests.RunCell(session=one, code="x=1"))
    await bench.branch(requests.BranchSession(session=one, branch=branch))
    await access.note(Caller(), "session.create", session=branch)
    user = await bench.user_of(branch)
    await bench.delete_session(requests.DeleteSession(session=branch))
    await access.note(Caller(), "session.delete", session=branch, user=user)
    assert (user, await bench.user_of(branch)) == ("alice", "")
    await bench.delete_user(requests.DeleteUser(user="alice"))
    assert await access.list_audit(requests.ListAudit(by=Caller())) == ()
