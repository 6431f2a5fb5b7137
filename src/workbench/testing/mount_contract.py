"""The suite that every store of files passes. For the author of the next one:

class TestMyMounts(MountStoreContract):
    @pytest.fixture
    def open_mounts(self, tmp_path):       # -> a callable that opens the store; one call in each test, closed after it
        return lambda: MyMounts(tmp_path / "data")

    @pytest.fixture
    def folder_of(self, tmp_path):         # -> a callable: MountId -> the folder that a sandbox would see at /mnt/files
        return lambda mount: tmp_path / "data" / "files" / mount

The tests call `prepare` before they use a mount, and put things into its folder behind the store's back, as code in a
sandbox does. Quotas are asked for with a margin of a MiB, as disks count in blocks.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.contracts.mounts import MountStore
from workbench.errors import Conflict, NotFound
from workbench.model.mounts import FilePath, FilesWanted
from workbench.testing.mount_driving import MINE, OTHERS, ROOMY, FolderOf, names, put, read, there
from workbench.testing.mount_listings import ListingsContract
from workbench.testing.mount_uploads import QuotaContract, UploadsContract

# No call of a store waits for a guest.
_AT_ONCE_S = 5.0


def _link(place: Path, outside: Path) -> None:
    place.symlink_to(outside)


def _loop(place: Path, _: Path) -> None:
    place.symlink_to(place.name)


def _fifo(place: Path, _: Path) -> None:
    os.mkfifo(place)


def _socket(place: Path, _: Path) -> None:
    here = os.open(place.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{place.name}")
    finally:
        os.close(here)


ODD_THINGS = {"a link": _link, "a loop": _loop, "a FIFO": _fifo, "a socket": _socket}
OddThing = Callable[[Path, Path], None]


class ReadingContract:
    """Files are read as they were found, and nothing else is."""

    async def test_what_code_wrote_is_read(self, store: MountStore, inside: Path) -> None:
        """With its size and its time."""
        (inside / "data").mkdir()
        (inside / "data" / "in.csv").write_bytes(b"a,b\n1,2\n")
        async with store.open(MINE, FilePath("data/in.csv")) as opened:
            assert (opened.file.path, opened.file.size) == ("data/in.csv", 8)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", opened.file.modified_at)
            assert os.pread(opened.descriptor, 100, 4) == b"1,2\n"
            assert opened.is_unchanged()

    async def test_nothing_there_is_not_found(self, store: MountStore, inside: Path) -> None:
        """Also below what is no folder, and in a mount that nobody has used."""
        (inside / "file").write_bytes(b"x")
        for path in ("none", "none/below", "file/below"):
            with pytest.raises(NotFound, match="no such file"):
                await read(store, path)
        with pytest.raises(NotFound, match="no such file"):
            await read(store, "none", OTHERS)

    async def test_a_folder_is_not_read(self, store: MountStore, inside: Path) -> None:
        """And is called one."""
        (inside / "folder").mkdir()
        with pytest.raises(Conflict, match="folder"):
            await read(store, "folder")

    @pytest.mark.parametrize("make", ODD_THINGS.values(), ids=ODD_THINGS)
    async def test_what_is_no_file_is_not_opened(
        self, store: MountStore, inside: Path, tmp_path: Path, make: OddThing
    ) -> None:
        """Nor waited for."""
        secret = tmp_path / "outside"
        secret.write_bytes(b"secret")
        make(inside / "odd", secret)
        async with asyncio.timeout(_AT_ONCE_S):
            with pytest.raises(Conflict, match="odd"):
                await read(store, "odd")

    async def test_no_link_is_followed_on_the_way(self, store: MountStore, inside: Path, tmp_path: Path) -> None:
        """Be what it leads to outside, or in the same mount."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret").write_bytes(b"secret")
        (inside / "out").symlink_to(tmp_path / "outside")
        (inside / "real").mkdir()
        (inside / "real" / "file").write_bytes(b"x")
        (inside / "in").symlink_to("real")
        for path in ("out/secret", "in/file"):
            with pytest.raises(Conflict, match="link"):
                await read(store, path)

    async def test_a_change_in_place_is_noticed(self, store: MountStore, inside: Path) -> None:
        """Also one that leaves the size as it was; its version is another even if code sets its time back."""
        file = inside / "file"
        for change in (_append, _truncate, _overwrite, _overwrite_and_forge_the_time):
            file.write_bytes(b"before")
            async with store.open(MINE, FilePath("file")) as opened:
                assert opened.is_unchanged()
                change(file)
                assert opened.is_unchanged() == (change is _overwrite_and_forge_the_time), change.__name__
            async with store.open(MINE, FilePath("file")) as again:
                assert again.file.version != opened.file.version

    async def test_one_that_is_replaced_or_deleted_is_read_to_its_end(self, store: MountStore, inside: Path) -> None:
        """What was opened is whole."""
        (inside / "file").write_bytes(b"before")
        async with store.open(MINE, FilePath("file")) as opened:
            (inside / "new").write_bytes(b"after")
            (inside / "new").replace(inside / "file")
            await store.delete(MINE, FilePath("file"))
            assert os.pread(opened.descriptor, 100, 0) == b"before"
            assert opened.is_unchanged()


def _append(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(b"more")


def _truncate(file: Path) -> None:
    os.truncate(file, 3)


def _overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"BEFORE")


def _overwrite_and_forge_the_time(file: Path) -> None:
    found = file.stat()
    _overwrite(file)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


class DeletingContract:
    """What is deleted is gone, and nothing else."""

    async def test_a_file_is_deleted_once(self, store: MountStore, inside: Path) -> None:
        """And its folder stays."""
        await put(store, "data/in.csv")
        assert await store.delete(MINE, FilePath("data/in.csv")) == 1
        assert (inside / "data").is_dir()
        assert not (inside / "data" / "in.csv").exists()
        for path in ("data/in.csv", "none/below", "data/in.csv/below"):
            with pytest.raises(NotFound, match="no such file"):
                await store.delete(MINE, FilePath(path))
        with pytest.raises(NotFound, match="no such file"):
            await store.delete(OTHERS, FilePath("data/in.csv"))

    async def test_a_folder_goes_with_all_that_is_in_it(self, store: MountStore, inside: Path, tmp_path: Path) -> None:
        """Whatever that is, and not what its links lead to."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "kept").write_bytes(b"kept")
        (inside / "folder" / "deep" / "er").mkdir(parents=True)
        (inside / "folder" / "deep" / "file").write_bytes(b"x")
        (inside / "folder" / "out").symlink_to(tmp_path / "outside")
        os.mkfifo(inside / "folder" / "fifo")
        await put(store, "folder/deep/er/file")
        await put(store, "folder2")
        assert await store.delete(MINE, FilePath("folder")) == 4
        assert await names(store) == ["folder2"]
        assert not (inside / "folder").exists()
        assert (tmp_path / "outside" / "kept").read_bytes() == b"kept"

    @pytest.mark.parametrize("make", ODD_THINGS.values(), ids=ODD_THINGS)
    async def test_what_is_no_file_is_deleted_itself(
        self, store: MountStore, inside: Path, tmp_path: Path, make: OddThing
    ) -> None:
        """And not what it leads to."""
        kept = tmp_path / "outside"
        kept.write_bytes(b"kept")
        make(inside / "odd", kept)
        async with asyncio.timeout(_AT_ONCE_S):
            assert await store.delete(MINE, FilePath("odd")) == 1
        assert not there(inside / "odd")
        assert kept.read_bytes() == b"kept"

    async def test_nothing_is_deleted_through_a_link(self, store: MountStore, inside: Path, tmp_path: Path) -> None:
        """On the way to it."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "kept").write_bytes(b"kept")
        (inside / "out").symlink_to(tmp_path / "outside")
        with pytest.raises(Conflict, match="link"):
            await store.delete(MINE, FilePath("out/kept"))
        assert (tmp_path / "outside" / "kept").read_bytes() == b"kept"


class MountsContract:
    """One mount is not another, and each can be measured, saved and removed."""

    async def test_mounts_know_nothing_of_each_other(self, store: MountStore, folder_of: FolderOf) -> None:
        """The same path is another file."""
        await store.prepare(OTHERS)
        await put(store, "file", b"mine")
        with pytest.raises(NotFound):
            await read(store, "file", OTHERS)
        async with store.stage(OTHERS, FilePath("file"), name="theirs", quota=ROOMY) as staged:
            await staged.write(b"theirs")
            await staged.commit()
        assert (await read(store, "file"), await read(store, "file", OTHERS)) == (b"mine", b"theirs")
        await store.remove(MINE)
        assert await read(store, "file", OTHERS) == b"theirs"
        assert (folder_of(OTHERS) / "file").read_bytes() == b"theirs"

    async def test_a_mount_that_nobody_used_is_empty(self, store: MountStore) -> None:
        """And can be prepared as often as anyone likes."""
        await store.prepare(OTHERS)
        await store.prepare(OTHERS)
        assert await names(store, mount=OTHERS) == []
        use = await store.measure(OTHERS)
        assert (use.bytes, use.files, use.complete) == (0, 0, True)
        assert await store.staged(OTHERS, name="none") == 0
        await store.remove(OTHERS)
        await store.remove(OTHERS)

    async def test_what_is_in_it_is_measured(self, store: MountStore, inside: Path) -> None:
        """Of both sides, files and folders."""
        await put(store, "up/file", b"x" * 300_000)
        (inside / "code").mkdir()
        (inside / "code" / "file").write_bytes(b"x" * 200_000)
        use = await store.measure(MINE)
        assert use.files == 4
        assert use.complete
        assert 500_000 <= use.bytes < 700_000
        await store.delete(MINE, FilePath("up"))
        assert 200_000 <= (await store.measure(MINE)).bytes < 300_000

    async def test_after_saving_nothing_is_unsaved(self, store: MountStore, inside: Path) -> None:
        """Also what code wrote."""
        await put(store, "up")
        (inside / "code").write_bytes(b"x")
        use = await store.save(MINE)
        assert (use.unsaved, use.files) == (0, 2)
        assert (await store.measure(MINE)).unsaved == 0
        await store.prepare(MINE)
        assert await names(store) == ["code", "up"]

    async def test_a_mount_is_removed_with_all_that_is_staged(self, store: MountStore, inside: Path) -> None:
        """And what comes next under its name begins anew."""
        await put(store, "data/in.csv")
        (inside / "code").write_bytes(b"x")
        async with store.stage(MINE, FilePath("late"), name="late", quota=ROOMY) as staged:
            await staged.write(b"half")
        await store.remove(MINE)
        assert not there(inside)
        await store.prepare(MINE)
        assert await names(store) == []
        assert await store.staged(MINE, name="late") == 0
        assert (await store.list(MINE, FilesWanted())).next_after is None

    async def test_an_upload_does_not_bring_a_mount_back_that_was_removed(
        self, store: MountStore, inside: Path
    ) -> None:
        """However far it was."""
        async with store.stage(MINE, FilePath("data/late"), name="late", quota=ROOMY) as staged:
            await staged.write(b"whole")
            await store.remove(MINE)
            with pytest.raises(Conflict, match="removed"):
                await staged.commit()
        assert not there(inside)
        await store.prepare(MINE)
        assert await names(store) == []

    async def test_it_may_be_closed_twice(self, store: MountStore) -> None:
        """With nothing used, too."""
        await store.aclose()
        await store.aclose()


class MountStoreContract(
    UploadsContract, QuotaContract, ReadingContract, ListingsContract, DeletingContract, MountsContract
):
    """Subclass it, with the two fixtures above."""
