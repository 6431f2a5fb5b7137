"""`undo`, `branch` and `snapshots` on a workbench with a stand-in host: what is printed, for people and for scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result
from tests.unit.core.standins import World

from workbench.cli.main import cli
from workbench.core.requests import CreateSession, RunCell
from workbench.errors import Conflict
from workbench.model.ids import SessionId


class StandInService:
    """A service with nothing but a workbench, which writes nothing down."""

    def __init__(self, world: World) -> None:
        self.workbench = world.bench
        self.access = self

    async def note(self, *_: object, **__: object) -> None:
        """Nobody reads it here."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """With a session `mine` that has run x=1 and x=2."""
    made = World()

    @contextlib.asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[StandInService]:
        yield StandInService(made)

    monkeypatch.setattr("workbench.cli.asking.open_service", opened)

    async def fill() -> None:
        await made.bench().create_session(CreateSession(session=SessionId("mine")))
        for code in ("x=1", "x=2"):
            await made.bench().run_cell(RunCell(session=SessionId("mine"), code=code))

    asyncio.run(fill())
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["sessions", *arguments])


def test_undo_says_what_it_went_back_to_and_what_was_not_carried(world: World) -> None:
    done = run("undo", "mine")
    assert (done.exit_code, done.stdout) == (0, "mine has its memory from before the last cell, epoch 2\n")
    assert done.stderr == "[workbench] not carried: a thread\n"
    told = json.loads(run("undo", "mine", "1", "--json").stdout)
    assert (told["epoch"], told["not_carried"], told["snapshots"]["kept"]) == (3, "a thread", 0)
    assert isinstance(run("undo", "mine", "2").exception, Conflict)
    assert run("undo", "mine", "0").exit_code == 2


def test_branch_prints_the_name_and_show_tells_the_family(world: World) -> None:
    done = run("branch", "mine", "other")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "other\n", "[workbench] not carried: a thread\n")
    told = json.loads(run("branch", "mine", "--json").stdout)
    assert (told["parent"], told["not_carried"], "carried" in told) == ("mine", "a thread", False)
    assert sorted(told["shared_with"]) == ["mine", "other"]
    shown = run("show", "other").stdout
    assert "branched from:  mine\n" in shown
    assert f"shared with:    mine, {told['session']}\n" in shown


def test_a_copy_names_what_did_not_arrive_and_cannot_steer_the_terminal(world: World) -> None:
    (sandbox,) = world.host.sandboxes.values()
    assert sandbox.kernel is not None
    sandbox.kernel.names |= {f"log{n:02}\x1b[2J": "open" for n in range(30)}
    done = run("branch", "mine", "copy", "--copy")
    assert (done.exit_code, done.stdout) == (0, "copy\n")
    assert done.stderr.startswith(
        "[workbench] files: one was left out\n[workbench] not carried: log00?[2J (an open file)"
    )
    assert done.stderr.endswith("and 10 more; --json has all\n")
    told = json.loads(run("branch", "mine", "second", "--copy", "--json").stdout)
    assert (told["carried"], len(told["not_carried"]), told["files_note"]) == (["x"], 30, "one was left out")
    assert (told["mount"], told["shared_with"]) == ("second", [])


def test_snapshots_are_switched(world: World) -> None:
    assert run("snapshots", "mine", "off").stdout == "mine snapshots: off\n"
    assert not json.loads(run("snapshots", "mine", "off", "--json").stdout)["snapshots"]["on"]
    assert run("snapshots", "mine", "on").stdout == "mine snapshots: none\n"
    assert run("snapshots", "mine", "maybe").exit_code == 2
    assert run("create", "without", "--no-snapshots").exit_code == 0
    assert "snapshots:      off\n" in run("show", "without").stdout
