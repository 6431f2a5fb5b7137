"""Files between this machine and a session's mount: which go where, and each of them whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import secrets
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click

from workbench.cli.printing import notice
from workbench.cli.progress import Progress
from workbench.cli.tables import plain
from workbench.contracts.mounts import OpenFile
from workbench.core import mount_requests as requests
from workbench.core.mounts import Mounts
from workbench.descriptor_writer import DescriptorWriter
from workbench.errors import Conflict, InvalidRequest, NotFound, WorkbenchError
from workbench.local_folders import files_below
from workbench.model.ids import SessionId
from workbench.model.mounts import (
    INSIDE,
    MOST_PAGE,
    FilePath,
    FilesFound,
    MountFile,
    entry_path,
    file_path,
    is_web_address,
)
from workbench.threads import to_its_end

STREAM = "-"
_CHUNK = 1024 * 1024
# How often a wait for standard input looks whether we are to end.
_LOOK_MS = 200
# A file that code inside writes to all the time is not whole at any moment.
_TRIES = 5
_TOP = ("/", INSIDE, f"{INSIDE}/")
# What file systems without hard links say.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@dataclass(frozen=True, slots=True)
class Place:
    """Whose files, and which."""

    session: SessionId
    mount: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sending:
    """One file to be sent."""

    local: Path | None
    """None for standard input"""
    path: str
    size: int | None


async def all_files(mounts: Mounts, request: requests.ListFiles) -> FilesFound:
    """From there to the end."""
    found: list[MountFile] = []
    skipped, after = 0, request.after
    while True:
        page = await mounts.list(dataclasses.replace(request, after=after, limit=MOST_PAGE))
        found.extend(page.files)
        skipped += page.skipped
        if page.next_after is None:
            return FilesFound(files=tuple(found), next_after=None, skipped=skipped)
        after = page.next_after


def tell_skipped(count: int) -> None:
    """What is there, and cannot be told of or fetched."""
    if count:
        notice(f"{count} left out: links, devices, or names that are no text")


class Transfers:
    """To and from one session."""

    def __init__(self, mounts: Mounts, at: Place, progress: Progress) -> None:
        self._mounts = mounts
        self._at = at
        self._progress = progress

    async def put(self, sources: tuple[str, ...], to: str) -> list[MountFile]:
        """All of them, one after the other."""
        sendings = await to_its_end(_planned, sources, to)
        self._progress.expect(sum(one.size or 0 for one in sendings))
        made = []
        for sending in sendings:
            self._progress.now(sending.path)
            made.append(await self._send(sending))
        return made

    async def _send(self, sending: _Sending) -> MountFile:
        with _opened(sending.local) as (descriptor, size):
            request = requests.StageFile(session=self._at.session, mount=self._at.mount, path=sending.path, size=size)
            async with self._mounts.stage(request) as staged:
                written = 0
                async for chunk in _chunks(descriptor, size, sending.local or Path("standard input")):
                    await staged.write(chunk)
                    written += len(chunk)
                    self._progress.moved(len(chunk))
                if size is not None and written != size:
                    raise InvalidRequest(
                        f"{sending.local} became shorter while it was sent; send it when nothing writes to it"
                    )
                return await staged.commit()

    async def get(self, path: str, target: str, *, force: bool) -> list[Path]:
        """A file, or all in a folder."""
        if target == STREAM:
            await self._print(path)
            return []
        found, folder = await self._found(path)
        places = {one.path: _place(one.path, folder, target) for one in found}
        for place in places.values():
            _check_free(place, force=force)
        self._progress.expect(sum(one.size for one in found))
        made, gone = [], None
        for one in found:
            self._progress.now(one.path)
            try:
                await self._receive(one.path, places[one.path], force=force)
                made.append(places[one.path])
            except NotFound as problem:
                gone = problem
        if gone is not None:
            if not made:
                raise gone
            notice(f"{len(found) - len(made)} left out: deleted before they were fetched")
        return made

    async def _found(self, path: str) -> tuple[list[MountFile], str | None]:
        """What is there; and the folder that was meant, if it was one."""
        if path not in _TOP:
            asked = self._file(path.rstrip("/"))
            try:
                if not path.endswith("/"):
                    return [await self._mounts.describe_file(asked)], None
            except Conflict as problem:
                # A folder, or something that cannot be read: then there is nothing in it.
                reason: WorkbenchError = problem
            else:
                reason = NotFound(f"there are no files in {path!r}; list the files to see what is there")
        else:
            reason = NotFound(f"session {self._at.session} has no files")
        folder = "" if path in _TOP else f"{entry_path(path)}/"
        request = requests.ListFiles(session=self._at.session, mount=self._at.mount, prefix=folder)
        found = await all_files(self._mounts, request)
        tell_skipped(found.skipped)
        if not found.files:
            raise reason
        return list(found.files), folder

    def _file(self, path: str) -> requests.OpenMountFile:
        return requests.OpenMountFile(session=self._at.session, mount=self._at.mount, path=path)

    async def _receive(self, path: FilePath, place: Path, *, force: bool) -> None:
        request = self._file(path)
        for _ in range(_TRIES):
            async with self._mounts.open(request) as opened:
                if await self._write(opened, place, force=force):
                    return
        raise _unsteady(path)

    async def _write(self, opened: OpenFile, place: Path, *, force: bool) -> bool:
        """Whether it was the same from its beginning to its end."""
        written = 0
        with _local_problems(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            # Beside its place, so that the last step is a rename, and nobody ever sees half of it.
            part = place.with_name(f".workbench-{secrets.token_hex(8)}.part")
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                while chunk := await to_its_end(os.pread, opened.descriptor, _CHUNK, written):
                    with _local_problems(place):
                        await to_its_end(_write_all, descriptor, chunk)
                    written += len(chunk)
                    self._progress.moved(len(chunk))
            finally:
                os.close(descriptor)
            if written != opened.file.size or not opened.is_unchanged():
                self._progress.moved(-written)
                return False
            _check_free(place, force=force)
            with _local_problems(place):
                _put_in_place(part, place, force=force)
            return True
        finally:
            part.unlink(missing_ok=True)

    async def _print(self, path: str) -> None:
        if sys.stdout is None:
            raise InvalidRequest("standard output is closed; name a file to write to")
        writer = DescriptorWriter(sys.stdout.fileno())
        async with self._mounts.open(self._file(path)) as opened:
            written = 0
            while chunk := await to_its_end(os.pread, opened.descriptor, _CHUNK, written):
                await writer.write(chunk)
                written += len(chunk)
            if written != opened.file.size or not opened.is_unchanged():
                raise _unsteady(path)


def _planned(sources: tuple[str, ...], to: str) -> list[_Sending]:
    """Every file of them, with its path in the mount."""
    into = to if to.endswith("/") or not to else f"{to}/" if len(sources) > 1 else None
    sendings: list[_Sending] = []
    for source in sources:
        if not source:
            raise click.UsageError("a SOURCE is empty; . is the current folder")
        if source == STREAM:
            if to.endswith("/") or not to or len(sources) > 1:
                raise click.UsageError("standard input has no name: send it alone, with --to PATH")
            sendings.append(_Sending(local=None, path=to, size=None))
            continue
        if is_web_address(source):
            raise click.UsageError(f"`workbench files fetch` takes URLs: {source}")
        local = Path(source)
        # `.` and `..` have a name as well.
        name = f"{into}{local.name or local.resolve().name}" if into is not None else to
        with _local_problems(local):
            sendings += _files_of(local, name)
    # Before the first byte goes: a path that cannot be would leave what comes before it sent.
    for one in sendings:
        file_path(one.path)
    return sendings


def _files_of(local: Path, name: str) -> list[_Sending]:
    found = local.stat()
    if stat.S_ISDIR(found.st_mode):
        return list(_within(local, name.rstrip("/")))
    if not stat.S_ISREG(found.st_mode):
        raise InvalidRequest(f"{local} is neither a file nor a folder; send what it gives by `… < {local}` and -")
    return [_Sending(local=local, path=name, size=found.st_size)]


def _within(top: Path, name: str) -> Iterator[_Sending]:
    found, left_out = files_below(top)
    for one in found:
        yield _Sending(local=one.local, path=str(PurePosixPath(name, one.path)), size=one.size)
    if left_out:
        notice(f"{left_out} left out of {plain(str(top))}: links and what else is no file")


def _place(path: FilePath, folder: str | None, target: str) -> Path:
    """Where a file of a session goes on this machine."""
    here = Path(target)
    inside = target.endswith("/") or here.is_dir()
    if folder is None:
        return here / PurePosixPath(path).name if inside else here
    below = path.removeprefix(folder)
    # BARRIER: a path that leads upwards would write anywhere on this machine; held by tests/unit/cli/test_files.py.
    if ".." in below.split("/") or below.startswith("/"):
        raise InvalidRequest(f"{path!r} would be written outside of {target}")
    if inside and folder:
        here = here / PurePosixPath(folder).name
    return here / below


def _check_free(place: Path, *, force: bool) -> None:
    if place.is_dir():
        raise Conflict(f"{plain(str(place))} is a folder here; choose another name, or remove it")
    if not force and os.path.lexists(place):
        raise _taken(place)


def _taken(place: Path) -> Conflict:
    return Conflict(f"{plain(str(place))} is there already; --force replaces it")


def _put_in_place(part: Path, place: Path, *, force: bool) -> None:
    """In one step. Without `force` that is one which fails if somebody has taken the name since we looked."""
    if force:
        part.replace(place)
        return
    try:
        try:
            os.link(part, place)
        except OSError as problem:
            if problem.errno not in _NO_LINKS:
                raise
            # Then the name is taken by an empty file of ours, which nobody misses.
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            part.replace(place)
    except FileExistsError:
        raise _taken(place) from None


def _unsteady(path: str) -> Conflict:
    return Conflict(f"{path!r} was changed while it was read; get it again when nothing writes to it", {"path": path})


@contextlib.contextmanager
def _opened(local: Path | None) -> Iterator[tuple[int, int | None]]:
    """What is read, and how many bytes of it; None for all that comes."""
    if local is None:
        if sys.stdin is None:
            raise InvalidRequest("standard input is closed; give - something to read, or name a file")
        yield sys.stdin.fileno(), None
        return
    with _local_problems(local):
        # It was a file when we looked; a FIFO in its place is not waited for.
        descriptor = os.open(local, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidRequest(f"{local} is no file any more; send it when nothing changes it")
        # Files of /proc have something in them, and no size.
        yield descriptor, found.st_size or None
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _local_problems(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InvalidRequest(f"{plain(str(problem.filename or where))}: {problem.strerror}") from problem


async def _chunks(descriptor: int, size: int | None, where: Path) -> AsyncIterator[bytes]:
    """So many bytes, or fewer if there are no more."""
    leaving = threading.Event()
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)

    def read(most: int) -> bytes:
        # A pipe may say nothing for hours, and a thread that waits for it would keep us from ending.
        while not ready.poll(_LOOK_MS):
            if leaving.is_set():
                return b""
        return os.read(descriptor, most)

    left = size
    while left is None or left > 0:
        with _local_problems(where):
            chunk = await to_its_end(read, _CHUNK if left is None else min(_CHUNK, left), leave=leaving.set)
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
