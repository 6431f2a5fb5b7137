"""Files of a session, as an async program moves them. Every name is one of files.py, where it is described."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from workbench.client import _file_calls, _file_requests, _transfers
from workbench.client._local_files import Sendable, below, files_within
from workbench.client._moving import MountOf, amove
from workbench.client._sending import AsyncSender
from workbench.client.files import KnownFile
from workbench.client.values import DeletedFiles, FilePage, ListedFile, MountUsage
from workbench.errors import NotFound
from workbench.model.mounts import DEFAULT_PAGE, FILES, MOST_PAGE
from workbench.wire import rest_files as rest


class AsyncRemoteFile(KnownFile):
    """As `RemoteFile`, with `await`."""

    def __init__(self, sender: AsyncSender, place: MountOf, link: rest.DownloadLink) -> None:
        super().__init__(link)
        self._sender = sender
        self._place = place

    async def buffer(self) -> bytes:
        """As `RemoteFile.buffer`."""
        self._link, data = await amove(self._sender, _file_calls.read(self._place, self._link))
        return data

    async def text(self, encoding: str = "utf-8") -> str:
        """As `RemoteFile.text`."""
        return (await self.buffer()).decode(encoding)

    async def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """As `RemoteFile.save`."""
        self._link, saved = await amove(self._sender, _file_calls.save(self._place, self._link, path))
        return saved


_AsyncFiles = list[AsyncRemoteFile]
_Paths = list[Path]


class AsyncFiles:
    """As `Files`, with `await`."""

    def __init__(self, sender: AsyncSender, session_id: str) -> None:
        self._sender = sender
        self._session = session_id

    async def upload(
        self,
        source: Sendable,
        *,
        remote_path: str | None = None,
        mimetype: str | None = None,
        mount_id: str = FILES,
    ) -> AsyncRemoteFile:
        """As `Files.upload`; files are read in threads."""
        place = self._place(mount_id)
        return self._file(place, await amove(self._sender, _file_calls.upload(place, source, remote_path, mimetype)))

    async def upload_folder(
        self, path: str | os.PathLike[str], remote_path: str = "", *, mount_id: str = FILES
    ) -> _AsyncFiles:
        """As `Files.upload_folder`."""
        found = await asyncio.to_thread(files_within, path, remote_path)
        return [await self.upload(local, remote_path=remote, mount_id=mount_id) for local, remote in found]

    async def download(self, path: str, *, mount_id: str = FILES) -> AsyncRemoteFile:
        """As `Files.download`."""
        place = self._place(mount_id)
        return self._file(place, await amove(self._sender, _transfers.look(place, path)))

    async def download_folder(self, remote_path: str, path: str | os.PathLike[str], *, mount_id: str = FILES) -> _Paths:
        """As `Files.download_folder`."""
        prefix = _file_requests.folder_prefix(remote_path)
        saved = []
        async for one in self.iter(prefix, mount_id=mount_id):
            target = below(Path(path), one.mount_relative_path.removeprefix(prefix))
            with contextlib.suppress(NotFound):
                saved.append(await (await self.download(one.mount_relative_path, mount_id=mount_id)).save(target))
        if not saved:
            raise NotFound(f"there are no files in {remote_path!r}; list() tells what is there", {"path": remote_path})
        return saved

    async def delete(self, path: str, *, mount_id: str = FILES) -> DeletedFiles:
        """As `Files.delete`."""
        return await self._sender.send(_file_requests.delete_file(self._session, mount_id, path))

    async def extract_text(self, path: str, *, mount_id: str = FILES) -> str:
        """As `Files.extract_text`."""
        return await self._sender.send(_file_requests.extract_text(self._session, mount_id, path))

    async def usage(self, *, mount_id: str = FILES) -> MountUsage:
        """As `Files.usage`."""
        return await self._sender.send(_file_requests.describe_mount(self._session, mount_id))

    async def iter(
        self, path: str | None = None, *, prefix: str | None = None, mount_id: str = FILES
    ) -> AsyncIterator[ListedFile]:
        """As `Files.iter`, for `async for`."""
        cursor: str | None = None
        while True:
            page = await self.list(path, prefix=prefix, cursor=cursor, limit=MOST_PAGE, mount_id=mount_id)
            for one in page.items:
                yield one
            if (cursor := page.next_cursor) is None:
                return

    async def list(
        self,
        path: str | None = None,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_PAGE,
        mount_id: str = FILES,
    ) -> FilePage:
        """As `Files.list`."""
        wanted = _file_requests.prefix_from(path, prefix)
        return await self._sender.send(_file_requests.list_files(self._session, mount_id, wanted, cursor, limit))

    def _place(self, mount_id: str) -> MountOf:
        return MountOf(self._sender, self._session, mount_id)

    def _file(self, place: MountOf, link: rest.DownloadLink) -> AsyncRemoteFile:
        return AsyncRemoteFile(self._sender, place, link)


class AsyncExperimental:
    """As `Experimental`."""

    def __init__(self, files: AsyncFiles) -> None:
        self.files = files
