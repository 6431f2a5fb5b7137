"""Uploads in pieces on one link, in the manner of tus 1.0: HEAD tells how far it came, and PATCH goes on there."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from workbench.contracts.mounts import StagedFile
from workbench.core.mount_requests import StageFile
from workbench.errors import Conflict, InvalidRequest, TooLarge, UnsupportedMedia
from workbench.model.mounts import MountFile
from workbench.server.files.bodies import Body
from workbench.server.files.visit import FileVisit, Refused

TUS = "1.0.0"
OPTIONS = {"tus-resumable": TUS, "tus-version": TUS, "tus-extension": "creation-defer-length,termination"}
_PIECE = "application/offset+octet-stream"
_NUMBER = re.compile(r"[0-9]{1,16}")
_KEPT = re.compile(r"([0-9]{1,16})( done)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What was written down of an upload."""

    length: int | None = None
    done: bool = False


async def reached(visit: FileVisit) -> None:
    """Answer HEAD."""
    known = await _known(visit)
    offset = known.length if known.done else await visit.mounts.staged(_wanted(visit, None))
    length = visit.link.size if known.length is None else known.length
    told = {"upload-defer-length": "1"} if length is None else {"upload-length": str(length)}
    await visit.start(200, {"tus-resumable": TUS, "upload-offset": str(offset), **told})
    await visit.send({"type": "http.response.body"})


async def go_on(visit: FileVisit) -> MountFile | None:
    """Answer PATCH; the file, if that was the last piece."""
    _check_version(visit)
    offset = _number(visit, "upload-offset")
    if offset is None:
        raise InvalidRequest("PATCH needs Upload-Offset, where this piece begins; HEAD tells how far the upload came")
    with visit.transfers.alone(visit.arrived.signature):
        reached_now, made = await _gone_on(visit, offset)
    await visit.answer(204, {"tus-resumable": TUS, "upload-offset": str(reached_now)})
    return made


async def _gone_on(visit: FileVisit, offset: int) -> tuple[int, MountFile | None]:
    known = await _known(visit)
    length = _length(visit, known)
    if known.done:
        # Who asks for nothing more is told that all is there: the answer to the last piece may have been lost.
        if offset != known.length or Body(visit).length != 0:
            raise _complete(known.length or 0)
        return offset, None
    most = None if length is None else max(length - offset, 0)
    body = Body(visit, most)
    if most is not None and (body.length or 0) > most:
        raise TooLarge(f"the file has {length:,} bytes, and this piece goes beyond that", {"size": str(length)})
    async with visit.mounts.stage(_wanted(visit, length)) as staged:
        await _check_place(visit, staged, offset, length)
        if length is not None and known.length is None:
            await visit.mounts.remark(_wanted(visit, None), str(length))
        await body.into(staged)
        reached_now = staged.offset
        made = await staged.commit() if reached_now == length else None
        if made is not None:
            await visit.mounts.remark(_wanted(visit, None), f"{length} done")
    return reached_now, made


async def drop(visit: FileVisit) -> None:
    """Answer DELETE: nothing of the upload is kept, and another may begin on the link."""
    with visit.transfers.alone(visit.arrived.signature):
        known = await _known(visit)
        if known.done:
            raise _complete(known.length or 0)
        await visit.mounts.unstage(_wanted(visit, None))
    await visit.answer(204, {"tus-resumable": TUS})


async def _check_place(visit: FileVisit, staged: StagedFile, offset: int, length: int | None) -> None:
    """Raises: Refused, 409, if the piece does not belong here; InvalidRequest if it is longer than the whole."""
    known = await _known(visit)
    if known.done:
        # By another connection since we looked; what we hold is the beginning of one that nobody wants.
        await staged.discard()
        raise _complete(known.length or 0)
    if staged.offset != offset:
        raise _other_offset(staged.offset)
    if length is not None and length < offset:
        raise InvalidRequest(
            f"Upload-Length is {length:,}, and {offset:,} bytes have come already; tell the length of the whole file",
            {"offset": str(offset)},
        )


def _check_version(visit: FileVisit) -> None:
    if (version := visit.headers.get("tus-resumable", TUS)) != TUS:
        why = InvalidRequest(f"this speaks tus {TUS}, not {version[:20]!r}")
        raise Refused(why, 412, {"tus-version": TUS})
    kind = visit.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _PIECE:
        raise UnsupportedMedia(f"a piece of a file comes as `content-type: {_PIECE}`, not {kind[:100] or 'none'!r}")


def _length(visit: FileVisit, known: _Known) -> int | None:
    said = _number(visit, "upload-length")
    length = visit.link.size if known.length is None else known.length
    if said is not None and length not in (None, said):
        raise InvalidRequest(f"Upload-Length was {length:,} before, and cannot change", {"size": str(length)})
    return said if length is None else length


def _number(visit: FileVisit, header: str) -> int | None:
    told = visit.headers.get(header)
    if told is None:
        return None
    if not _NUMBER.fullmatch(told.strip()):
        raise InvalidRequest(f"{header} must be a number of bytes", {"header": header})
    return int(told)


def _complete(length: int) -> Refused:
    why = Conflict("this upload is complete, and the file in its place; for another one ask for another link")
    return Refused(why, 409, {"tus-resumable": TUS, "upload-offset": str(length)})


def _other_offset(offset: int) -> Refused:
    why = Conflict(f"this upload has come to byte {offset:,}: go on there", {"offset": str(offset)})
    return Refused(why, 409, {"tus-resumable": TUS, "upload-offset": str(offset)})


async def _known(visit: FileVisit) -> _Known:
    kept = _KEPT.fullmatch(await visit.mounts.remarked(_wanted(visit, None)))
    return _Known() if kept is None else _Known(length=int(kept[1]), done=kept[2] is not None)


def _wanted(visit: FileVisit, size: int | None) -> StageFile:
    # Of the signature, so that each link has an upload of its own; not the signature itself, which lies in no folder.
    name = f"up-{hashlib.sha256(visit.arrived.signature.encode()).hexdigest()[:40]}"
    link = visit.link
    return StageFile(session=link.session, path=link.path, mount=link.mount, name=name, size=size)
