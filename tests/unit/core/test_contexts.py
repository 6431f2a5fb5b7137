"""Contexts: further kernels of a session, which share its sandbox and its files, and go with it."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.core.standins import FakeSandbox, World

from workbench.core import requests
from workbench.errors import Conflict, InvalidRequest, KernelUnavailable, NotFound, SandboxOff
from workbench.model.configuration import SandboxSwitches, SessionConfig
from workbench.model.ids import SessionId
from workbench.model.session import SessionDescription
from workbench.model.tier import LARGE

ONE, TWO, THREE, BRANCH = SessionId("one"), SessionId("two"), SessionId("three"), SessionId("branch")


@pytest.fixture
async def world() -> World:
    made = World()
    create = requests.CreateSession(session=ONE, start_up="import this", env={"A": "b"}, user="ann", tier=LARGE)
    await made.bench().create_session(create)
    return made


async def add(
    world: World, name: SessionId = TWO, of: SessionId = ONE, runtime: str = "", folder: str = ""
) -> SessionDescription:
    return await world.bench().create_context(
        requests.CreateContext(session=of, context=name, runtime=runtime, working_folder=folder)
    )


async def run(world: World, name: SessionId, code: str) -> None:
    await world.bench().run_cell(requests.RunCell(session=name, code=code))


async def names(world: World, of: SessionId = ONE) -> list[str]:
    return [str(one.session.spec.id) for one in await world.bench().list_contexts(requests.ListContexts(session=of))]


def only_sandbox(world: World) -> FakeSandbox:
    (sandbox,) = world.host.sandboxes.values()
    return sandbox


async def is_gone(world: World, *gone: SessionId) -> None:
    for name in gone:
        with pytest.raises(NotFound):
            await world.store.get(name)


async def test_one_is_made_before_anything_ran_and_the_session_joins_it(world: World) -> None:
    made = await add(world, runtime="js", folder="/mnt/files/web")
    assert (made.state, made.session.context_of, made.session.spec.runtime) == ("idle", ONE, "node")
    await run(world, ONE, "x=1")
    node, python = world.host.started
    assert (node.runtime, node.working_folder, node.start_up) == ("node", "/mnt/files/web", "")
    assert (python.runtime, python.working_folder, python.start_up) == ("python", "/home/user", "import this")
    assert node.at.sandbox == python.at.sandbox
    assert node.at.kernel != python.at.kernel
    assert len(world.host.made) == 1


async def test_one_has_the_sessions_language_folder_user_and_size_unless_it_is_said(world: World) -> None:
    spec = (await add(world)).session.spec
    assert (spec.runtime, spec.working_folder, spec.user, spec.tier) == ("python", "/home/user", "ann", LARGE)


async def test_each_has_a_memory_of_its_own_and_no_copy_of_another(world: World) -> None:
    await run(world, ONE, "x=1")
    await add(world)
    await run(world, TWO, "x=2")
    kernels = only_sandbox(world).kernels.values()
    assert [kernel.names for kernel in kernels] == [{"x": "1"}, {"x": "2"}]


async def test_they_are_listed_in_the_order_in_which_they_were_made_and_branches_are_not_among_them(
    world: World,
) -> None:
    await run(world, ONE, "x=1")
    await add(world, THREE)
    await add(world, TWO)
    await world.bench().branch(requests.BranchSession(session=ONE, branch=BRANCH))
    assert await names(world) == [THREE, TWO]
    assert await names(world, BRANCH) == []
    described = await world.bench().describe_session(requests.DescribeSession(session=ONE))
    assert set(described.shared_with) == {TWO, THREE, BRANCH}


async def test_a_context_of_a_context_is_one_of_the_session(world: World) -> None:
    await add(world)
    assert (await add(world, THREE, of=TWO)).session.context_of == ONE
    assert await names(world) == [TWO, THREE]


async def test_a_restart_begins_one_anew_and_leaves_the_others(world: World) -> None:
    await run(world, ONE, "x=1")
    await add(world)
    await run(world, TWO, "x=2")
    described = await world.bench().restart_context(requests.RestartContext(session=ONE, context=TWO))
    assert described.session.epoch == 2
    assert [one.names for one in only_sandbox(world).kernels.values()] == [{"x": "1"}, {}]


async def test_one_that_is_removed_leaves_the_others_and_the_files(world: World) -> None:
    await run(world, ONE, "x=1")
    await add(world)
    await add(world, THREE)
    await world.bench().remove_context(requests.RemoveContext(session=ONE, context=TWO))
    await is_gone(world, TWO)
    assert await names(world) == [THREE]
    assert (len(only_sandbox(world).kernels), world.mounts.removed) == (2, [])


async def test_a_session_takes_its_contexts_with_it_and_its_files_at_the_end(world: World) -> None:
    await add(world)
    await add(world, THREE)
    await world.bench().delete_session(requests.DeleteSession(session=ONE))
    await is_gone(world, ONE, TWO, THREE)
    assert not world.host.sandboxes
    assert [str(one) for one in world.mounts.removed] == ["one"]


async def test_a_branch_stays_when_the_session_and_its_contexts_go(world: World) -> None:
    await run(world, ONE, "x=1")
    await add(world)
    await world.bench().branch(requests.BranchSession(session=ONE, branch=BRANCH))
    await world.bench().delete_session(requests.DeleteSession(session=ONE))
    await is_gone(world, ONE, TWO)
    assert (len(only_sandbox(world).kernels), world.mounts.removed) == (1, [])


async def test_a_branch_of_a_context_is_none_and_stays_when_that_goes(world: World) -> None:
    await add(world)
    await run(world, TWO, "x=1")
    made = await world.bench().branch(requests.BranchSession(session=TWO, branch=BRANCH))
    assert (made.described.session.context_of, made.described.session.parent) == (None, TWO)
    await world.bench().delete_session(requests.DeleteSession(session=ONE))
    await is_gone(world, ONE, TWO)
    await run(world, BRANCH, "y=1")


async def test_nothing_is_left_of_one_whose_language_is_not_on_the_machine(world: World) -> None:
    await run(world, ONE, "x=1")
    world.host.fail["start"] = KernelUnavailable("apt-get install -y r-base-core")
    with pytest.raises(KernelUnavailable, match="r-base-core"):
        await add(world, runtime="r")
    await is_gone(world, TWO)
    assert [one.names for one in only_sandbox(world).kernels.values()] == [{"x": "1"}]


@pytest.mark.parametrize(("runtime", "folder", "words"), [("zzz", "", "no runtime"), ("", "here", "absolute path")])
async def test_what_cannot_be_is_told_before_anything_is_made(
    world: World, runtime: str, folder: str, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        await add(world, runtime=runtime, folder=folder)
    assert world.host.asked == []
    await is_gone(world, TWO)


async def test_a_name_that_is_taken_is_a_conflict_and_one_that_is_kept_for_others_is_refused(world: World) -> None:
    with pytest.raises(Conflict):
        await add(world, ONE)
    with pytest.raises(InvalidRequest, match="choose another one"):
        await add(world, SessionId(f"mcp-{'a' * 12}"))


async def test_a_session_without_a_sandbox_has_none(world: World) -> None:
    config = SessionConfig(sandbox=SandboxSwitches(enable=False))
    await world.bench().create_session(requests.CreateSession(session=THREE, config=config))
    with pytest.raises(SandboxOff):
        await add(world, of=THREE)


async def test_only_contexts_of_that_session_are_restarted_or_removed_by_it(world: World) -> None:
    await world.bench().create_session(requests.CreateSession(session=THREE))
    await add(world)
    for session, context in ((THREE, TWO), (ONE, THREE), (ONE, SessionId("nobody"))):
        with pytest.raises(NotFound, match="has no context"):
            await world.bench().remove_context(requests.RemoveContext(session=session, context=context))
        with pytest.raises(NotFound, match="has no context"):
            await world.bench().restart_context(requests.RestartContext(session=session, context=context))
    with pytest.raises(NotFound):
        await names(world, SessionId("nobody"))
    assert await names(world) == [TWO]


async def test_a_loss_takes_all_of_them_to_the_same_next_sandbox(world: World) -> None:
    await run(world, ONE, "x=1")
    await add(world, runtime="node")
    await run(world, TWO, "x=2")
    world.host.die()
    await run(world, TWO, "y=1")
    await run(world, ONE, "y=2")
    records = [await world.store.get(name) for name in (ONE, TWO)]
    assert records[0].sandbox == records[1].sandbox
    assert [order.runtime for order in world.host.started[-2:]] == ["node", "python"]


async def test_contexts_that_are_made_while_their_session_goes_are_not_left_behind(world: World) -> None:
    await run(world, ONE, "x=1")
    await asyncio.gather(
        *(add(world, SessionId(f"c{number}")) for number in range(5)),
        world.bench().delete_session(requests.DeleteSession(session=ONE)),
        return_exceptions=True,
    )
    await is_gone(world, ONE, *(SessionId(f"c{number}") for number in range(5)))
    assert not world.host.sandboxes
    assert [str(one) for one in world.mounts.removed] == ["one"]


async def test_what_a_session_may_reach_is_what_its_contexts_may_however_late_it_is_changed(world: World) -> None:
    await add(world)
    without = SessionConfig(sandbox=SandboxSwitches(tool_execution=False))
    change = requests.ChangeConfiguration(session=ONE, change=lambda _: without)
    await world.bench().configurations.change(change)
    for name in (ONE, TWO):
        assert (await world.store.get(name)).spec.config == without
