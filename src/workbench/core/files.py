"""Files of a session, read and written by programs inside its sandbox: nothing outside ever opens what a guest made.

Data goes in as base64 in command lines and comes out as base64 on standard output, a part at a time: a command line is
bounded, and what one prints is put into a file of the session if it is longer than a result shows.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import posixpath
import re
import shlex
from dataclasses import dataclass

from workbench.core import requests
from workbench.core.errands import Errands, Shell, last_words
from workbench.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, WorkbenchError
from workbench.model.execution import CommandResult
from workbench.model.ids import SessionId, new_cell_id
from workbench.model.truncation import INLINE_CHARACTERS

HOME = "/home/user"
KEPT = "/mnt/files"
# As Linux has it, with the NUL at its end.
_MOST_PATH_BYTES = 4095
# In base64, and with a path whose every character is quoted, still under what one command line may have.
_PART_IN_BYTES = 54_000
# In base64, with a line before it, no more than a result shows.
_PART_OUT_BYTES = (INLINE_CHARACTERS - 1000) // 4 * 3
# Of a path in a message.
_MOST_NAMED = 200
_REGULAR = ("regular file", "regular empty file")
# As many as a file can have, in digits that Python turns into a number whoever printed them.
_SIZE = re.compile(r"[0-9]{1,19}")
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_MISSING = ("No such file or directory", "Not a directory")

# `$p` is the path. What is looked at is looked at by stat, which opens nothing: a FIFO would wait for a writer.
_LOOK = "export LC_ALL=C; stat -Lc '%F|%s|%d:%i:%.9Y' -- \"$p\""
_WORK = 'export LC_ALL=C; set -e -o pipefail; d=${p%/*}; d=${d:-/}; t="$d/.$n.part"; '
_BEGIN = 'if [ -d "$p" ]; then echo "x: Is a directory" >&2; exit 1; fi; mkdir -p -- "$d"; '
# The mode of what was there stays, say for a script; nobody ever sees half a file.
_END = 'if [ -f "$p" ]; then chmod --reference="$p" -- "$t"; fi; mv -fT -- "$t" "$p"; '


class Files:
    """One project's."""

    def __init__(self, errands: Errands) -> None:
        self._errands = errands

    async def write(self, request: requests.WriteFile) -> requests.FileState:
        """Under another name in the same folder, then renamed."""
        path = inside(request.path, is_new=True)
        if len(request.data) > requests.MOST_FILE_BYTES:
            raise _too_large(path, len(request.data), requests.MOST_FILE_BYTES)

        async def work(shell: Shell) -> requests.FileState:
            await _make(shell, path, _writing(request.data))
            return requests.FileState(path=path, size=len(request.data))

        return await self._errands.run(request.session, work)

    async def copy(self, request: requests.CopyFile) -> requests.FileState:
        """The same, from a file of the same sandbox."""
        source, path = inside(request.source), inside(request.destination, is_new=True)

        async def work(shell: Shell) -> requests.FileState:
            size = (await _look(shell, source, request.session)).size
            if source != path:
                await _make(shell, path, [f'cp -- {shlex.quote(source)} "$t"; '])
            return requests.FileState(path=path, size=size)

        return await self._errands.run(request.session, work)

    async def describe(self, request: requests.DescribeFile) -> requests.FileState:
        """Without reading it."""
        path = inside(request.path)

        async def work(shell: Shell) -> requests.FileState:
            return requests.FileState(path=path, size=(await _look(shell, path, request.session)).size)

        return await self._errands.run(request.session, work)

    async def has_any(self, request: requests.HasFiles) -> bool:
        """In /mnt/files; also if nobody can tell."""

        async def work(shell: Shell) -> bool:
            end = await shell.run(f'found=$(ls -A {KEPT}) && [ -z "$found" ]')
            return end.exit_code != 0

        return await self._errands.run(request.session, work)

    async def read(self, request: requests.ReadFile) -> requests.FileContent:
        """All of it, as it was at one moment."""
        path = inside(request.path)

        async def work(shell: Shell) -> requests.FileContent:
            return requests.FileContent(path=path, data=await _read(shell, path, request))

        return await self._errands.run(request.session, work)


def inside(path: str, *, is_new: bool = False) -> str:
    """The absolute path inside that is meant; what is relative begins at home.

    Raises:
        InvalidRequest: it can be no path of a file.
    """
    if not path or "\0" in path:
        raise InvalidRequest("a path may not be empty or contain a NUL character", {"path": path[:60]})
    if path == "~" or path.startswith("~/"):
        path = HOME + path[1:]
    whole = "/" + posixpath.normpath(posixpath.join(HOME, path)).lstrip("/")
    try:
        size = len(whole.encode())
    except UnicodeEncodeError:
        raise InvalidRequest("a path must be text in UTF-8", {"path": ascii(path)[:60]}) from None
    if size > _MOST_PATH_BYTES:
        raise InvalidRequest(f"a path has at most {_MOST_PATH_BYTES} bytes, and this one {size}", {"path": path[:60]})
    if is_new and (path.endswith("/") or whole in ("/", HOME)):
        raise InvalidRequest(f"{path[:200]} is a folder: name the file in it", {"path": whole})
    return whole


@dataclass(frozen=True, slots=True)
class _Seen:
    size: int
    identity: str
    """another one if it was changed or replaced"""
    rest: str
    """of what was printed"""


async def _look(shell: Shell, path: str, session: SessionId, more: str = "") -> _Seen:
    end = await shell.run(f'p={shlex.quote(path)}; {_LOOK} || exit 1; [ -f "$p" ] || exit 0; {more}')
    if end.exit_code != 0:
        raise _unreadable(path, session, last_words(end))
    kind, size, rest = (*end.stdout.text.split("|", 2), "", "")[:3]
    if kind == "directory":
        raise InvalidRequest(
            f"{_short(path)} is a folder; name a file in it, or pack it first with tar",
            {"path": path},
        )
    if kind not in _REGULAR or not _SIZE.fullmatch(size):
        raise InvalidRequest(
            f"{_short(path)} is no ordinary file ({kind[:40]}), and cannot be read as one", {"path": path}
        )
    identity, _, printed = rest.partition("\n")
    return _Seen(int(size), identity, printed)


async def _read(shell: Shell, path: str, request: requests.ReadFile) -> bytes:
    most = min(request.most_bytes, requests.MOST_FILE_BYTES)
    found = bytearray()
    first: _Seen | None = None
    while True:
        # Not to wait for a writer if it became a FIFO since it was looked at.
        dd = (
            f"dd bs={_PART_OUT_BYTES} count=1 skip={len(found) // _PART_OUT_BYTES} iflag=fullblock,nonblock status=none"
        )
        part = await _look(shell, path, request.session, f'set -o pipefail; {dd} if="$p" | base64 -w0')
        first = first or part
        if part.size > most:
            raise _too_large(path, part.size, most)
        if (part.size, part.identity) != (first.size, first.identity):
            raise _changed(path)
        data = _decoded(path, part.rest)
        found += data
        if len(found) > most:
            raise _too_large(path, len(found), most)
        if len(data) < _PART_OUT_BYTES:
            break
    # Those of /proc have a content, and no size.
    if first.size and len(found) != first.size:
        raise _changed(path)
    return bytes(found)


def _decoded(path: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{_short(path)} cannot be read: the sandbox's own programs answer strangely") from None


def _writing(data: bytes) -> list[str]:
    parts = [data[start : start + _PART_IN_BYTES] for start in range(0, len(data), _PART_IN_BYTES)] or [b""]
    # By cat, because base64 does not say why it cannot write.
    return [f'printf %s {base64.b64encode(part).decode()} | base64 -d | cat >> "$t"; ' for part in parts]


async def _make(shell: Shell, path: str, steps: list[str]) -> None:
    name = new_cell_id()
    begin = f"p={shlex.quote(path)}; n={name}; {_WORK}"
    try:
        for number, step in enumerate(steps):
            first, last = number == 0, number == len(steps) - 1
            end = await shell.run(f"{begin}{_BEGIN if first else ''}{step}{_END if last else ''}")
            if end.exit_code != 0:
                raise _unwritable(path, end)
    except BaseException:
        with contextlib.suppress(Exception):
            await shell.run(f'{begin}rm -f -- "$t"')
        raise


def _unreadable(path: str, session: SessionId, why: str) -> WorkbenchError:
    if why in _MISSING:
        return NotFound(f"no file {_short(path)} in session {session!r}", {"path": path, "session": session})
    return InvalidRequest(f"{_short(path)} cannot be read: {why.lower()[:200]}", {"path": path})


def _unwritable(path: str, end: CommandResult) -> WorkbenchError:
    why = last_words(end)
    if why in _FULL:
        return QuotaExceeded(
            f"{_short(path)} cannot be written: there is no room for it ({why.lower()})", {"path": path}
        )
    if why == "Is a directory":
        return InvalidRequest(f"{_short(path)} is a folder: name the file in it", {"path": path})
    if why == "File exists":
        return InvalidRequest(f"{_short(path)} cannot be written: a file is where a folder would have to be")
    where = f"; write below {HOME}, /tmp or /mnt/files" if why in ("Permission denied", "Read-only file system") else ""
    return InvalidRequest(f"{_short(path)} cannot be written: {why.lower()[:200]}{where}", {"path": path})


def _too_large(path: str, size: int, most: int) -> InvalidRequest:
    return InvalidRequest(
        f"{_short(path)} has {size:,} bytes, and at most {most:,} go in or out at once: split or pack it first",
        {"path": path},
    )


def _changed(path: str) -> Conflict:
    return Conflict(
        f"{_short(path)} was changed while it was read; read it again when nothing writes to it", {"path": path}
    )


def _short(path: str) -> str:
    return path if len(path) <= _MOST_NAMED else f"{path[:_MOST_NAMED]}..."
