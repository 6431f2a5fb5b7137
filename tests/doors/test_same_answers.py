"""Every door gives the same answers to the same questions, word for word."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import Callable

import pytest
from tests.doors.door import Door, Ran, Refused, Said

pytestmark = pytest.mark.timeout(300)

STEPS: tuple[Callable[[Door, str], object], ...] = (
    lambda door, name: door.create(name),
    lambda door, name: door.create(name),
    lambda door, name: door.run(name, "x = 1\nprint('hello')\nx"),
    lambda door, name: door.run(name, "import sys\nprint('ü', file=sys.stderr)\nraise KeyError('k')"),
    lambda door, name: door.run(name, "y = 2", Said(thought="why", step="two", metric="2/3")),
    lambda door, name: door.describe(name),
    lambda door, name: door.run(name, "import time\nwhile True: time.sleep(0.01)", Said(limit_s=0.5)),
    lambda door, name: door.run(name, "print('z' * 50_000)"),
    lambda door, name: door.run(name, "from IPython.display import HTML\nHTML('<b>bold</b>')"),
    lambda door, name: door.bash(name, "echo there; ls /nowhere; exit 7"),
    lambda door, name: door.run(name, "1", Said(limit_s=1e9)),
    lambda door, name: door.undo(name, 2),
    lambda door, name: door.undo(f"{name}-none"),
    lambda door, name: door.variables(name),
    lambda door, name: door.branch(name, f"{name}-b"),
    lambda door, name: door.run(f"{name}-b", "x, y"),
    lambda door, name: door.run(name, "import os; os._exit(1)"),
    lambda door, name: door.run(name, "x"),
    lambda door, name: door.restart(name),
    lambda door, name: door.run(name, "x"),
    lambda door, name: door.resize(name, "medium"),
    lambda door, name: door.history(name),
    lambda door, name: door.delete(f"{name}-b"),
    lambda door, name: door.delete(name),
    lambda door, name: door.delete(name),
    lambda door, name: door.describe(name),
)


def answers(door: Door) -> list[object]:
    """Of one door, with nothing left in them that must differ."""
    name = f"t-{secrets.token_hex(4)}"
    told: list[object] = []
    try:
        for step in STEPS:
            try:
                answer = step(door, name)
            except Refused as refused:
                told.append(("refused", refused.code, _without(name, refused.message)))
            else:
                told.append(_comparable(answer, name))
    finally:
        for left in (f"{name}-b", name):
            with contextlib.suppress(Refused):
                door.delete(left)
    return told


def _comparable(answer: object, name: str) -> str:
    if isinstance(answer, Ran):
        answer = answer.comparable()
    # Through JSON, in which a word of ours and the same word as text are one.
    return _without(name, json.dumps(answer, default=dataclasses.asdict, ensure_ascii=False))


def _without(name: str, text: str) -> str:
    return text.replace(name, "NAME")


@pytest.fixture(scope="module")
def reference(doors: dict[str, Door]) -> list[object]:
    """What the core itself answers."""
    return answers(doors["in process"])


def test_every_door_answers_as_the_core_does(door: Door, reference: list[object]) -> None:
    for number, (expected, seen) in enumerate(zip(reference, answers(door), strict=True)):
        if isinstance(seen, tuple) and isinstance(expected, tuple):
            # The command line tells words, and not the code.
            assert seen[2] == expected[2], f"step {number}"
            assert seen[1] in (expected[1], None), f"step {number}"
        else:
            assert seen == expected, f"step {number}"
