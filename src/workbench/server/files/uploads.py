"""A file on its way in, in one go: in its place when it is whole, and not before."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import hashlib
import re

from starlette.datastructures import Headers

from workbench.core.mount_requests import StageFile
from workbench.errors import InvalidRequest, NotFound
from workbench.model.mounts import MountFile
from workbench.server.answers import JSON
from workbench.server.files.bodies import Body
from workbench.server.files.conditions import check_writable, has_conditions
from workbench.server.files.visit import FileVisit, Refused
from workbench.wire import rest_files

_DIGESTS = {"sha-256": hashlib.sha256, "sha-512": hashlib.sha512}
_DIGEST = re.compile(r"\s*([a-z0-9-]+)\s*=\s*:([A-Za-z0-9+/=]*):\s*")


async def upload(visit: FileVisit) -> MountFile:
    """Answer PUT."""
    size = visit.link.size
    body = Body(visit, most=size)
    if "content-range" in visit.headers:
        raise Refused(InvalidRequest("PUT takes a whole file; for a part of one send PATCH, as tus 1.0 has it"), 400)
    if not {"content-length", "transfer-encoding"} & set(visit.headers):
        # It would be taken for an empty file, which few mean.
        raise Refused(InvalidRequest("PUT needs Content-Length; for an empty file send 0"), 411)
    if size is not None and body.length not in (None, size):
        raise _other_size(size, body.length or 0)
    digests = Digests(visit.headers)
    await _check(visit)
    wanted = StageFile(session=visit.link.session, path=visit.link.path, mount=visit.link.mount, size=body.length)
    async with visit.mounts.stage(wanted) as staged:
        await body.into(staged, digests.update if digests else None)
        if size is not None and body.received != size:
            raise _other_size(size, body.received)
        digests.check()
        may = functools.partial(check_writable, visit.headers) if has_conditions(visit.headers) else None
        made = await staged.commit(may)
    told = rest_files.File.model_validate(made)
    await visit.answer(201, {"content-type": JSON, "etag": f'"{made.version}"'}, told.model_dump_json().encode())
    return made


async def _check(visit: FileVisit) -> None:
    """Raises: Refused, 412."""
    if not has_conditions(visit.headers):
        return
    there = None
    with contextlib.suppress(NotFound):
        there = await visit.mounts.describe_file(visit.file)
    check_writable(visit.headers, there)


def _other_size(size: int, came: int) -> InvalidRequest:
    return InvalidRequest(
        f"the link was made for a file of {size:,} bytes, and this has {came:,}; nothing was changed",
        {"size": str(size)},
    )


class Digests:
    """What the client says about what it sends, and what came; false if it says nothing."""

    def __init__(self, headers: Headers) -> None:
        """Raises: InvalidRequest for a header that cannot be read."""
        self._wanted = [(name, hashlib.new(name), value) for name, value in _announced(headers)]

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def update(self, data: bytearray) -> None:
        """More has come."""
        for _, digest, _ in self._wanted:
            digest.update(data)

    def check(self) -> None:
        """Raises: InvalidRequest if something else came."""
        for name, digest, value in self._wanted:
            if digest.digest() != value:
                raise InvalidRequest(f"what came has another {name} than you said; nothing was changed: send it again")


def _announced(headers: Headers) -> list[tuple[str, bytes]]:
    found = []
    if (told := headers.get("content-md5")) is not None:
        found.append(("md5", _bytes("Content-MD5", told, 16)))
    for header in ("repr-digest", "content-digest"):
        for part in headers.get(header, "").split(",") if header in headers else ():
            read = _DIGEST.fullmatch(part)
            if read is None:
                raise _unreadable(header)
            if read[1] in _DIGESTS:
                kind = _DIGESTS[read[1]]()
                found.append((kind.name, _bytes(header, read[2], kind.digest_size)))
    return found


def _bytes(header: str, text: str, size: int) -> bytes:
    try:
        value = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise _unreadable(header) from None
    if len(value) != size:
        raise _unreadable(header)
    return value


def _unreadable(header: str) -> InvalidRequest:
    return InvalidRequest(
        f"{header} cannot be read; send base64, as in Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg== or Repr-Digest: sha-256=:…:"
    )
