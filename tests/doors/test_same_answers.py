"""Every door gives the same answers to the same questions, word for word."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from tests.doors.door import Door, Ran, Refused, Said, WholeDoor, as_told_in

pytestmark = pytest.mark.timeout(300)


@dataclasses.dataclass(frozen=True)
class Every:
    """A step that every door can take."""

    take: Callable[[Door, str], object]


@dataclasses.dataclass(frozen=True)
class Whole:
    """One that the core takes for a door that cannot: then its answer shows what was done through that door."""

    take: Callable[[WholeDoor, str], object]


Step = Every | Whole

STEPS: tuple[Step, ...] = (
    Whole(lambda door, name: door.create(name)),
    Whole(lambda door, name: door.create(name)),
    Every(lambda door, name: door.run(name, "x = 1\nprint('hello')\nx")),
    Every(lambda door, name: door.run(name, "import sys\nprint('ü', file=sys.stderr)\nraise KeyError('k')")),
    Every(lambda door, name: door.run(name, "y = 2", Said(thought="why", step="two", metric="2/3"))),
    Whole(lambda door, name: door.describe(name)),
    Every(lambda door, name: door.run(name, "import time\nwhile True: time.sleep(0.01)", Said(limit_s=0.5))),
    Every(lambda door, name: door.run(name, "print('z' * 50_000)")),
    Every(lambda door, name: door.run(name, "from IPython.display import HTML\nHTML('<b>bold</b>')")),
    Every(lambda door, name: door.bash(name, "echo there; ls /nowhere; exit 7")),
    Whole(lambda door, name: door.run(name, "1", Said(limit_s=1e9))),
    Whole(lambda door, name: door.put_file(name, "data/ü.txt", b"three")),
    Whole(lambda door, name: door.list_files(name, "data/")),
    Whole(lambda door, name: door.get_file(name, "data/ü.txt").decode()),
    Whole(lambda door, name: door.get_file(name, "data")),
    Whole(lambda door, name: door.get_file(name, "data/none.txt")),
    Whole(lambda door, name: door.put_file(name, "data/../x", b"")),
    Whole(lambda door, name: door.delete_file(name, "data")),
    Whole(lambda door, name: door.delete_file(name, "data")),
    Every(lambda door, name: door.undo(name, 2)),
    Every(lambda door, name: door.undo(f"{name}-none")),
    Every(lambda door, name: door.variables(name)),
    Every(lambda door, name: door.branch(name, f"{name}-b")),
    Every(lambda door, name: door.branch(name, f"{name}-b")),
    Every(lambda door, name: door.run(f"{name}-b", "x, y")),
    Every(lambda door, name: door.run(name, "import os; os._exit(1)")),
    Every(lambda door, name: door.run(name, "x")),
    Every(lambda door, name: door.restart(name)),
    Every(lambda door, name: door.run(name, "x")),
    Whole(lambda door, name: door.resize(name, "medium")),
    Whole(lambda door, name: door.history(name)),
    Every(lambda door, name: door.delete(f"{name}-b")),
    Every(lambda door, name: door.delete(name)),
    Every(lambda door, name: door.delete(name)),
    Whole(lambda door, name: door.describe(name)),
)


@dataclasses.dataclass(frozen=True)
class Answer:
    """To one step, in a session of that name."""

    name: str
    value: object

    def comparable(self) -> str:
        """With nothing left in it that must differ."""
        value = self.value.message if isinstance(self.value, Refused) else self.value
        # Through JSON, in which a word of ours and the same word as text are one.
        return json.dumps(value, default=_plain, ensure_ascii=False).replace(self.name, "NAME")


def _plain(value: Any) -> object:
    return sorted(value) if isinstance(value, frozenset) else dataclasses.asdict(value)


def answers(door: Door, maker: WholeDoor) -> list[Answer]:
    """Of one door; `maker` is the same, or takes the steps that it cannot."""
    name = f"t-{secrets.token_hex(4)}"
    told: list[Answer] = []
    try:
        for step in STEPS:
            try:
                answer = step.take(maker, name) if isinstance(step, Whole) else step.take(door, name)
            except Refused as refused:
                answer = refused
            told.append(Answer(name, answer.comparable() if isinstance(answer, Ran) else answer))
    finally:
        for left in (f"{name}-b", name):
            with contextlib.suppress(Refused):
                maker.delete(left)
    return told


@pytest.fixture(scope="module")
def reference(core: WholeDoor) -> list[Answer]:
    """What the core itself answers."""
    return answers(core, core)


def test_every_door_answers_as_the_core_does(door: Door, maker: WholeDoor, reference: list[Answer]) -> None:
    for number, (expected, seen) in enumerate(zip(reference, answers(door, maker), strict=True)):
        told = dataclasses.replace(expected, value=as_told_in(seen.value, expected.value))
        assert seen.comparable() == told.comparable(), f"step {number}"
        if isinstance(seen.value, Refused):
            assert isinstance(told.value, Refused)
            # The command line and MCP tell words, and not the code.
            assert seen.value.code in (told.value.code, None), f"step {number}"
