"""Trees as a hostile guest makes them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.guest_trees import measure_tree, own_tree, remove_tree

_DEEP = 3000


def _nest(top: Path, names: list[str], data: bytes = b"") -> None:
    """Folders in folders, and a file in the last; by descriptor, as no path is that long."""
    top.mkdir(exist_ok=True)
    folder = os.open(top, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    with open(os.open("data", os.O_CREAT | os.O_WRONLY, dir_fd=folder), "wb") as file:
        file.write(data)
    os.close(folder)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_three_thousand_nested_folders_are_measured_and_removed(tmp_path: Path) -> None:
    _nest(tmp_path / "top", ["d"] * _DEEP, b"x" * 100_000)
    before = _descriptors()

    size = measure_tree(tmp_path / "top")

    assert size.complete
    assert size.entries == _DEEP + 1
    assert size.bytes >= 100_000
    assert remove_tree(tmp_path / "top")
    assert not (tmp_path / "top").exists()
    assert _descriptors() == before


def test_depth_costs_no_descriptors(tmp_path: Path) -> None:
    _nest(tmp_path / "top", ["d"] * 500)
    opened: list[int] = []
    real = os.open

    def counting(*arguments: Any, **options: Any) -> int:
        descriptor = real(*arguments, **options)
        opened.append(descriptor)
        return descriptor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", counting)
        measure_tree(tmp_path / "top")
        remove_tree(tmp_path / "top")

    assert max(opened) - min(opened) < 8


def test_data_below_a_path_longer_than_the_kernel_takes_is_counted_and_removed(tmp_path: Path) -> None:
    _nest(tmp_path / "top", [str(index % 10) * 250 for index in range(20)], b"x" * 1_000_000)

    size = measure_tree(tmp_path / "top")

    assert size.complete
    assert size.bytes >= 1_000_000
    assert remove_tree(tmp_path / "top")


def test_links_are_counted_and_removed_but_never_followed(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x" * 1_000_000)
    top.mkdir()
    (top / "etc").symlink_to("/etc")
    (top / "outside").symlink_to(outside)

    size = measure_tree(top)

    assert (size.entries, size.complete) == (2, True)
    assert size.bytes < 100_000
    assert remove_tree(top)
    assert (outside / "kept").exists()


def test_a_link_in_place_of_the_tree_is_removed_and_not_what_it_names(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "top").symlink_to(outside)

    assert measure_tree(tmp_path / "top").entries == 0
    assert remove_tree(tmp_path / "top")
    assert (outside / "kept").exists()


def test_what_is_not_there_is_gone_and_empty(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "nothing")
    assert measure_tree(tmp_path / "nothing").entries == 0


@pytest.mark.isolation
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500, 0o300])
def test_closed_folders_are_removed_all_the_same(tmp_path: Path, mode: int) -> None:
    _nest(tmp_path / "top", ["a", "b"])
    (tmp_path / "top" / "a" / "b").chmod(mode)
    (tmp_path / "top" / "a").chmod(mode)
    (tmp_path / "top").chmod(mode)

    assert remove_tree(tmp_path / "top")


@pytest.mark.isolation
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o300])
def test_a_closed_folder_makes_the_measure_incomplete_for_who_may_not_enter(tmp_path: Path, mode: int) -> None:
    _nest(tmp_path / "top", ["a"])
    (tmp_path / "top" / "a").chmod(mode)
    _nest(tmp_path / "top", ["b"], b"x" * 100_000)

    size = measure_tree(tmp_path / "top")
    (tmp_path / "top" / "a").chmod(0o700)

    assert size.complete == (os.geteuid() == 0)
    assert size.bytes >= 100_000, "the other folder is counted all the same"


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 1_000_000)
    os.link(tmp_path / "one", tmp_path / "two")

    size = measure_tree(tmp_path)

    assert size.entries == 2
    assert 1_000_000 <= size.bytes < 1_500_000


def test_counting_stops_where_it_is_told(tmp_path: Path) -> None:
    for index in range(20):
        (tmp_path / str(index)).touch()

    size = measure_tree(tmp_path, most_entries=10)

    assert (size.entries, size.complete) == (11, False)


def test_a_deep_tree_is_handed_over_and_what_its_links_name_is_not(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.touch()
    _nest(top, ["d"] * _DEEP)
    (top / "link").symlink_to(outside)
    # Only root may give files away; for others the walk alone is what is tried.
    owner = 65534 if os.geteuid() == 0 else os.geteuid()

    assert own_tree(top, owner, os.getegid())

    assert outside.stat().st_uid == os.geteuid()
    assert top.stat().st_uid == (top / "link").lstat().st_uid == (top / "d" / "d").stat().st_uid == owner
    assert remove_tree(top)


def test_a_folder_that_is_moved_out_while_it_is_open_does_not_lead_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way back up is not the way down: beside the moved one lies what has the names of the next."""
    outside, top = tmp_path / "outside", tmp_path / "top"
    for name in ("one", "two"):
        (top / name).mkdir(parents=True)
        (outside / name).mkdir(parents=True)
        (outside / name / "kept").touch()
    real = os.scandir

    def moving(folder: int) -> Any:
        for name in ("one", "two"):
            here = top / name
            if not (outside / "moved").exists() and here.exists() and os.path.samestat(here.stat(), os.stat(folder)):
                here.rename(outside / "moved")
        return real(folder)

    monkeypatch.setattr(os, "scandir", moving)

    assert remove_tree(top)
    assert (outside / "moved").exists()
    assert (outside / "one" / "kept").exists()
    assert (outside / "two" / "kept").exists()


def test_folders_that_move_meanwhile_never_lead_outside(tmp_path: Path) -> None:
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    (outside / "kept").touch()
    stop = threading.Event()

    moves: list[tuple[Callable[..., None], tuple[Path, ...]]] = [
        (os.rename, (top / "a", top / "c")),
        (os.symlink, (outside, top / "a")),
        (os.rename, (top / "c", top / "b" / "c")),
        (os.unlink, (top / "a",)),
        (os.rename, (top / "b" / "c", top / "a")),
    ]

    def shuffle() -> None:
        # A folder becomes a link to the outside and a folder again, and a deep one moves about.
        while not stop.is_set():
            for move, names in moves:
                with contextlib.suppress(OSError):
                    move(*names)

    thread = threading.Thread(target=shuffle)
    thread.start()
    try:
        for _ in range(40):
            with contextlib.suppress(OSError):
                _nest(top, ["a", "d", "d", "d"])
            with contextlib.suppress(OSError):
                _nest(top, ["b", "d", "d", "d"])
            measure_tree(top)
            remove_tree(top)
    finally:
        stop.set()
        thread.join()

    assert remove_tree(top)
    assert (outside / "kept").exists()
