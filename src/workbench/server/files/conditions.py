"""What a request says about versions and ranges of a file, as RFC 9110 has it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers

from workbench.errors import Conflict, InvalidRequest
from workbench.model.mounts import MountFile
from workbench.server.files.visit import Refused

_TAG = re.compile(r'(W/)?"([^"]*)"')
# One of them. Who asks for several gets the whole, as it may.
_RANGE = re.compile(r"bytes=[ \t]*([0-9]*)[ \t]*-[ \t]*([0-9]*)[ \t]*")
# Larger than any file, and read as quickly as any number.
_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which bytes are wanted."""

    start: int
    count: int
    whole: bool


def etag(file: MountFile) -> str:
    """Of this version."""
    return f'"{file.version}"'


def check_writable(headers: Headers, there: MountFile | None) -> None:
    """For who writes only if things are as they think.

    Raises:
        Refused: 412.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and (there is None or not _names(wanted, there, weak=False)):
        raise _failed("the file is not, or no more, the one that If-Match names")
    if unwanted is not None and there is not None and _names(unwanted, there, weak=True):
        raise _failed("there is a file already, and If-None-Match says that there should be none")


def has_conditions(headers: Headers) -> bool:
    """Whether who writes has any."""
    return "if-match" in headers or "if-none-match" in headers


def is_known(headers: Headers, file: MountFile) -> bool:
    """Whether who reads has this version already.

    Raises:
        Refused: 412, if they want another one only.
    """
    wanted, known = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and not _names(wanted, file, weak=False):
        raise _failed("the file is no more the one that If-Match names")
    return known is not None and _names(known, file, weak=True)


def wanted_part(headers: Headers, file: MountFile) -> Part:
    """Of one who reads.

    Raises:
        Refused: 416.
    """
    everything = Part(start=0, count=file.size, whole=True)
    asked = _RANGE.fullmatch(headers.get("range", ""))
    if asked is None or not (asked[1] or asked[2]) or not file.size or not _still_that(headers, file):
        return everything
    if not asked[1]:
        count = min(_number(asked[2]), file.size)
        start, end = file.size - count, file.size
    else:
        start = _number(asked[1])
        end = min(_number(asked[2]) + 1, file.size) if asked[2] else file.size
        if asked[2] and _number(asked[2]) < start:
            return everything  # no range at all
    if start >= end:
        raise Refused(
            InvalidRequest(f"the file has {file.size:,} bytes, and the range begins behind them"),
            416,
            {"content-range": f"bytes */{file.size}"},
        )
    return Part(start=start, count=end - start, whole=False)


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return 10**_MOST_DIGITS if len(significant) > _MOST_DIGITS else int(significant or "0")


def _still_that(headers: Headers, file: MountFile) -> bool:
    """A date is not exact enough to continue by; a weak tag neither."""
    given = headers.get("if-range")
    return given is None or given.strip() == etag(file)


def _names(given: str, file: MountFile, *, weak: bool) -> bool:
    if given.strip() == "*":
        return True
    return any(tag == file.version and (weak or not mark) for mark, tag in _TAG.findall(given))


def _failed(why: str) -> Refused:
    return Refused(Conflict(f"{why}; nothing was done"), 412)
