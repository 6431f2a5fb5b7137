"""Files of this machine at the other end of a transfer: what can be sent under what name, and where it is written."""

from __future__ import annotations

import contextlib
import io
import mimetypes
import os
import secrets
import select
import stat
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from workbench.errors import InvalidRequest
from workbench.local_folders import files_below
from workbench.model.mounts import file_path, is_web_address

Sendable = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""a path, a URL, the bytes themselves, or a file that is open for reading them"""

_CHUNK = 1024 * 1024
# How often a wait for a pipe looks whether we are to leave.
_LOOK_MS = 200
_BUFFERED = io.BufferedReader | io.BufferedRandom
# As the field has it, so that programs find what they saved before.
_DEFAULT_FOLDER = Path(".composio") / "files"


def is_url(source: Sendable) -> bool:
    """Whether it is one for the server to fetch."""
    return isinstance(source, str) and is_web_address(source)


class OpenSource:
    """An open file, from where it stands, or bytes."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._leaving = threading.Event()
        end = _end_of(file)
        # Not everything has one that can be told; then it is read once, as it comes.
        self.again = end is not None
        self._start = file.tell() if end is not None else 0
        self.size: int | None = None if end is None else max(end - self._start, 0)
        self._waited_for = _descriptor(file) if end is None else None

    def leave(self) -> None:
        """End a wait for what somebody else is to write, soon."""
        self._leaving.set()

    def chunks(self, start: int, end: int | None) -> Iterator[bytes]:
        """From one place to another, or to its end.

        Raises:
            InvalidRequest: it gives no bytes, or fewer than it had.
        """
        if self.again:
            self._file.seek(self._start + start)
        left = None if end is None else end - start
        while left is None or left > 0:
            chunk = self._read(_CHUNK if left is None else min(_CHUNK, left))
            if not isinstance(chunk, bytes | bytearray | memoryview):
                raise InvalidRequest(f"{self._name} gives {type(chunk).__name__}, not bytes; open it with 'rb'")
            if not chunk:
                break
            left = None if left is None else left - len(chunk)
            yield bytes(chunk)
        if left:
            raise InvalidRequest(f"{self._name} became shorter while it was sent; send it when nothing writes to it")

    def _read(self, most: int) -> object:
        if self._waited_for is None:
            return self._file.read(most)
        # A pipe may say nothing for hours, and a thread that waits within `read` holds the file until then.
        ready = select.poll()
        ready.register(self._waited_for, select.POLLIN)
        while not ready.poll(_LOOK_MS):
            if self._leaving.is_set():
                return b""
        return self._file.read1(most) if isinstance(self._file, _BUFFERED) else self._file.read(most)


def _descriptor(file: IO[bytes]) -> int | None:
    """Of a file of the system's. What only looks like one may hold bytes that its descriptor knows nothing of."""
    raw = file.raw if isinstance(file, _BUFFERED) else file
    return raw.fileno() if isinstance(raw, io.FileIO) else None


def _end_of(file: IO[bytes]) -> int | None:
    """Where it ends; None if that is not known, or it has none."""
    if not (hasattr(file, "seekable") and file.seekable()):
        return None
    descriptor = _descriptor(file)
    if descriptor is not None and stat.S_ISCHR(os.fstat(descriptor).st_mode):
        return None
    try:
        here = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(here)
    except OSError:
        # As files of /proc.
        return None
    return end


@contextlib.contextmanager
def opened(source: Sendable) -> Iterator[OpenSource]:
    """For reading. What the caller has opened stays open.

    Raises:
        InvalidRequest: it cannot be sent.
        OSError: there is no such file, or it cannot be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        with io.BytesIO(source) as file:
            yield OpenSource(file, "the source")
    elif isinstance(source, str | os.PathLike):
        path = named_path(source)
        if path.is_dir():
            raise InvalidRequest(f"{path} is a folder; upload_folder sends all that is in it")
        # So that a FIFO is refused, and not waited for.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidRequest(f"{path} is no file of a folder; open it, and give upload what is open")
            yield OpenSource(file, str(path))
    else:
        _check_file(source)
        yield OpenSource(source, "the file")


def named_path(path: str | os.PathLike[str]) -> Path:
    """Of this machine.

    Raises:
        InvalidRequest: it is empty, as where something was not set; that would be the current folder.
    """
    if not os.fspath(path):
        raise InvalidRequest("the path of what is to be sent is empty; '.' is the current folder")
    return Path(path)


def _check_file(source: object) -> None:
    if isinstance(source, io.TextIOBase):
        raise InvalidRequest("the file is open as text, and bytes are sent; open it with 'rb'")
    if not callable(getattr(source, "read", None)):
        raise InvalidRequest(
            f"upload takes a path, a URL, bytes or a file that is open for reading, not {type(source).__name__}"
        )


def remote_name(source: Sendable, remote_path: str | None, mimetype: str | None) -> str:
    """Where it goes in the mount.

    Raises:
        InvalidRequest: it has no name of its own, and was given none.
    """
    if remote_path and not remote_path.endswith("/"):
        return remote_path
    return (remote_path or "") + (_own_name(source) or _made_up(mimetype))


def _own_name(source: Sendable) -> str:
    if isinstance(source, bytes | bytearray | memoryview):
        return ""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        # `.` and `..` have a name as well.
        return path.name or path.resolve().name
    name = getattr(source, "name", None)
    # Of pipes it is a number, of what is no file on disk something like <stdin>.
    return os.path.basename(name) if isinstance(name, str) and not name.startswith("<") else ""


def _made_up(mimetype: str | None) -> str:
    if mimetype is None:
        raise InvalidRequest(
            "bytes have no name: give remote_path='data/in.csv', or mimetype='text/csv' for one of ours"
        )
    return f"upload-{secrets.token_hex(4)}{mimetypes.guess_extension(mimetype) or '.bin'}"


def files_within(folder: str | os.PathLike[str], remote_path: str) -> list[tuple[Path, str]]:
    """Every file below it, with its place below `remote_path`. Links and what else is no file are left out.

    Raises:
        InvalidRequest: it is no folder, or one of the files cannot have its path in a mount.
        OSError: it cannot be read.
    """
    top = named_path(folder)
    if not top.is_dir():
        raise InvalidRequest(f"{top} is not a folder; upload sends a file")
    found, _ = files_below(top)
    # Also each path: one that cannot be, in the middle of a folder, would leave half of it sent.
    return [(one.local, _checked(str(PurePosixPath(remote_path or ".", one.path)))) for one in found]


def _checked(path: str) -> str:
    file_path(path)
    return path


def place_for(path: str | os.PathLike[str] | None, name: str) -> Path:
    """Where a file is saved: itself, in a folder, or where files go by themselves.

    Raises:
        InvalidRequest: the name is none that a file can have here.
    """
    if path is not None and not os.fspath(path).endswith(("/", os.sep)) and not Path(path).is_dir():
        return Path(path)
    return below(Path.home() / _DEFAULT_FOLDER if path is None else Path(path), name)


def below(folder: Path, path: str) -> Path:
    """A place in a folder for what a server calls so.

    Raises:
        InvalidRequest: it would be elsewhere.
    """
    # BARRIER: a server that tells such a path would have files written anywhere on this machine; held by
    # tests/unit/client/test_local_files.py.
    steps = path.split("/")
    if {"", ".", ".."} & set(steps) or "\0" in path or (os.sep != "/" and os.sep in path):
        raise InvalidRequest(f"{path!r} cannot be written in {folder}; save it under a name of yours")
    return folder.joinpath(*steps)


class Kept:
    """What is fetched, in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def position(self) -> int:
        """How much is there."""
        return len(self._data)

    def write(self, data: bytes) -> None:
        """Behind what is there."""
        self._data += data

    def clear(self) -> None:
        """Begin anew."""
        self._data.clear()

    def whole(self) -> bytes:
        """All of it."""
        return bytes(self._data)


class Part:
    """What is fetched, in a file that is not in its place yet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.position = 0

    def write(self, data: bytes) -> None:
        """Behind what is there."""
        self._file.write(data)
        self.position += len(data)

    def clear(self) -> None:
        """Begin anew."""
        self._file.seek(0)
        self._file.truncate()
        self.position = 0


@contextlib.contextmanager
def saved(target: Path) -> Iterator[Part]:
    """A file that is put in its place when all went well, and of which nothing is left if not; folders are made.

    Raises:
        OSError: it cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside it, so that the last step is a rename, and nobody ever sees half of it.
    part = target.with_name(f".workbench-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield Part(file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
