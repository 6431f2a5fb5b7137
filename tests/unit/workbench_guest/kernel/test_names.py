"""Which names a cell added, removed or bound to another object."""

from __future__ import annotations

from typing import Any

import pytest

from workbench_guest.kernel.names import MOST_TOLD, Before, visible


def changes(before: dict[str, Any], code: str) -> dict[str, Any]:
    memory = dict(before)
    marks = Before(memory)
    exec(code, memory)
    memory.pop("__builtins__", None)
    return marks.changes(memory, code)


class Thing:
    """Can be referred to weakly."""


@pytest.mark.parametrize(
    ("before", "code", "added", "removed", "rebound"),
    [
        ({}, "x = 1", ["x"], [], []),
        ({"x": 1}, "del x", [], ["x"], []),
        ({"x": 1}, "x = 2", [], [], ["x"]),
        ({"x": 1}, "x = 1", [], [], []),
        ({"x": 1}, "x = 1.0", [], [], ["x"]),
        ({"x": [1]}, "x.append(2)", [], [], []),
        ({"x": [1]}, "x = [1]", [], [], ["x"]),
        ({"x": [1]}, "x += [2]", [], [], []),
        ({"x": [1]}, "del x\nx = [2]", [], [], ["x"]),
        ({"x": [1]}, "for n in range(9): x = [n]", ["n"], [], ["x"]),
        ({"x": Thing()}, "x.field = 1", [], [], []),
        ({"x": "a" * 10_000}, "x = 'b' * 10_000", [], [], ["x"]),
        ({"x": None, "y": 2}, "x = y\ndel y", [], ["y"], ["x"]),
    ],
)
def test_what_a_cell_did_to_the_names(
    before: dict[str, Any], code: str, added: list[str], removed: list[str], rebound: list[str]
) -> None:
    told = changes(before, code)
    assert (told["added"], told["removed"], told["rebound"], told["more"]) == (added, removed, rebound, 0)


def test_an_object_that_went_is_not_kept_alive_by_the_question() -> None:
    import weakref

    memory: dict[str, Any] = {"thing": Thing()}
    watched = weakref.ref(memory["thing"])
    marks = Before(memory)
    del memory["thing"]
    assert watched() is None
    assert marks.changes(memory, "del thing")["removed"] == ["thing"]


def test_only_so_many_are_told_and_the_rest_is_counted() -> None:
    told = Before({}).changes({f"n{number}": number for number in range(1000)}, "")
    assert len(told["added"]) == MOST_TOLD
    assert told["more"] == 1000 - MOST_TOLD


def test_what_the_shell_keeps_is_not_the_agents() -> None:
    kept = object()
    memory = {"_": 1, "__": 2, "_i3": "", "_12": 0, "_oh": {}, "exit": kept, "mine": 5, "_private": 6, 7: "no name"}
    assert visible(memory, {"exit": kept}) == {"mine": 5, "_private": 6}
    assert visible({"exit": 1}, {"exit": kept}) == {"exit": 1}
