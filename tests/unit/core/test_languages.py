"""Languages of sessions: how one is meant, what is ordered by it, and what one without a memory cannot do."""

from __future__ import annotations

import pytest
from tests.unit.core.standins import RUNTIMES, World

from workbench.core import requests
from workbench.core.languages import Languages
from workbench.errors import Conflict, InvalidRequest, KernelUnavailable, NotFound
from workbench.model.ids import SessionId
from workbench.model.session import SessionDescription

ONE, TWO = SessionId("one"), SessionId("two")
THERE = f"There is: {', '.join(sorted(one.name for one in RUNTIMES.known))}"


@pytest.fixture
def world() -> World:
    return World()


async def make(world: World, runtime: str = "node", *, eager: bool = False, start_up: str = "") -> SessionDescription:
    return await world.bench().create_session(
        requests.CreateSession(session=ONE, runtime=runtime, eager=eager, start_up=start_up)
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [("python", "python"), ("Python", "python"), ("JavaScript", "node"), (" nodejs ", "node"), ("R", "r")],
)
def test_a_language_is_meant_by_any_of_its_names_in_any_letters(said: str, meant: str) -> None:
    assert Languages(RUNTIMES).named(said).name == meant


@pytest.mark.parametrize(("said", "near"), [("pyhton", "'python'"), ("node20", "'node'"), ("jvascript", "'node'")])
def test_one_that_there_is_not_is_told_with_the_nearest(said: str, near: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"did you mean {near}\? {THERE}"):
        Languages(RUNTIMES).named(said)


def test_one_that_is_near_to_nothing_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match=rf"no runtime 'zzz' here\. {THERE}"):
        Languages(RUNTIMES).named("zzz")


async def test_it_is_kept_ordered_and_told(world: World) -> None:
    assert (await make(world, "JS")).session.spec.runtime == "node"
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    (order,) = world.host.started
    assert order.runtime == "node"
    assert (await world.bench().runtime_of(ONE)).title == "Node.js"
    assert (await world.store.get(ONE)).spec.runtime == "node"


async def test_a_session_keeps_its_language(world: World) -> None:
    await make(world)
    with pytest.raises(Conflict, match=r"is one of Node\.js, and a session keeps its language.* for one of R"):
        await make(world, "r")
    with pytest.raises(Conflict, match="use it, delete it first"):
        await make(world, "node")


async def test_nothing_is_left_of_one_whose_language_is_not_on_the_machine(world: World) -> None:
    world.host.fail["start"] = KernelUnavailable("apt-get install -y nodejs")
    with pytest.raises(KernelUnavailable, match="apt-get install"):
        await make(world, eager=True)
    assert world.host.sandboxes == {}
    with pytest.raises(NotFound):
        await world.store.get(ONE)


@pytest.mark.parametrize("copy", [False, True])
async def test_what_needs_a_kept_memory_is_refused_before_the_host_is_asked(world: World, copy: bool) -> None:
    await make(world)
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    asked = list(world.host.asked)
    with pytest.raises(Conflict, match=r"Node\.js, which cannot be taken back: a process of Node\.js cannot be copied"):
        await world.bench().undo(requests.UndoCells(session=ONE))
    with pytest.raises(Conflict, match="under /mnt/files"):
        await world.bench().branch(requests.BranchSession(session=ONE, branch=TWO, copy=copy))
    assert world.host.asked == asked
    with pytest.raises(NotFound):
        await world.store.get(TWO)


async def test_descriptions_and_receipts_say_why_nothing_is_kept(world: World) -> None:
    cold = await make(world)
    result = await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    warm = await world.bench().describe_session(requests.DescribeSession(session=ONE))
    for told in (cold.snapshots, result.receipt.snapshot, warm.snapshots):
        assert (told.kept, told.current) == (0, False)
        assert "cannot be copied while it lives" in told.reason


async def test_a_branch_has_the_language_of_its_parent(world: World) -> None:
    await make(world, "python")
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    made = await world.bench().branch(requests.BranchSession(session=ONE, branch=TWO))
    assert made.described.session.spec.runtime == "python"


@pytest.mark.parametrize(("runtime", "corrected"), [("python", True), ("node", False), ("r", False)])
async def test_mistakes_are_corrected_in_python_only(world: World, runtime: str, corrected: bool) -> None:
    await make(world, runtime)
    await world.bench().run_cell(requests.RunCell(session=ONE, code="x=1"))
    assert [one.corrected for one in world.host.cells] == [corrected]


@pytest.mark.parametrize(("runtime", "warm"), [("python", "torch"), ("r", "")])
async def test_what_looks_like_an_import_of_pythons_counts_in_python_only(
    world: World, runtime: str, warm: str
) -> None:
    await make(world, runtime, eager=True, start_up="import torch")
    assert [order.warm for order in world.host.made] == [warm]


@pytest.mark.parametrize(
    ("runtime", "kernelspec", "language"),
    [("python", "python3", "python"), ("node", "workbench-node", "javascript"), ("r", "ir", "R")],
)
async def test_a_notebook_names_the_kernel_that_can_run_it(
    world: World, runtime: str, kernelspec: str, language: str
) -> None:
    await make(world, runtime)
    about = (await world.bench().export_notebook(requests.ExportNotebook(session=ONE)))["metadata"]
    assert (about["kernelspec"]["name"], about["kernelspec"]["language"]) == (kernelspec, language)
    assert about["language_info"]["name"] == language
