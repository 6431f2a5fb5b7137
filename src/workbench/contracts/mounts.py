"""MountStore: files of sessions, wherever they are kept.

For the author of the next one: implement this and pass `workbench.testing.mount_contract`. Code inside works on a local
folder at ordinary speed, so every store has its files in a folder of this machine while a sandbox lives; one that keeps
them elsewhere brings them here before and takes them there afterwards. What may be raised is said once, here:

* `StoreUnavailable`: the folder, or what lies behind it, cannot be read or written, or the machine's disk is full.
* `QuotaExceeded`: there is no room for it within the quota; nothing was changed.
* `NotFound`: no such file; `Conflict`: something else is there, say a folder or a link, which is never followed.

Guests change everything below a mount while it is looked at. No method opens anything through a link, a device or a
FIFO, waits for one, or sees anything outside the mount.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, FilesFound, FilesWanted, MountFile, MountUse, Quota

MayReplace = Callable[[MountFile | None], None]
"""told what is there, or None; raises if that is not to be replaced"""


class OpenFile(Protocol):
    """A regular file, held open as it was found. Closed by leaving the context that gave it."""

    @property
    def file(self) -> MountFile:
        """As it was when it was opened."""
        ...

    @property
    def descriptor(self) -> int:
        """To be read from, at any place."""
        ...

    def is_unchanged(self) -> bool:
        """Whether what was read so far belongs together: nobody has written to it since it was opened."""
        ...


class StagedFile(Protocol):
    """What has come of an upload so far: outside of the mount, for one writer. Closed by leaving its context."""

    @property
    def offset(self) -> int:
        """How many bytes are there."""
        ...

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Behind what is there. Raises: QuotaExceeded."""
        ...

    async def take(self, source: int, most: int) -> int:
        """The same from a descriptor that does not block, without a way through our memory: how many bytes it had, at
        most so many; 0 if it has none just now.

        Raises:
            EOFError: no more will come.
        """
        ...

    async def commit(self, may: MayReplace | None = None) -> MountFile:
        """Put it in its place, whole and at once, instead of what was there; folders are made. When this returns, it
        is as durable as the store promises.

        `may` is asked in the moment before, on any thread; what it raises is raised, and nothing is changed. No other
        commit of this process comes in between, and what it is told is not there is not replaced.

        Raises:
            Conflict: a folder is there, or something that is none is on the way to it.
        """
        ...

    async def discard(self) -> None:
        """Nothing of it is left. May be called after all else failed."""
        ...


class MountFolders(Protocol):
    """Where files of sessions lie, for who makes and ends sandboxes."""

    async def prepare(self, mount: MountId) -> None:
        """Have its folder on this machine with everything that is kept of it, before a sandbox is made on it."""
        ...

    async def remove(self, mount: MountId) -> None:
        """Drop the mount and everything in it, with all that is staged for it; nothing happens if there is none.

        Raises:
            Conflict: a sandbox uses it.
        """
        ...

    def save_soon(self, mount: MountId) -> None:
        """Code has written, or may have: have that saved in the background, once for however many calls. Costs nothing
        where there is nothing to save. `aclose` waits for it, for a while.
        """
        ...

    def retry_saves(self) -> tuple[str, ...]:
        """Have those saved in the background whose last save left something, also if that was another process's; and
        what was in the way since the last call, for the log.
        """
        ...

    async def drop_staged(self, older_than_s: float) -> int:
        """Uploads that nobody came back to, of all mounts; how many there were."""
        ...


class MountStore(MountFolders, Protocol):
    """Files of sessions. Owned by who wired it."""

    async def list(self, mount: MountId, wanted: FilesWanted) -> FilesFound:
        """Files in the order of their paths; with whatever changes meanwhile, none that stays is left out or told
        twice over all pages. Takes a bounded time for each page.
        """
        ...

    def open(self, mount: MountId, path: FilePath) -> AbstractAsyncContextManager[OpenFile]:
        """For reading. Raises: NotFound, Conflict."""
        ...

    def stage(
        self, mount: MountId, path: FilePath, *, name: str, quota: Quota, size: int | None = None
    ) -> AbstractAsyncContextManager[StagedFile]:
        """The upload of that name, as far as it came before, or a new one. Leaving the context keeps what is there.

        `size` is what it will have in the end, if that is known: room is kept for it at once.

        Raises:
            Conflict: another is writing to it just now.
            QuotaExceeded: there is no room for it.
        """
        ...

    async def staged(self, mount: MountId, *, name: str) -> int:
        """How far an upload came; 0 if nothing is there of it."""
        ...

    async def unstage(self, mount: MountId, *, name: str) -> None:
        """Nothing is left of an upload, nor of its line, however full the mount is.

        Raises:
            Conflict: another is writing to it just now.
        """
        ...

    async def remark(self, mount: MountId, *, name: str, text: str) -> None:
        """Keep a line with an upload of that name, in place of the last one. It outlives the upload: it is dropped with
        those that nobody came back to.
        """
        ...

    async def remarked(self, mount: MountId, *, name: str) -> str:
        """The line; empty if there is none."""
        ...

    async def delete(self, mount: MountId, path: FilePath) -> int:
        """A file, or a folder with all that is in it; a link itself, and not what it leads to. How many files there
        were.

        Raises:
            NotFound: nothing is there.
            Conflict: a folder into which something is being written all the time; what could be was deleted.
        """
        ...

    async def measure(self, mount: MountId) -> MountUse:
        """What it holds."""
        ...

    async def save(self, mount: MountId) -> MountUse:
        """Make durable what code wrote, as far as the store does that by itself at all; what is left to do after it."""
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...
