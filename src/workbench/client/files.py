"""Files of a session, as a program moves them. `AsyncFiles` in aio_files.py has the same names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from workbench.client import _file_calls, _file_requests, _transfers
from workbench.client._local_files import Sendable, below, files_within
from workbench.client._moving import MountOf, move
from workbench.client._sending import Sender
from workbench.client.values import DeletedFiles, FilePage, ListedFile, MountUsage
from workbench.errors import NotFound
from workbench.model.mounts import DEFAULT_PAGE, FILES, MOST_PAGE
from workbench.wire import rest_files as rest


class KnownFile:
    """What is known of a file of a session without asking."""

    def __init__(self, link: rest.DownloadLink) -> None:
        self._link = link

    @property
    def mount_relative_path(self) -> str:
        """Its path from the top of the mount."""
        return self._link.path

    @property
    def sandbox_mount_prefix(self) -> str:
        """Where code inside sees the mount."""
        return self._link.mount_prefix

    @property
    def filename(self) -> str:
        """The last part of its path."""
        return self._link.path.rpartition("/")[2]

    @property
    def size(self) -> int:
        """In bytes, when it was asked for."""
        return self._link.size

    @property
    def version(self) -> str:
        """Another one whenever what is in it has changed."""
        return self._link.version

    @property
    def download_url(self) -> str:
        """From where anybody can fetch it, without a key, for a while."""
        return self._link.url

    @property
    def expires_at(self) -> str:
        """When that link is no good any more; the file stays. ISO 8601, UTC."""
        return self._link.expires_at

    def __repr__(self) -> str:
        # Without the link: who has it has the file.
        return f"<{type(self).__name__} {self._link.mount_prefix}/{self._link.path}, {self.size} bytes>"


class RemoteFile(KnownFile):
    """A file of a session. Every call fetches it anew, as it is then; a link that has expired is renewed."""

    def __init__(self, sender: Sender, place: MountOf, link: rest.DownloadLink) -> None:
        super().__init__(link)
        self._sender = sender
        self._place = place

    def buffer(self) -> bytes:
        """All of it.

        Raises:
            NotFound: it is not there any more.
        """
        self._link, data = move(self._sender, _file_calls.read(self._place, self._link))
        return data

    def text(self, encoding: str = "utf-8") -> str:
        """The same as text.

        Raises:
            UnicodeDecodeError: it is none in that encoding.
        """
        return self.buffer().decode(encoding)

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write it to a file here, whole or not at all, and tell where; one that is there is replaced.

        `path` is the file, or a folder for it; without one it goes to ~/.composio/files. A connection that breaks is
        made again, and goes on where it broke.
        """
        self._link, saved = move(self._sender, _file_calls.save(self._place, self._link, path))
        return saved


_Files = list[RemoteFile]
_Paths = list[Path]


class Files:
    """Files of a session: what code in it sees at /mnt/files. Calls need no sandbox, and start none."""

    def __init__(self, sender: Sender, session_id: str) -> None:
        self._sender = sender
        self._session = session_id

    def upload(
        self,
        source: Sendable,
        *,
        remote_path: str | None = None,
        mimetype: str | None = None,
        mount_id: str = FILES,
    ) -> RemoteFile:
        """Put a file there, whole and in one step, in place of one of the same path.

        `source` is a path, an http(s) URL for the server to fetch, bytes, or a file that is open for reading bytes,
        which is read from where it stands and not held in memory. `remote_path` is its path from the top of the
        mount, or with a slash at its end a folder; without one it keeps its name. Bytes have none: they need a
        `remote_path`, or a `mimetype` for a name with the right ending. A large file goes on where a connection broke.

        Raises:
            QuotaExceeded: there is no room for it.
            InvalidRequest: it cannot be sent, or not under that path.
            OSError: it cannot be read here.
        """
        place = self._place(mount_id)
        return self._file(place, move(self._sender, _file_calls.upload(place, source, remote_path, mimetype)))

    def upload_folder(self, path: str | os.PathLike[str], remote_path: str = "", *, mount_id: str = FILES) -> _Files:
        """Every file below a folder, to the same place below `remote_path`; links are left out."""
        found = files_within(path, remote_path)
        return [self.upload(local, remote_path=remote, mount_id=mount_id) for local, remote in found]

    def download(self, path: str, *, mount_id: str = FILES) -> RemoteFile:
        """A file that is there; its bytes are fetched when they are asked for.

        Raises:
            NotFound: there is no such file.
            Conflict: it is a folder, or a link.
        """
        place = self._place(mount_id)
        return self._file(place, move(self._sender, _transfers.look(place, path)))

    def download_folder(self, remote_path: str, path: str | os.PathLike[str], *, mount_id: str = FILES) -> _Paths:
        """Every file below a folder of the session, to the same place below one here; what is there is replaced.

        A file that is deleted meanwhile is left out, and not among what is told to be saved.

        Raises:
            NotFound: there are no files in it.
        """
        prefix = _file_requests.folder_prefix(remote_path)
        saved = []
        for one in self.iter(prefix, mount_id=mount_id):
            target = below(Path(path), one.mount_relative_path.removeprefix(prefix))
            with contextlib.suppress(NotFound):
                saved.append(self.download(one.mount_relative_path, mount_id=mount_id).save(target))
        if not saved:
            raise NotFound(f"there are no files in {remote_path!r}; list() tells what is there", {"path": remote_path})
        return saved

    def delete(self, path: str, *, mount_id: str = FILES) -> DeletedFiles:
        """A file, or a folder with all that is in it.

        Raises:
            NotFound: there is nothing.
        """
        return self._sender.send(_file_requests.delete_file(self._session, mount_id, path))

    def extract_text(self, path: str, *, mount_id: str = FILES) -> str:
        """What can be read in a PDF, a picture, an office document, a mail or a table.

        Raises:
            NotFound: there is no such file.
            InvalidRequest: nothing can be read out of it.
        """
        return self._sender.send(_file_requests.extract_text(self._session, mount_id, path))

    def usage(self, *, mount_id: str = FILES) -> MountUsage:
        """How much is there, and how much may be."""
        return self._sender.send(_file_requests.describe_mount(self._session, mount_id))

    def iter(
        self, path: str | None = None, *, prefix: str | None = None, mount_id: str = FILES
    ) -> Iterator[ListedFile]:
        """All files, or those whose path begins so; asks for pages when they are needed."""
        cursor: str | None = None
        while True:
            page = self.list(path, prefix=prefix, cursor=cursor, limit=MOST_PAGE, mount_id=mount_id)
            yield from page.items
            if (cursor := page.next_cursor) is None:
                return

    def list(
        self,
        path: str | None = None,
        *,
        prefix: str | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_PAGE,
        mount_id: str = FILES,
    ) -> FilePage:
        """A page of the files, by path: all, or those whose path begins so. `prefix` is another name for `path`.

        With the `next_cursor` of a page as `cursor`, the next one; whatever changes meanwhile, no file that stays is
        left out or told twice.
        """
        wanted = _file_requests.prefix_from(path, prefix)
        return self._sender.send(_file_requests.list_files(self._session, mount_id, wanted, cursor, limit))

    def _place(self, mount_id: str) -> MountOf:
        return MountOf(self._sender, self._session, mount_id)

    def _file(self, place: MountOf, link: rest.DownloadLink) -> RemoteFile:
        return RemoteFile(self._sender, place, link)


class Experimental:
    """Names under which other SDKs have what is here for good."""

    def __init__(self, files: Files) -> None:
        self.files = files
