"""Which processes can be asked for."""

from __future__ import annotations

import os

import pytest

from workbench.errors import InvalidRequest
from workbench.model.ids import new_process_id
from workbench.model.process import MAX_ARGUMENT_BYTES, MAX_PAYLOAD_BYTES, ProcessSpec, check_words

ID = new_process_id()


@pytest.mark.parametrize(
    "spec",
    [
        ProcessSpec(id=ID, argv=("true",)),
        ProcessSpec(id=ID, argv=("",)),
        ProcessSpec(id=ID, entry="run_code"),
        ProcessSpec(id=ID, entry="run_code", payload=b"\0" * MAX_PAYLOAD_BYTES),
        ProcessSpec(id=ID, argv=("echo", "é", os.fsdecode(b"\xff")), env={"A": "", "B": "b=c"}),
        ProcessSpec(id=ID, argv=("x" * (MAX_ARGUMENT_BYTES - len("/home/user")),)),
    ],
)
def test_what_a_kernel_takes_passes(spec: ProcessSpec) -> None:
    assert spec.checked() is spec


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (ProcessSpec(id=ID), "either argv or an entry"),
        (ProcessSpec(id=ID, entry=""), "either argv or an entry"),
        (ProcessSpec(id=ID, argv=("a",), entry="b"), "not both"),
        (ProcessSpec(id=ID, argv=("a\0",)), "NUL"),
        (ProcessSpec(id=ID, argv=("a",), cwd="\0"), "NUL"),
        (ProcessSpec(id=ID, argv=("a",), env={"A\0": "b"}), "NUL"),
        (ProcessSpec(id=ID, argv=("a",), env={"A": "\0"}), "NUL"),
        (ProcessSpec(id=ID, argv=("a",), env={"": "b"}), "name"),
        (ProcessSpec(id=ID, argv=("a",), env={"A=": "b"}), "name"),
        (ProcessSpec(id=ID, argv=("\ud800",)), "UTF-8"),
        (ProcessSpec(id=ID, argv=("x" * MAX_ARGUMENT_BYTES,)), "a file under /mnt/files"),
        (ProcessSpec(id=ID, argv=("é" * (MAX_ARGUMENT_BYTES // 2),)), "a file under /mnt/files"),
        (ProcessSpec(id=ID, argv=("a",), env={"A": "x" * MAX_ARGUMENT_BYTES}), "a file under /mnt/files"),
        (ProcessSpec(id=ID, entry="e", payload=b" " * (MAX_PAYLOAD_BYTES + 1)), "a file under /mnt/files"),
    ],
)
def test_anything_else_is_refused_with_the_reason(spec: ProcessSpec, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        spec.checked()


def test_many_small_words_count_together() -> None:
    check_words({}, *["x" * 1000] * 98)
    with pytest.raises(InvalidRequest):
        check_words({"A": "x" * 1000}, *["x" * 1000] * 98)
