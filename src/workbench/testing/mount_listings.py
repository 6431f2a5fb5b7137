"""Part of `testing.mount_contract`: lists are in order, in pages, and true of what stays."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from workbench.contracts.mounts import MountStore
from workbench.model.mounts import FilesWanted
from workbench.testing.mount_driving import MINE, OpenedMounts, names, put

# In the order of their bytes, which is that of their characters: `-` and `.` come before `/`, `0` after it.
TREE = (
    "A",
    "a-b",
    "a.txt",
    "a/b/c",
    "a/b/d",
    "a/bc",
    "a/z",
    "a0",
    "b/x",
    "data/2025.csv",
    "data/2026.csv",
    "é",
    "🎉/x",
)


def plant(folder: Path, paths: tuple[str, ...] = TREE) -> None:
    """Files, as code makes them."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(path.encode())


class ListingsContract(OpenedMounts):
    """What is listed, and what is not."""

    async def test_files_are_listed_in_the_order_of_their_paths(self, store: MountStore, inside: Path) -> None:
        """With their sizes, of both sides; folders are in their paths only."""
        plant(inside)
        (inside / "empty" / "folder").mkdir(parents=True)
        page = await store.list(MINE, FilesWanted())
        assert tuple(file.path for file in page.files) == TREE
        assert [file.size for file in page.files] == [len(path.encode()) for path in TREE]
        assert (page.next_after, page.skipped) == (None, 0)
        made = await put(store, "new")
        assert made in (await store.list(MINE, FilesWanted())).files

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 12, 13, 14, 500])
    async def test_pages_of_any_size_make_the_whole(self, store: MountStore, inside: Path, limit: int) -> None:
        """Each file in one of them."""
        plant(inside)
        assert tuple(await names(store, limit=limit)) == TREE

    @pytest.mark.parametrize(
        "prefix", ["", "a", "a/", "a/b", "a/b/", "a/b/c", "a/b/c/", "a0", "data/2026", "none", "none/x", "é", "🎉"]
    )
    async def test_a_prefix_chooses_by_the_path(self, store: MountStore, inside: Path, prefix: str) -> None:
        """It need not end where a folder does."""
        plant(inside)
        wanted = [path for path in TREE if path.startswith(prefix)]
        assert await names(store, prefix=prefix) == wanted
        assert await names(store, prefix=prefix, limit=1) == wanted

    async def test_what_stays_is_told_once_whatever_else_comes_and_goes(self, store: MountStore, inside: Path) -> None:
        """The place of the next page need not be there any more."""
        chance = random.Random(7)  # noqa: S311
        for _ in range(10):
            plant(inside)
            stays = set(TREE[::2])
            told: list[str] = []
            after: str | None = ""
            while after is not None:
                page = await store.list(MINE, FilesWanted(after=after, limit=2))
                told += [file.path for file in page.files]
                after = page.next_after
                for path in chance.sample(TREE[1::2], 3):
                    (inside / path).unlink(missing_ok=True)
                new = inside / chance.choice(("", "a", "a/b", "data")) / f"new{chance.random()}"
                new.write_bytes(b"x")
            assert stays <= set(told)
            assert len(told) == len(set(told))
            assert told == sorted(told, key=str.encode)

    async def test_a_folder_that_is_gone_ends_no_list(self, store: MountStore, inside: Path) -> None:
        """Nor one that has become a file, or a link."""
        plant(inside)
        page = await store.list(MINE, FilesWanted(limit=4))
        assert page.files[-1].path == "a/b/c"
        assert page.next_after is not None
        for name in ("c", "d"):
            (inside / "a" / "b" / name).unlink()
        (inside / "a" / "b").rmdir()
        (inside / "a" / "b").symlink_to("..")
        page = await store.list(MINE, FilesWanted(after=page.next_after, limit=3))
        assert [file.path for file in page.files] == ["a/bc", "a/z", "a0"]

    async def test_what_is_no_file_or_has_no_name_in_text_is_counted_and_not_told(
        self, store: MountStore, inside: Path, tmp_path: Path
    ) -> None:
        """Once over all pages, and nothing is followed."""
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret").write_bytes(b"x")
        plant(inside, ("a/1", "a/2", "b"))
        (inside / "a" / "link").symlink_to("1")
        (inside / "out").symlink_to(tmp_path / "outside")
        (inside / "loop").symlink_to(".")
        os.mkfifo(inside / "a" / "fifo")
        for name in (b"\xff\xfe", b"a/\xff", b"a/\x80", b"a/1\xff"):
            os.mknod(os.fsencode(inside) + b"/" + name)
        os.mkdir(os.fsencode(inside) + b"/\xe9")
        for limit in (1, 2, 500):
            told, skipped = [], 0
            after: str | None = ""
            while after is not None:
                after.encode()
                page = await store.list(MINE, FilesWanted(after=after, limit=limit))
                told += [file.path for file in page.files]
                skipped += page.skipped
                after = page.next_after
            assert (told, skipped) == (["a/1", "a/2", "b"], 9)

    async def test_many_empty_folders_come_to_an_end(self, store: MountStore, inside: Path) -> None:
        """In few pages."""
        for number in range(3000):
            (inside / f"{number:05}").mkdir()
        plant(inside, ("00001/x", "02999/x", "z"))
        pages, after = 0, ""
        told: list[str] = []
        while True:
            page = await store.list(MINE, FilesWanted(after=after))
            pages += 1
            told += [file.path for file in page.files]
            if page.next_after is None:
                break
            assert page.next_after != after
            after = page.next_after
        assert told == ["00001/x", "02999/x", "z"]
        assert pages <= 10
