"""What a machine lacks is said before anything is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from workbench.errors import KernelUnavailable
from workbench.kernels import needs
from workbench.kernels.needs import check_needs
from workbench.model.runtime import Need, Runtime

_HAS_PROGRAM = Path(__file__).parents[3] / "scripts" / "has-program"


def runtime(*those: Need) -> Runtime:
    return Runtime(
        name="one", title="One", language="one", kernelspec="one", file_extension=".one", argv=("one",), needs=those
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


def has_program(name: str, path: str = "/usr/bin:/bin") -> bool:
    return subprocess.run([_HAS_PROGRAM, name], env={"PATH": path}, check=False).returncode == 0


def is_needed_in_vain(name: str) -> bool:
    try:
        check_needs(runtime(need(name)), isolated=True)
    except KernelUnavailable:
        return True
    return False


@pytest.mark.parametrize("name", ["sh", "node", "npm", "no-such"])
def test_what_installs_programs_looks_where_kernels_are_looked_for(name: str) -> None:
    assert has_program(name) is not is_needed_in_vain(name)


def test_a_program_of_the_callers_own_is_none_for_sandboxes(tmp_path: Path) -> None:
    program = tmp_path / "callers-own"
    shutil.copy("/bin/true", program)
    path = f"{tmp_path}:/usr/bin:/bin"
    assert shutil.which(program.name, path=path) == str(program)
    assert not has_program(program.name, path)
    assert is_needed_in_vain(program.name)


def test_a_link_that_leads_out_of_usr_is_none_either_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copy("/bin/true", own)
    (tmp_path / "sh").symlink_to(own)
    monkeypatch.setattr(needs, "_FOLDERS", (str(tmp_path),))
    assert is_needed_in_vain("sh")
    check_needs(runtime(need("sh")), isolated=False)
    monkeypatch.setattr(needs, "_FOLDERS", (str(tmp_path), "/usr/bin"))
    assert not is_needed_in_vain("sh")
