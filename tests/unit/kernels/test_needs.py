"""What a machine lacks is said before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.errors import KernelUnavailable
from workbench.kernels.needs import check_needs
from workbench.model.runtime import Need, Runtime


def runtime(*needs: Need) -> Runtime:
    return Runtime(
        name="one", title="One", language="one", kernelspec="one", file_extension=".one", argv=("one",), needs=needs
    )


def need(*any_of: str) -> Need:
    return Need(any_of=any_of, install=f"get {any_of[0]}")


def test_programs_of_the_machine_and_files_are_found() -> None:
    check_needs(runtime(need("sh"), need("/nowhere", "/usr/bin")), isolated=True)


def test_everything_that_is_missing_is_named_with_what_to_do() -> None:
    with pytest.raises(KernelUnavailable) as refused:
        check_needs(runtime(need("no-such", "/nowhere"), need("sh"), need("/usr/no-such")), isolated=True)
    assert refused.value.message == (
        "One is not installed on this machine: there is no no-such or /nowhere and /usr/no-such; whoever runs the "
        "workbench can install it with `get no-such && get /usr/no-such`"
    )
    assert refused.value.context["missing"] == "no-such, /usr/no-such"


def test_what_lies_where_no_sandbox_looks_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.touch()
    check_needs(runtime(need(os.fspath(file))), isolated=False)
    with pytest.raises(KernelUnavailable):
        check_needs(runtime(need(os.fspath(file))), isolated=True)
