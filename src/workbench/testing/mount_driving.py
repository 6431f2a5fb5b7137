"""What the suites of stores of files share: one store, its folder as code inside sees it, and short words for both."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from workbench.contracts.mounts import MountStore
from workbench.model.ids import MountId
from workbench.model.mounts import MOST_PAGE, FilePath, FilesWanted, MountFile, Quota

OpenMounts = Callable[[], MountStore]
FolderOf = Callable[[MountId], Path]

MINE, OTHERS = MountId("mine"), MountId("others")
MIB = 1024 * 1024
ROOMY = Quota(bytes=64 * MIB, files=10_000)
PIECE = 64 * 1024


class OpenedMounts:
    """What the suites have in common."""

    @pytest_asyncio.fixture
    async def store(self, open_mounts: OpenMounts) -> AsyncIterator[MountStore]:
        """A store, closed after the test."""
        store = open_mounts()
        await store.prepare(MINE)
        yield store
        await store.aclose()

    @pytest.fixture
    def inside(self, folder_of: FolderOf) -> Path:
        """The folder of MINE, to act as code in a sandbox does."""
        folder = folder_of(MINE)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


async def put(
    store: MountStore, path: str, data: bytes = b"x", *, quota: Quota = ROOMY, name: str = "", sized: bool = True
) -> MountFile:
    """Upload it in one go, and leave nothing staged if that fails."""
    name = name or f"put-{abs(hash(path)):x}"
    size = len(data) if sized else None
    async with store.stage(MINE, FilePath(path), name=name, quota=quota, size=size) as staged:
        try:
            for start in range(0, len(data), PIECE):
                await staged.write(data[start : start + PIECE])
            return await staged.commit()
        finally:
            await staged.discard()


async def read(store: MountStore, path: str, mount: MountId = MINE) -> bytes:
    """All of a file."""
    pieces = []
    async with store.open(mount, FilePath(path)) as opened:
        offset = 0
        while piece := os.pread(opened.descriptor, PIECE, offset):
            pieces.append(piece)
            offset += len(piece)
    return b"".join(pieces)


async def names(store: MountStore, prefix: str = "", limit: int = MOST_PAGE, mount: MountId = MINE) -> list[str]:
    """Paths of all pages."""
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await store.list(mount, FilesWanted(prefix=prefix, after=after, limit=limit))
        assert len(page.files) <= limit
        assert page.next_after != after, "the next page begins where this one did"
        found += [file.path for file in page.files]
        after = page.next_after
    return found


def there(path: Path) -> bool:
    """Whether anything is, be it a link to nowhere."""
    return os.path.lexists(path)
