"""`session.experimental.files`: the session's mount, by the words of the sessions API."""

from __future__ import annotations

import os

from workbench.client import _file_calls, _transfers
from workbench.client._local_files import Sendable, is_url
from workbench.client._moving import move
from workbench.client._requests import Request
from workbench.client._retries import Attempts
from workbench.client._sending import Sender
from workbench.client.composio import _requests
from workbench.client.composio._requests import DownloadLink, UploadLink
from workbench.model.mounts import FILES
from workbench.wire import rest_files
from workbench.wire.composio_files import DeletedFile, FileItems

# As the field has it for files whose kind nobody told.
_BYTES = "application/octet-stream"


class _Mount:
    """A mount of a session, as transfers know it."""

    def __init__(self, sender: Sender, session: str, mount: str, mimetype: str = _BYTES) -> None:
        self.server = sender.target.url
        self._sender = sender
        self._session = session
        self._mount = mount
        self._mimetype = mimetype

    def attempts(self, request: Request[object]) -> Attempts:
        """As for what is asked of the server."""
        return self._sender.attempts(request)

    def upload_link(self, path: str, size: int | None) -> Request[UploadLink]:
        """By the sessions API, which does not ask for the size."""
        del size
        return _requests.upload_link(self._session, self._mount, path, self._mimetype)

    def download_link(self, path: str) -> Request[DownloadLink]:
        """By the sessions API."""
        return _requests.download_link(self._session, self._mount, path)

    def fetched(self, url: str, path: str) -> Request[rest_files.File]:
        """By the server."""
        return _requests.fetch_file(self._session, self._mount, url, path)


class RemoteFile:
    """A file of a session. Every call fetches it anew, as it is then; a link that has expired is renewed."""

    def __init__(self, sender: Sender, place: _Mount, link: DownloadLink) -> None:
        self._sender = sender
        self._place = place
        self._link = link

    @property
    def mount_relative_path(self) -> str:
        """Its path from the top of the mount."""
        return self._link.path

    @property
    def sandbox_mount_prefix(self) -> str:
        """Where code inside sees the mount."""
        return self._link.told.sandbox_mount_prefix

    @property
    def filename(self) -> str:
        """The last part of its path."""
        return self._link.path.rpartition("/")[2]

    @property
    def download_url(self) -> str:
        """From where anybody can fetch it, without a key, for a while."""
        return self._link.url

    @property
    def expires_at(self) -> str:
        """When that link is no good any more; the file stays. ISO 8601, UTC."""
        return self._link.told.expires_at

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

    def save(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write it to a file here, whole or not at all, and tell where; one that is there is replaced.

        `path` is the file, or a folder for it; without one it goes to ~/.composio/files. A connection that breaks is
        made again, and goes on where it broke.
        """
        self._link, saved = move(self._sender, _file_calls.save(self._place, self._link, path))
        return str(saved)

    def __repr__(self) -> str:
        # Without the link: who has it has the file.
        return f"<RemoteFile {self._link.told.sandbox_mount_prefix}/{self._link.path}>"


class SessionFiles:
    """Files of a session: what code in it sees at /mnt/files. Calls need no sandbox, and start none."""

    def __init__(self, sender: Sender, session_id: str) -> None:
        self._sender = sender
        self._session = session_id

    def upload(
        self,
        input: Sendable,  # noqa: A002  (the name that programs use)
        *,
        remote_path: str | None = None,
        mimetype: str | None = None,
        mount_id: str = FILES,
    ) -> RemoteFile:
        """Put a file there, whole and in one step, in place of one of the same path.

        `input` is a path, an http(s) URL for the server to fetch, bytes, or a file that is open for reading bytes.
        `remote_path` is its path from the top of the mount, or with a slash at its end a folder; without one it keeps
        its name. Bytes have none: they need a `remote_path`, or a `mimetype` for a name with the right ending.

        Raises:
            QuotaExceeded: there is no room for it.
            InvalidRequest: it cannot be sent, or not under that path.
            OSError: it cannot be read here.
        """
        place = _Mount(self._sender, self._session, mount_id, mimetype or _BYTES)
        path = (remote_path or "").lstrip("/") if is_url(input) else remote_path
        return self._file(place, move(self._sender, _file_calls.upload(place, input, path, mimetype)))

    def list(
        self,
        path: str | None = None,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        mount_id: str = FILES,
    ) -> FileItems:
        """A page of the files, by path: all, or those whose path begins so; with `next_cursor` the next one."""
        return self._sender.send(_requests.list_files(self._session, mount_id, path, cursor, limit))

    def download(self, file_path: str, *, mount_id: str = FILES) -> RemoteFile:
        """A file that is there; its bytes are fetched when they are asked for.

        Raises:
            NotFound: there is no such file.
        """
        place = _Mount(self._sender, self._session, mount_id)
        return self._file(place, move(self._sender, _transfers.look(place, file_path)))

    def delete(self, remote_path: str, *, mount_id: str = FILES) -> DeletedFile:
        """A file, or a folder with all that is in it.

        Raises:
            NotFound: there is nothing.
        """
        return self._sender.send(_requests.delete_file(self._session, mount_id, remote_path))

    def _file(self, place: _Mount, link: DownloadLink) -> RemoteFile:
        return RemoteFile(self._sender, place, link)
