"""A place is one program's own, and what is left of another that had its name is swept up."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench_guest.keeper import place as place_module
from workbench_guest.keeper.place import Place

# More than a socket's name may have, as an ordinary user's folder of data can be.
LONG = "long/" * 25


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's folder for files for a while."""
    made = tmp_path / "t"
    made.mkdir()
    monkeypatch.setattr(place_module, "_SCRATCH", str(made))
    return made


def enter(name: str, sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(sandbox))
    monkeypatch.setenv("WORKBENCH_SANDBOX", name)


def made_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize(("name", "folder"), [("b", "two"), ("a", "two"), ("b", "one")])
def test_sandboxes_that_share_a_folder_leave_each_others_kernels_of_the_same_name_alone(
    tmp_path: Path, machines: Path, monkeypatch: pytest.MonkeyPatch, name: str, folder: str
) -> None:
    enter("a", tmp_path / LONG / "one", monkeypatch)
    first = Place("main")
    enter(name, tmp_path / LONG / folder, monkeypatch)
    second = Place("main")
    assert Path(first.write_file("key", "name")).exists()
    assert len(made_in(machines)) == 2
    first.close()
    second.close()
    assert made_in(machines) == []


def test_what_is_left_of_the_same_kernel_is_swept_up_and_of_another_one_is_not(
    tmp_path: Path, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter("a", tmp_path / LONG, monkeypatch)
    Place("main")
    (left,) = made_in(machines)
    other = Place("main-2")
    place = Place("main")
    assert left not in made_in(machines)
    assert len(made_in(machines)) == 2
    place.close()
    assert other.is_visible
    assert len(made_in(machines)) == 1


def test_a_sandbox_with_a_short_folder_of_its_own_has_its_place_there(
    machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "_SCRATCH", "/nowhere")
    monkeypatch.setenv("TMPDIR", str(machines))
    monkeypatch.setattr(place_module, "_MOST_PATH", len(str(machines)) + 60)
    place = Place("main")
    assert len(made_in(machines)) == 1
    place.close()
