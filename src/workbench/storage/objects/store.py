"""Mounts in an S3-compatible store: a folder of this machine is the working copy, the bucket is what lasts.

An upload is in the bucket before it is answered. What code wrote is sent when its cell has ended, and by the
caretaker's rounds; a folder that is not here is brought back before it is used. One machine at a time may have a mount.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from workbench.contracts.mounts import MayReplace, OpenFile, StagedFile
from workbench.data_folder import DataFolder
from workbench.errors import NotFound, StoreUnavailable
from workbench.model.ids import MountId
from workbench.model.mounts import INSIDE, FilePath, FilesFound, FilesWanted, MountFile, MountUse, Quota
from workbench.storage.disk import DiskMountStore
from workbench.storage.objects.bucket import Bucket
from workbench.storage.objects.connecting import BucketAddress
from workbench.storage.objects.copying import AT_ONCE
from workbench.storage.objects.gates import Gates
from workbench.storage.objects.replica import Replica
from workbench.storage.objects.saving import BackgroundSaves
from workbench.storage.staging import Staged

P = ParamSpec("P")
T = TypeVar("T")

# Calls that wait for the object store at once; further ones wait for these.
_CALLS_AT_ONCE = 16


class ObjectMountStore:
    """A MountStore with its files in a bucket."""

    def __init__(self, data: DataFolder, address: BucketAddress, *, close_s: float) -> None:
        self._data = data
        self._disk = DiskMountStore(data, makes_tops=False)
        self._bucket = Bucket(address)
        # Threads of our own: a store that hangs does not take those by which files are listed and read.
        self._calls = ThreadPoolExecutor(_CALLS_AT_ONCE, "files-calls")
        self._sending = ThreadPoolExecutor(AT_ONCE, "files-sending")
        self._saves = BackgroundSaves(self._leaves_something)
        # Whoever waits for another call here waits without a thread: that one needs some to come to its end.
        self._gates = Gates()
        self._ready: dict[MountId, str] = {}
        """mounts whose folder is known to have everything, and which folder that was"""
        self._close_s = close_s
        self._looked_around = False
        self._closed = False

    async def prepare(self, mount: MountId) -> None:
        """As the contract has it: one look if the folder is here."""
        await self._prepare(mount, lambda: True)

    async def _prepare(self, mount: MountId, is_wanted: Callable[[], bool]) -> None:
        replica = self._replica(mount)
        if self._is_ready(mount, replica):
            return
        async with self._gates.through(mount):
            if not self._is_ready(mount, replica):
                made = await self._finished(replica.restore, is_wanted)
                if made is not None:
                    self._ready[mount] = made

    def _is_ready(self, mount: MountId, replica: Replica) -> bool:
        here = replica.incarnation()
        return here is not None and self._ready.get(mount) == here

    async def list(self, mount: MountId, wanted: FilesWanted) -> FilesFound:
        """As the contract has it."""
        return await self._disk.list(mount, wanted)

    def open(self, mount: MountId, path: FilePath) -> contextlib.AbstractAsyncContextManager[OpenFile]:
        """As the contract has it."""
        return self._disk.open(mount, path)

    @contextlib.asynccontextmanager
    async def stage(
        self, mount: MountId, path: FilePath, *, name: str, quota: Quota, size: int | None = None
    ) -> AsyncIterator[StagedFile]:
        """As the contract has it."""
        self._replica(mount).check_path(path.encode())
        async with self._disk.stage(mount, path, name=name, quota=quota, size=size) as staged:
            yield _SentFirst(staged, lambda may: self._commit(mount, path, staged, may))

    async def _commit(self, mount: MountId, path: FilePath, staged: Staged, may: MayReplace | None) -> MountFile:
        """The bucket comes first: if it refuses, nothing has changed here."""
        async with self._gates.through((mount, path)):
            if may is not None:
                # Before the bucket has it. Only what code inside does meanwhile is found out later.
                may(await self._there(mount, path))
            if not staged.is_there():
                # Removed with its mount, of which nothing is made anew here: it says so.
                return await staged.commit()
            try:
                # Again: what takes as long as an upload may have outlived the folder.
                await self._prepare(mount, staged.is_there)
                return await self._put(mount, path, staged, may)
            except BaseException:
                # What is here instead of it, if anything, has to go there again; also if only the answer got lost.
                self._saves.soon(mount)
                raise

    async def _there(self, mount: MountId, path: FilePath) -> MountFile | None:
        try:
            async with self._disk.open(mount, path) as opened:
                return opened.file
        except NotFound:
            return None

    async def _put(self, mount: MountId, path: FilePath, staged: Staged, may: MayReplace | None) -> MountFile:
        putting = self._replica(mount).putting(path.encode(), staged.descriptor, staged.offset)
        await self._in_thread(putting.__enter__)
        try:
            made = await staged.commit(may)
        except BaseException as problem:
            # On threads of others: it lets go of what those that have all of ours may wait for, also at the end.
            await asyncio.to_thread(putting.__exit__, type(problem), problem, problem.__traceback__)
            raise
        await asyncio.to_thread(putting.__exit__, None, None, None)
        return made

    async def staged(self, mount: MountId, *, name: str) -> int:
        """As the contract has it."""
        return await self._disk.staged(mount, name=name)

    async def unstage(self, mount: MountId, *, name: str) -> None:
        """As the contract has it."""
        await self._disk.unstage(mount, name=name)

    async def remark(self, mount: MountId, *, name: str, text: str) -> None:
        """As the contract has it."""
        await self._disk.remark(mount, name=name, text=text)

    async def remarked(self, mount: MountId, *, name: str) -> str:
        """As the contract has it."""
        return await self._disk.remarked(mount, name=name)

    async def delete(self, mount: MountId, path: FilePath) -> int:
        """As the contract has it: here first, as it can be deleted there whenever that answers."""
        try:
            deleted = await self._disk.delete(mount, path)
        finally:
            self._saves.soon(mount)
        try:
            await self._finished(self._replica(mount).drop, path.encode())
        except StoreUnavailable as problem:
            raise StoreUnavailable(
                f"{path!r} is deleted in {INSIDE}, but not in the object store, where it goes once that answers: "
                f"{problem.message}",
                problem.context | {"path": path},
            ) from problem
        return deleted

    async def measure(self, mount: MountId) -> MountUse:
        """As the contract has it."""
        use = await self._disk.measure(mount)
        return replace(use, unsaved=await self._finished(self._replica(mount).unsaved))

    async def save(self, mount: MountId) -> MountUse:
        """As the contract has it."""
        saved = await self._finished(self._replica(mount).save)
        use = await self._disk.measure(mount)
        return replace(use, unsaved=saved.unsaved, complete=use.complete and saved.complete)

    async def _leaves_something(self, mount: MountId) -> bool:
        saved = await self._finished(self._replica(mount).save)
        return saved.unsaved > 0 or saved.undropped > 0

    def save_soon(self, mount: MountId) -> None:
        """As the contract has it."""
        self._saves.soon(mount)

    def retry_saves(self) -> tuple[str, ...]:
        """As the contract has it."""
        if not self._looked_around:
            # Whoever was here before may have been ended before it had saved.
            self._looked_around = True
            for mount in self._known():
                self._saves.soon(MountId(mount))
        return self._saves.again()

    async def drop_staged(self, older_than_s: float) -> int:
        """As the contract has it; and of what was on its way to the bucket when its sender was killed."""
        dropped = await self._disk.drop_staged(older_than_s)
        before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=older_than_s)
        # Of our own mounts: without a prefix of ours the bucket may have other users.
        mounts, bucket = self._known(), self._bucket
        return dropped + await self._finished(
            lambda: bucket.abort_uploads(bucket.prefix, before=before, mounts=mounts) if mounts else 0
        )

    def _known(self) -> frozenset[str]:
        """Mounts of which this machine has, or had, a working copy."""
        return frozenset(known.stem for known in self._data.replicas.glob("*.db"))

    async def remove(self, mount: MountId) -> None:
        """As the contract has it."""
        # Here first: it is refused where a sandbox uses it.
        await self._disk.remove(mount)
        self._saves.forget(mount)
        self._ready.pop(mount, None)
        await self._finished(self._replica(mount).remove)
        # Once more, for what was brought back between these two.
        await self._disk.remove(mount)

    async def aclose(self) -> None:
        """As the contract has it. What is not saved in time is by the next process, or with the next cell."""
        await self._saves.aclose(self._close_s, self._bucket.stop)
        self._closed = True
        for pool in (self._calls, self._sending):
            await asyncio.to_thread(pool.shutdown)
        await asyncio.to_thread(self._bucket.close)
        await self._disk.aclose()

    def _replica(self, mount: MountId) -> Replica:
        return Replica(self._data, mount, self._bucket, self._sending)

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise StoreUnavailable("the store of files is closed")
        return await asyncio.get_running_loop().run_in_executor(self._calls, lambda: function(*args, **kwargs))

    async def _finished(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await finished(self._in_thread(function, *args, **kwargs))


class _SentFirst:
    """A StagedFile that goes to the bucket before it goes to its place."""

    def __init__(self, staged: Staged, commit: Callable[[MayReplace | None], Coroutine[Any, Any, MountFile]]) -> None:
        self._staged = staged
        self._commit = commit
        self.write = staged.write
        self.discard = staged.discard

    @property
    def offset(self) -> int:
        """As the contract has it."""
        return self._staged.offset

    async def take(self, source: int, most: int) -> int:
        """As the contract has it."""
        return await self._staged.take(source, most)

    async def commit(self, may: MayReplace | None = None) -> MountFile:
        """As the contract has it."""
        return await finished(self._commit(may))


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Its result. Whoever is cancelled meanwhile still waits for its end: it works on what the caller then closes."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise
