"""The overlay: links, and whole packages only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.model.packages import Pin
from workbench.packages.overlay import Overlay
from workbench.packages.store import Entry


def _entry(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        place = folder / name.replace("__", "/").replace("_py", ".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    return Overlay(tmp_path / "m", "python3.11")


def _added(overlay: Overlay, name: str, entry: Path) -> None:
    overlay.folder.mkdir(exist_ok=True)
    overlay.add({Pin(name=name, version="1"): Entry(files=entry, size=3)})


def test_files_are_the_stores_own_and_folders_are_not(overlay: Overlay, tmp_path: Path) -> None:
    entry = _entry(tmp_path / "a", a__x_py="x = 1")
    _added(overlay, "a", entry)
    placed = overlay.site / "a/x.py"
    assert (placed.stat().st_ino, placed.parent.stat().st_ino) == (
        (entry / "a/x.py").stat().st_ino,
        placed.parent.stat().st_ino,
    )
    assert overlay.pins() == {"a": "1"}


def test_distributions_that_share_a_folder_are_merged_and_the_first_ones_file_stays(
    overlay: Overlay, tmp_path: Path
) -> None:
    _added(overlay, "a", _entry(tmp_path / "a", ns__a_py="1", both_py="first"))
    _added(overlay, "b", _entry(tmp_path / "b", ns__b_py="2", both_py="second"))
    assert sorted(one.name for one in (overlay.site / "ns").iterdir()) == ["a.py", "b.py"]
    assert (overlay.site / "both.py").read_text() == "first"
    assert sorted(os.listdir(overlay.folder)) == ["python3.11", "python3.11.json"]
    assert overlay.weight() == 6


def test_what_an_install_that_was_broken_off_left_is_no_part_of_the_next(overlay: Overlay, tmp_path: Path) -> None:
    overlay.folder.mkdir()
    _entry(overlay.folder / ".staging", half_py="half")
    _added(overlay, "a", _entry(tmp_path / "a", a_py="1"))
    assert [one.name for one in overlay.site.iterdir()] == ["a.py"]


def test_a_state_that_cannot_be_read_is_none(overlay: Overlay) -> None:
    overlay.folder.mkdir()
    (overlay.folder / "python3.11.json").write_text("{")
    assert overlay.pins() == {}


def test_what_goes_with_its_session_is_not_brought_back(overlay: Overlay, tmp_path: Path) -> None:
    entry = Entry(files=_entry(tmp_path / "a", a_py="1"), size=1)
    with pytest.raises(FileNotFoundError):
        overlay.add({Pin(name="a", version="1"): entry})
