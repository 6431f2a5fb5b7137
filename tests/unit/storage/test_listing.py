"""Lists of what only a hostile or a very busy guest makes, at a bounded price for each page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench.errors import InvalidRequest
from workbench.guest_trees import remove_tree
from workbench.model.mounts import FilesFound, FilesWanted
from workbench.storage import listing
from workbench.storage.listing import Listing, place_asked, place_told

Page = Callable[..., FilesFound]
# Twenty thousand entries take some 30 ms; the machine may be busy.
PAGE_S = 2.0


@pytest.fixture
def folder(short_dir: Path) -> Path:
    (short_dir / "mount").mkdir()
    return short_dir / "mount"


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    """One page, within its time."""
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    descriptors = len(os.listdir("/proc/self/fd"))

    def of(**wanted: object) -> FilesFound:
        # Its own time, and not that of whatever else the machine does.
        began = time.thread_time()
        found = Listing(top, FilesWanted(**wanted)).page()  # type: ignore[arg-type]
        assert time.thread_time() - began < PAGE_S
        return found

    yield of
    assert len(os.listdir("/proc/self/fd")) == descriptors, "nothing is left open"
    os.close(top)


def everything(page: Page, **wanted: object) -> tuple[list[str], int, int]:
    """Paths, what was skipped, and in how many pages."""
    told: list[str] = []
    after, skipped, pages = "", 0, 0
    while True:
        found = page(after=after, **wanted)
        told += [file.path for file in found.files]
        skipped, pages = skipped + found.skipped, pages + 1
        if found.next_after is None:
            return told, skipped, pages
        assert found.next_after != after
        after = found.next_after


def make(folder: Path, number: int, pattern: str = "{:06}") -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = [pattern.format(index) for index in range(number)]
    held = os.open(folder, os.O_RDONLY)
    for name in names:
        os.mknod(name, dir_fd=held)
    os.close(held)
    return names


def test_twenty_thousand_files_in_one_folder_come_in_pages(folder: Path, page: Page) -> None:
    names = make(folder / "many", 20_000)
    told, skipped, pages = everything(page, limit=500)
    assert told == [f"many/{name}" for name in names]
    assert (skipped, pages) == (0, 40)


def test_a_folder_with_more_than_a_page_looks_at_is_listed_to_its_end(
    folder: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MOST_LOOKED_AT", 100)
    expected = ["a"]
    make(folder, 1, "a")
    for deep in ("big", "big/deep", "big/deep/er", "late"):
        expected += [f"{deep}/{name}" for name in make(folder / deep, 1000)]
    told, _, pages = everything(page, limit=500)
    assert told == sorted(expected)
    assert pages <= 25


def test_a_page_of_one_goes_through_the_same(folder: Path, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MOST_LOOKED_AT", 10)
    monkeypatch.setattr(listing, "_MOST_KEYS", 4)
    expected = [f"x/{name}" for name in make(folder / "x", 30)] + [f"x/y/{name}" for name in make(folder / "x/y", 30)]
    for limit in (1, 2, 7):
        assert everything(page, limit=limit)[0] == sorted(expected)


def test_ten_thousand_empty_folders_have_an_end(folder: Path, page: Page) -> None:
    for number in range(100):
        for below in range(100):
            (folder / f"{number:03}" / f"{below:03}").mkdir(parents=True)
    make(folder, 1, "~")
    told, skipped, pages = everything(page)
    assert (told, skipped) == (["~"], 0)
    assert pages <= 5


def test_names_that_are_no_text_do_not_stop_the_list(folder: Path, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MOST_KEYS", 16)
    for number in range(300):
        os.mknod(os.fsencode(folder) + b"/\xff" + f"{number:04}".encode())
        os.symlink("nowhere", folder / f"link{number:04}")
    make(folder, 1, "~")
    told, skipped, _ = everything(page, limit=10)
    assert (told, skipped) == (["~"], 600)


def test_deep_folders_are_listed_as_far_as_a_path_can_be_told(folder: Path, page: Page) -> None:
    held = os.open(folder, os.O_RDONLY)
    for _ in range(2100):
        os.mknod("f", dir_fd=held)
        os.mkdir("d", dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.close(held)
    told, skipped, _ = everything(page, limit=500)
    assert max(len(path) for path in told) in (3999, 4000)
    assert told == sorted(told)
    assert len(set(told)) == len(told) == 2000
    assert skipped == 2, "the first file and the first folder that are too deep, and nothing below"
    assert remove_tree(folder)
    folder.mkdir()


def test_a_closed_folder_is_skipped_once(folder: Path, page: Page) -> None:
    make(folder / "closed", 3)
    make(folder / "open", 3)
    (folder / "closed").chmod(0)
    told, skipped, _ = everything(page, limit=1)
    expected = [f"open/{number:06}" for number in range(3)]
    if os.geteuid() == 0:
        assert (told[3:], skipped) == (expected, 0)
    else:
        assert (told, skipped) == (expected, 1)
    (folder / "closed").chmod(0o700)


def test_a_prefix_is_found_without_a_look_at_all_the_rest(
    folder: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MOST_LOOKED_AT", 5)
    make(folder, 500)
    make(folder / "data" / "in", 3)
    assert everything(page, prefix="data/in/0000")[2] == 1
    (folder / "out").symlink_to("/etc")
    assert everything(page, prefix="out/pass") == ([], 1, 1)


@pytest.mark.parametrize("place", [b"a/b", b"\xff\xfe", "é 🎉".encode(), b"100%", b"%41", b"a\nb\0", b""])
def test_a_place_is_text_and_comes_back(place: bytes) -> None:
    told = place_told(place)
    told.encode("ascii")
    assert place_asked(told) == place


def test_a_place_that_is_no_text_is_refused(page: Page) -> None:
    with pytest.raises(InvalidRequest, match="pass on"):
        page(after="\ud800")
    assert page(after="made up, é").next_after is None
