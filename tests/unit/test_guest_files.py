"""Files where a guest is at home: opened without following or waiting, on kernels that know openat2 and others."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import guest_files
from workbench.guest_files import NotAFile, make_folders, missing_beneath, open_beneath, open_file, open_folder


@pytest.fixture(params=["openat2", "without openat2"], autouse=True)
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that no kernel knows gives ENOSYS."""
    if request.param != "openat2":
        monkeypatch.setattr(guest_files, "_OPENAT2", 100_000)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[int]:
    folder = tmp_path / "top"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_bytes(b"data")
    (folder / "a" / "link").symlink_to("b")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"secret")
    (folder / "out").symlink_to(tmp_path / "outside")
    descriptors = len(os.listdir("/proc/self/fd"))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield held
    os.close(held)
    assert len(os.listdir("/proc/self/fd")) == descriptors, "nothing is left open"


def read(top: int, path: str) -> bytes:
    held = open_file(top, path)
    try:
        return os.read(held, 100)
    finally:
        os.close(held)


def refused(top: int, path: str) -> int:
    with pytest.raises(OSError) as caught:  # noqa: PT011
        read(top, path)
    assert caught.value.errno is not None
    return caught.value.errno


def test_a_file_is_read_at_any_depth(top: int) -> None:
    assert read(top, "a/b/file") == b"data"


@pytest.mark.parametrize("path", ["out/file", "a/link/file", "out/none"])
def test_a_link_on_the_way_is_called_one(top: int, path: str) -> None:
    assert refused(top, path) == errno.ELOOP


def test_what_is_not_there_is_told_as_ever(top: int) -> None:
    assert refused(top, "a/none") == errno.ENOENT
    assert refused(top, "none/x") == errno.ENOENT
    assert refused(top, "a/b/file/x") == errno.ENOTDIR
    assert refused(top, "x" * 300) == errno.ENAMETOOLONG


@pytest.mark.parametrize("path", ["", "/", "..", "a/..", "a/../a", "./a", "a//b", "/etc/passwd", "a/"])
def test_only_plain_paths_are_taken(top: int, path: str) -> None:
    assert refused(top, path) == errno.EXDEV


def test_a_path_is_not_cut_at_a_nul(top: int) -> None:
    assert refused(top, "a/b/file\0.txt") == errno.EINVAL


def test_folders_links_fifos_and_devices_are_named_and_not_opened(top: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "top" / "fifo")
    kinds = {"a": "a folder", "out": "a link", "fifo": "a FIFO"}
    if os.geteuid() == 0:
        os.mknod(tmp_path / "top" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        kinds["null"] = "a device"
    for path, what in kinds.items():
        with pytest.raises(NotAFile) as caught:
            open_file(top, path)
        assert caught.value.what == what


def test_a_fifo_wakes_nobody(top: int, tmp_path: Path) -> None:
    """Who waits to write to it would be let in by a reader that only looked."""
    os.mkfifo(tmp_path / "top" / "fifo")
    with pytest.raises(NotAFile):
        open_file(top, "fifo")
    with pytest.raises(OSError, match="No such device"):
        os.close(os.open(tmp_path / "top" / "fifo", os.O_WRONLY | os.O_NONBLOCK))


def test_nobody_waits_for_a_lease(top: int, tmp_path: Path) -> None:
    holder = os.open(tmp_path / "top" / "a" / "b" / "file", os.O_RDWR)
    # The kernel tells the holder of a lease that someone is coming.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        began = time.monotonic()
        assert refused(top, "a/b/file") == errno.EAGAIN
        assert time.monotonic() - began < 2
        fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        os.close(holder)
        signal.signal(signal.SIGIO, before)
    assert read(top, "a/b/file") == b"data"


def test_a_folder_is_opened_and_nothing_else_as_one(top: int) -> None:
    for path in ("", "a", "a/b"):
        os.close(open_folder(top, path))
    for path, number in (("a/b/file", errno.ENOTDIR), ("out", errno.ELOOP), ("a/link", errno.ELOOP)):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            open_folder(top, path)
        assert caught.value.errno == number


def test_missing_names_are_counted(top: int) -> None:
    told = {"a": 0, "a/b/file": 0, "a/c": 1, "x": 1, "x/y/z": 3, "a/b/c/d": 2, "out/x": 0, "a/b/file/x": 0}
    assert {path: missing_beneath(top, path) for path in told} == told


def test_folders_are_made_once_and_never_through_a_link(top: int, tmp_path: Path) -> None:
    for _ in range(2):
        os.close(make_folders(top, "a/new/deep", None))
    assert (tmp_path / "top" / "a" / "new" / "deep").is_dir()
    for path, number in (("out/new", errno.ELOOP), ("a/b/file/new", errno.ENOTDIR)):
        with pytest.raises(OSError) as caught:  # noqa: PT011
            make_folders(top, path, None)
        assert caught.value.errno == number
    assert os.listdir(tmp_path / "outside") == ["file"]


def test_a_mount_of_another_disk_is_not_entered(tmp_path: Path) -> None:
    """/proc is one that is there for everyone."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for path in ("proc/self/status", "proc"):
            with pytest.raises(OSError) as caught:  # noqa: PT011
                os.close(open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            assert caught.value.errno in (errno.EXDEV, errno.ELOOP)
    finally:
        os.close(root)
