"""The error tree: stable codes, a way over the wire and back, and a drawing that is true."""

from __future__ import annotations

import re

import pytest

from workbench import errors
from workbench.errors import HostError, SandboxUnavailable, WorkbenchError, from_wire, leaves

LEAVES = list(leaves())


def _tree(kind: type[WorkbenchError]) -> list[type[WorkbenchError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _tree(child))]


def test_codes_are_their_own() -> None:
    codes = [kind.code for kind in _tree(WorkbenchError)]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("kind", LEAVES)
def test_a_leaf_declares_its_code_itself(kind: type[WorkbenchError]) -> None:
    assert "code" in vars(kind)
    assert kind.__doc__


@pytest.mark.parametrize("kind", LEAVES)
def test_an_error_comes_back_over_the_wire_as_it_went(kind: type[WorkbenchError]) -> None:
    sent = kind("what happened", {"step": "here"})
    got = from_wire(sent.code, sent.message, sent.context)
    assert type(got) is kind
    assert (got.message, got.context, got.retryable, str(got)) == (
        "what happened", {"step": "here"}, kind.retryable, "what happened",
    )  # fmt: skip


@pytest.mark.parametrize("code", ["", "no_such_code", "workbench_error", "caller_error", "Exception", "os.system"])
def test_a_code_that_no_leaf_has_becomes_a_host_error_that_keeps_it(code: str) -> None:
    got = from_wire(code, "m", {"a": "b"})
    assert type(got) is HostError
    assert got.context == {"a": "b", "code": code}


def test_a_context_is_a_copy() -> None:
    context = {"a": "b"}
    error = SandboxUnavailable("m", context)
    context["a"] = "changed"
    assert error.context == {"a": "b"}


def test_the_drawing_at_the_top_is_the_tree() -> None:
    lines = (re.match(r"^    ([│├└─ ]*)([A-Z]\w+)\b", line) for line in (errors.__doc__ or "").splitlines())
    drawn = [(len(line[1]) // 3, line[2]) for line in lines if line]
    assert drawn == _drawing(WorkbenchError, 0)


def test_the_drawing_has_every_leafs_code() -> None:
    for kind in LEAVES:
        assert re.search(rf"{kind.__name__} +{kind.code}\b", errors.__doc__ or ""), kind


def _drawing(kind: type[WorkbenchError], depth: int) -> list[tuple[int, str]]:
    below = [row for child in kind.__subclasses__() for row in _drawing(child, depth + 1)]
    return [(depth, kind.__name__), *below]
