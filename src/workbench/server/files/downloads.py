"""A file on its way out: the whole of what was asked for, as it was at one moment, or a connection that breaks."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import email.utils
import mimetypes
import os
import re
import urllib.parse
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from workbench.contracts.mounts import OpenFile
from workbench.errors import Conflict
from workbench.model.mounts import MountFile
from workbench.server.connection import CONNECTION, Connection
from workbench.server.files.conditions import Part, etag, is_known, wanted_part
from workbench.server.files.pace import LONGEST_S, longest_s
from workbench.server.files.visit import FileVisit
from workbench.threads import apart, to_its_end

# So much is read before anything is said; if it changed meanwhile, once more.
_AT_ONCE_BYTES = 1024 * 1024
_TRIES, _PAUSE_S = 8, 0.02
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_UNKNOWN = "application/octet-stream"


class Changed(Exception):
    """While it was sent."""


class TooSlow(Exception):
    """The client takes less than it must, and others wait for its place."""


async def download(visit: FileVisit) -> None:
    """Answer GET.

    Raises:
        Changed, TooSlow: in the middle of the answer, which must break off.
        Conflict: it is written to all the time.
    """
    for _ in range(_TRIES):
        async with visit.mounts.open(visit.file) as opened:
            if is_known(visit.headers, opened.file):
                await visit.start(304, _told(opened.file))
                await visit.send({"type": "http.response.body"})
                return
            part = wanted_part(visit.headers, opened.file)
            if part.count > _AT_ONCE_BYTES:
                async with _in_time(LONGEST_S):
                    await _stream(visit, opened, part)
                    await _taken(visit, part.count)
                return
            with apart(visit.transfers.threads):
                data = await to_its_end(_read, opened.descriptor, part)
            if data is not None and opened.is_unchanged():
                await visit.answer(*_head(opened.file, part), data)
                await _taken(visit, part.count)
                return
        await asyncio.sleep(_PAUSE_S)
    raise Conflict(
        "the file is written to all the time; ask again when that has ended, or have code inside write another one and "
        "rename it",
        {"path": visit.link.path},
    )


async def describe(visit: FileVisit) -> None:
    """Answer HEAD."""
    file = await visit.mounts.describe_file(visit.file)
    known = is_known(visit.headers, file)
    status, headers = (304, _told(file)) if known else _head(file, Part(start=0, count=file.size, whole=True))
    await visit.start(status, headers if known else {**headers, "content-length": str(file.size)})
    await visit.send({"type": "http.response.body"})


async def _taken(visit: FileVisit, count: int) -> None:
    """What is left of an answer is memory of ours until it is read."""
    connection: Connection | None = visit.scope.get(CONNECTION)
    if connection is not None:
        # BARRIER: one link would hold as much of that as there are connections; held by
        # tests/unit/server/test_files.py.
        async with _in_time(longest_s(min(count, _AT_ONCE_BYTES))):
            await connection.sent()


@contextlib.asynccontextmanager
async def _in_time(seconds: float) -> AsyncIterator[None]:
    """Raises: TooSlow."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise TooSlow from None


async def _stream(visit: FileVisit, opened: OpenFile, part: Part) -> None:
    left = asyncio.create_task(_until_left(visit.receive))
    try:
        status, headers = _head(opened.file, part)
        await visit.start(status, {**headers, "content-length": str(part.count)})
        at, end = part.start, part.start + part.count
        while at < end:
            size = min(visit.transfers.piece_bytes(), end - at)
            with apart(visit.transfers.threads):
                data = await to_its_end(os.pread, opened.descriptor, size, at)
            at += len(data)
            # The last piece is held back until it is known that all of them belong together.
            if not data or (at == end and not opened.is_unchanged()):
                raise Changed
            async with _in_time(longest_s(size)):
                await visit.send({"type": "http.response.body", "body": data, "more_body": at < end})
            if left.done() and at < end:
                raise ClientDisconnect
    finally:
        left.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await left


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _read(descriptor: int, part: Part) -> bytes | None:
    data = os.pread(descriptor, part.count, part.start)
    return data if len(data) == part.count else None


def _head(file: MountFile, part: Part) -> tuple[int, dict[str, str]]:
    headers = {
        **_told(file),
        "accept-ranges": "bytes",
        "content-type": _type_of(file.path),
        "content-disposition": _disposition(file.path),
        # BARRIER: a page that was put into a mount would speak to the server in the name of who looks at it; held by
        # tests/server/test_files.py.
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox",
    }
    if part.whole:
        return 200, headers
    return 206, {**headers, "content-range": f"bytes {part.start}-{part.start + part.count - 1}/{file.size}"}


def _told(file: MountFile) -> dict[str, str]:
    modified = datetime.datetime.fromisoformat(file.modified_at)
    return {"etag": etag(file), "last-modified": email.utils.format_datetime(modified, usegmt=True)}


def _type_of(path: str) -> str:
    # As a name: what looks like an address is taken for one.
    kind, coding = mimetypes.guess_type(f"/{path.rpartition('/')[2]}")
    if coding is not None:
        return "application/gzip" if coding == "gzip" else _UNKNOWN
    return kind or _UNKNOWN


def _disposition(path: str) -> str:
    name = path.rpartition("/")[2]
    if _PLAIN_NAME.fullmatch(name):
        return f'attachment; filename="{name}"'
    return f"attachment; filename*=UTF-8''{urllib.parse.quote(name, safe='')}"
