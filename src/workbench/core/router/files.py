"""Files of calls: those that arguments name, out of the session's own mount, and those that services give, into it.

A file is named as `get_mount_file_s3_key` tells it inside: `{"name": …, "mimetype": …, "s3key": "<mount>/<path>"}`.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Iterator
from typing import Any

from workbench.contracts.clock import Clock
from workbench.core.mount_requests import FetchFile, OpenMountFile, StageFile
from workbench.core.mounts import Mounts
from workbench.errors import InvalidRequest, TooLarge
from workbench.model.mounts import INSIDE
from workbench.model.session import Session
from workbench.model.toolkit import Json, ReturnedFile

KEY = "s3key"
# Of one call: services take no more in one request, and all of it is in memory.
_MOST_BYTES = 32 * 2**20
_MOST_FILES = 20
_DEEPEST = 20
_FOLDER = "tool_files"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")
_WRITE_BYTES = 1024 * 1024


async def named_in(arguments: Json, session: Session, mounts: Mounts) -> dict[str, bytes]:
    """Contents of the files that arguments name, by their keys.

    Raises:
        InvalidRequest: a key is not of this session's mount.
        NotFound: there is no such file.
        TooLarge: they are more than a call carries.
    """
    keys = list(dict.fromkeys(_keys(arguments)))
    if len(keys) > _MOST_FILES:
        raise InvalidRequest(f"the arguments name {len(keys)} files, and a call takes at most {_MOST_FILES}")
    found: dict[str, bytes] = {}
    for key in keys:
        found[key] = await _content(key, session, mounts, _MOST_BYTES - sum(map(len, found.values())))
    return found


async def sent(place: str, session: Session, mounts: Mounts) -> bytes:
    """The content of a file by where it is: its key or its path in the session's mount, or a URL, which is fetched.

    Raises:
        InvalidRequest: it is no file of this session, and no URL that can be fetched.
        NotFound: there is no such file.
        TooLarge: it is more than a call carries.
    """
    if place.startswith(("http://", "https://")):
        folder = f"{_FOLDER}/fetched_{secrets.token_hex(6)}/"
        file = await mounts.fetch(FetchFile(session=session.spec.id, url=place, path=folder))
        return await _content(f"{session.mount}/{file.path}", session, mounts, _MOST_BYTES)
    key = f"{session.mount}/{place.removeprefix(INSIDE + '/')}" if place.startswith(f"{INSIDE}/") else place
    return await _content(key, session, mounts, _MOST_BYTES)


def _keys(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if isinstance(key := value.get(KEY), str):
            yield key
        for one in value.values():
            yield from _keys(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _keys(one, depth + 1)


async def _content(key: str, session: Session, mounts: Mounts, room: int) -> bytes:
    mount, _, path = key.partition("/")
    # BARRIER: a key of another session's mount would send its files to a service of this user's; held by
    # tests/unit/core/router/test_files.py.
    if mount != session.mount or not path:
        raise InvalidRequest(
            f"{key[:100]!r} is no file of this session: `{KEY}` has to be what get_mount_file_s3_key gives for a file "
            f"under {INSIDE}, which is `{session.mount}/` and its path",
            {"argument": KEY},
        )
    async with mounts.open(OpenMountFile(session=session.spec.id, path=path)) as opened:
        size = opened.file.size
        if size > room:
            raise TooLarge(f"{path[:200]!r} has {size:,} bytes, and the files of a call have at most {_MOST_BYTES:,}")
        # Not more than it had: a guest may be writing to it.
        return await asyncio.to_thread(_read, opened.descriptor, size)


def _read(descriptor: int, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size and (piece := os.pread(descriptor, min(_WRITE_BYTES, size - len(pieces)), len(pieces))):
        pieces += piece
    return bytes(pieces)


async def kept(file: ReturnedFile, session: Session, mounts: Mounts, clock: Clock) -> Json:
    """Put into the mount, under a name of its own; what is told of it.

    Raises:
        QuotaExceeded: there is no room for it.
    """
    name = _PLAIN.sub("_", file.name).strip("._")[-100:] or "file"
    stamp = "".join(letter for letter in clock.now_iso()[:19] if letter.isdigit())
    path = f"{_FOLDER}/{stamp}_{secrets.token_hex(3)}_{name}"
    async with mounts.stage(StageFile(session=session.spec.id, path=path, size=len(file.content))) as staged:
        for start in range(0, len(file.content), _WRITE_BYTES):
            await staged.write(file.content[start : start + _WRITE_BYTES])
        await staged.commit()
    return {
        "name": file.name,
        "mimetype": file.content_type,
        KEY: f"{session.mount}/{path}",
        "file_path": f"{INSIDE}/{path}",
        "size_bytes": len(file.content),
    }
