"""Nothing that a guest puts into its mount leads the host's own writing out of it, or makes it wait."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import guest_files
from workbench.guest_files import open_beneath
from workbench.guest_trees import remove_tree
from workbench.host.cells.cell_spool import CellSpool
from workbench.host.cells.mount_files import Mount, MountRefused
from workbench.host.cells.whole_output import Wanted, Written, write_whole
from workbench.model.execution import Piece, PieceKind
from workbench.model.ids import CellId

NAME = "c-1.stdout.txt"
SWAPPING_S = 1.0


@pytest.fixture(params=["openat2", "without openat2"])
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same on a kernel that does not know the call."""
    if request.param != "openat2":
        monkeypatch.setattr(guest_files, "_OPENAT2", 100_000)
    return str(request.param)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


async def written(files: Path, text: str = "x" * 1000) -> Written:
    """What a cell with that output gets."""
    spool = CellSpool(files.parent / f"spool-{time.monotonic_ns()}", 2**20)
    spool.append(Piece(kind=PieceKind.STDOUT, text=text))
    spool.end()
    wanted = Wanted(texts=["stdout"], formats={})
    return write_whole(spool, Mount(files, 2**30, 1000), CellId("c-1"), wanted, threading.Event())["stdout"]


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


async def test_without_anything_in_the_way_the_file_is_the_guests_own(call: str, files: Path) -> None:
    if os.geteuid() == 0:
        os.chown(files, 1000, 1000)
    assert (await written(files)).path == f"/mnt/files/outputs/{NAME}"
    for path, mode in ((files / "outputs", 0o755), (files / "outputs" / NAME, 0o644)):
        found = path.stat()
        assert stat.S_IMODE(found.st_mode) == mode
        assert found.st_uid == files.stat().st_uid


async def test_a_folder_that_is_a_link_is_not_followed(call: str, files: Path, outside: Path) -> None:
    (files / "outputs").symlink_to(outside)
    told = await written(files)
    assert told.path is None
    assert "/mnt/files/outputs" in told.reason
    assert is_empty(outside)


@pytest.mark.parametrize("target", ["../outside", "/proc/self/root/tmp", "outputs"])
async def test_no_kind_of_link_is_followed(call: str, files: Path, outside: Path, target: str) -> None:
    (files / "outputs").symlink_to(target)
    assert (await written(files)).path is None
    assert is_empty(outside)


async def test_a_file_where_the_folder_should_be_is_named(call: str, files: Path) -> None:
    (files / "outputs").write_text("mine")
    told = await written(files)
    assert told.reason == "/mnt/files/outputs is not a folder: remove what is there"
    assert (files / "outputs").read_text() == "mine"


def _fifo(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def _link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "target")


def _hard_link(path: Path, outside: Path) -> None:
    (outside / "target").write_text("theirs")
    path.hardlink_to(outside / "target")


@pytest.mark.parametrize("make", [_fifo, _link, _hard_link])
async def test_whatever_has_the_files_name_already_is_left_alone_and_nobody_waits(
    call: str, files: Path, outside: Path, make: Callable[[Path, Path], None]
) -> None:
    (files / "outputs").mkdir()
    make(files / "outputs" / NAME, outside)
    before = [path.read_text() for path in outside.iterdir()]
    told = await written(files)
    assert told.reason == f"/mnt/files/outputs/{NAME} exists already"
    assert [path.read_text() for path in outside.iterdir()] == before


async def test_a_fifo_where_the_folder_should_be_makes_nobody_wait(call: str, files: Path) -> None:
    os.mkfifo(files / "outputs")
    assert (await written(files)).path is None


async def test_a_folder_that_is_swapped_for_a_link_all_the_time_leads_nowhere(
    call: str, files: Path, outside: Path
) -> None:
    stop = threading.Event()

    def swap() -> None:
        folder, link = files / "real", files / "link"
        while not stop.is_set():
            folder.mkdir(exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(outside)
            for one in (folder, link):
                # The host made a folder of its own at the same moment: that is taken away like any other.
                with contextlib.suppress(OSError):
                    os.rename(one, files / "outputs")
                with contextlib.suppress(OSError):
                    os.rename(files / "outputs", files / "away")
                remove_tree(files / "away")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        until, tries = time.monotonic() + SWAPPING_S, 0
        while time.monotonic() < until:
            await written(files)
            tries += 1
    finally:
        stop.set()
        swapper.join()
    assert tries > 10
    assert is_empty(outside)


@pytest.mark.parametrize("name", ["", ".", "..", "a//b", "a/./b", "a/../b", "a/", "../x", "/etc/passwd"])
def test_only_plain_paths_are_opened(call: str, name: str, files: Path) -> None:
    top = os.open(files, os.O_PATH | os.O_DIRECTORY)
    try:
        with pytest.raises(OSError, match="cross-device") as caught:
            open_beneath(top, name, os.O_RDONLY)
        assert caught.value.errno == errno.EXDEV
    finally:
        os.close(top)


def test_a_closed_folder_is_a_reason_and_no_failure(files: Path) -> None:
    if os.geteuid() == 0:
        return  # root may enter any folder
    (files / "outputs").mkdir(mode=0o000)
    with pytest.raises(MountRefused, match="Permission denied"), Mount(files, 2**30, 1000).folder("outputs"):
        pass
