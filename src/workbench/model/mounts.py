"""Files of a session as callers know them: paths below its mount, what lies there, and links to it.

A path is told from the top of the mount, without a slash at its beginning. What agents see inside is the same behind
`/mnt/files/`, and is taken as well, so that a path can be passed on wherever it was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from workbench.errors import InvalidRequest, NotFound

FilePath = NewType("FilePath", str)

FILES = "files"
"""what the one mount of a session is called by callers"""
INSIDE = "/mnt/files"
# With /mnt/files/ before it, it has to fit what Linux takes, with a NUL at its end; and one name what a folder takes.
MOST_PATH_BYTES = 4000
MOST_NAME_BYTES = 255
MOST_PAGE, DEFAULT_PAGE = 500, 100
# A week, as the field has it; longer ones outlive whoever remembers them.
MOST_LINK_S, DEFAULT_LINK_S = 7 * 86_400, 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MountFile:
    """One that is there."""

    path: FilePath
    size: int
    modified_at: str
    """ISO 8601, UTC"""
    version: str
    """another one whenever what is in it has changed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesWanted:
    """Which files to list, in the order of their paths."""

    prefix: str = ""
    """only those whose path begins so"""
    after: str = ""
    """go on behind this place, be it still there or not; from `FilesFound.next_after`"""
    limit: int = DEFAULT_PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    """Some of them; fewer than asked for also where many folders without files lie between."""

    files: tuple[MountFile, ...]
    next_after: str | None
    """where the next page begins; None if this is the last"""
    skipped: int = 0
    """what lies between these and is no file that can be told of: links, devices, names that are no text"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a mount may hold."""

    bytes: int
    files: int
    """files and folders"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountUse:
    """What a mount holds."""

    bytes: int
    files: int
    """files and folders"""
    complete: bool = True
    """False if a part of it could not be measured"""
    coming_bytes: int = 0
    """of uploads that are not done, which count as well; they are dropped when nobody comes back to them for days"""
    unsaved: int = 0
    """files that are not in the object store yet, where there is one"""


class LinkAction(StrEnum):
    """What a link is for."""

    DOWNLOAD = "download"
    UPLOAD = "upload"


def check_mount(name: str) -> None:
    """Raises: NotFound for every name but that of the one there is."""
    if name != FILES:
        shown = _shown(name)
        raise NotFound(
            f"no such mount: {shown!r}; a session has one, {FILES!r}, which code inside sees at {INSIDE}",
            {"mount": shown},
        )


def is_web_address(source: str) -> bool:
    """Whether it is something that another server has."""
    return source.lower().startswith(("http://", "https://"))


def file_path(text: str) -> FilePath:
    """Of a file.

    Raises:
        InvalidRequest: no file can have it; the message says why.
    """
    path = entry_path(text)
    if text.endswith("/"):
        raise _unusable(text, "a path that ends with a slash is a folder; name the file in it")
    return path


def entry_path(text: str) -> FilePath:
    """Of a file or a folder; a slash at its end says that a folder is meant, and is dropped.

    Raises:
        InvalidRequest: nothing can have it; the message says why.
    """
    path = _from_the_top(text)
    path = path.removesuffix("/")
    if not path:
        raise _unusable(text, f"it is empty; name something below {INSIDE}")
    # BARRIER: `..` would lead out of the mount; held by tests/unit/model/test_mounts.py. It is refused and not
    # resolved: who writes it means something else than we would make of it.
    for name in path.split("/"):
        if name in ("", ".", ".."):
            why = "two slashes in a row" if name == "" else f"the step {name!r}"
            raise _unusable(text, f"it has {why}; write the plain path from the top of the mount, such as data/in.csv")
        if len(_encoded(text, name)) > MOST_NAME_BYTES:
            raise _unusable(text, f"{name[:20]!r}… has more than {MOST_NAME_BYTES} bytes; shorten it")
    return FilePath(path)


def prefix_of(text: str) -> str:
    """With which the paths of files begin; empty for all.

    Raises:
        InvalidRequest: no path begins so.
    """
    prefix = _from_the_top(text)
    steps = prefix.split("/")
    if ".." in steps or "." in steps[:-1] or "" in steps[:-1]:
        raise _unusable(text, "no path in a mount begins so; write it plainly, such as data/2026-")
    return prefix


def _from_the_top(text: str) -> str:
    encoded = _encoded(text, text)
    if "\0" in text:
        raise _unusable(text, "it has a NUL character in it; leave that out")
    if len(encoded) > MOST_PATH_BYTES:
        raise _unusable(text, f"it has {len(encoded)} bytes, and a path may have {MOST_PATH_BYTES}; shorten it")
    if text == INSIDE or text.startswith(INSIDE + "/"):
        return text.removeprefix(INSIDE).removeprefix("/")
    return text.removeprefix("/")


def _encoded(text: str, part: str) -> bytes:
    try:
        return part.encode()
    except UnicodeEncodeError:
        raise _unusable(text, "it has half a character in it; send it as UTF-8") from None


def _unusable(text: str, why: str) -> InvalidRequest:
    shown = _shown(text)
    return InvalidRequest(f"not a path in the mount: {shown!r}: {why}", {"path": shown})


def _shown(text: str) -> str:
    """Short, and good to be sent."""
    return (text if len(text) <= 60 else f"{text[:60]}…").encode("utf-8", "replace").decode()
