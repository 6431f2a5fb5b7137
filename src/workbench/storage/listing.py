"""Listing a folder that a guest fills: in the order of paths, a page at a time, at a bounded price."""

from __future__ import annotations

import datetime
import heapq
import os
import stat
from dataclasses import dataclass, field
from urllib.parse import quote_from_bytes, unquote_to_bytes

from workbench.errors import InvalidRequest
from workbench.guest_files import open_folder
from workbench.model.mounts import MOST_PATH_BYTES, FilePath, FilesFound, FilesWanted, MountFile

# What one page may look at: a guest can make a million folders with nothing in them.
_MOST_LOOKED_AT = 50_000
# What is remembered of one folder: as many as a page has, and as many again that turn out to be no files.
_MOST_KEYS = 2048
# Going down so many folders costs as much as looking at one more entry.
_STEPS = 8
# Behind everything that begins with the same: no UTF-8 has such a byte.
_LAST = b"\xff"
# The end of the year 9998.
_LAST_MOMENT_MS = 253_370_764_799_999
_PLAIN = "/ !#$&'()*+,:;=?@[]^`{|}~\"<>\\"


def described(path: str, found: os.stat_result) -> MountFile:
    """A file, by what the system says of it."""
    # Code inside sets any time; some have no date, and others none that can be read again.
    millis = min(max(found.st_mtime_ns // 1_000_000, 0), _LAST_MOMENT_MS)
    moment = datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC)
    return MountFile(
        path=FilePath(path),
        size=found.st_size,
        modified_at=moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        # The time of the last change of anything about it, which code cannot set back as it can the other.
        version=f"{found.st_ino:x}-{found.st_size:x}-{found.st_ctime_ns:x}",
    )


def place_told(place: bytes) -> str:
    """As the next page is asked for: text, also where a name is none."""
    return quote_from_bytes(place, safe=_PLAIN)


def place_asked(text: str) -> bytes:
    """Where a page begins.

    Raises:
        InvalidRequest: we never said this.
    """
    try:
        return unquote_to_bytes(text)
    except UnicodeEncodeError:
        raise InvalidRequest("this is no place to go on from: pass on what the page before it gave, as it is") from None


@dataclass(slots=True)
class _Level:
    """A folder that is being listed."""

    path: bytes
    """with a slash at its end; empty for the top"""
    keys: list[bytes]
    """its entries, last first; folders with a slash at their ends, and what cannot be told of with a NUL"""
    has_more: bool
    """behind them"""


@dataclass(slots=True)
class Listing:
    """One page of what lies below an open folder. For a thread."""

    top: int
    wanted: FilesWanted
    files: list[MountFile] = field(default_factory=list)
    skipped: int = 0
    _looked_at: int = 0
    _prefix: bytes = b""
    _after: bytes = b""
    _behind: bytes = b""
    """the last place that is done with"""
    _held: tuple[bytes, int] | None = None
    """the folder that was last opened"""

    def page(self) -> FilesFound:
        """It.

        Raises:
            OSError: the top itself cannot be read.
            InvalidRequest: no page begins there.
        """
        self._prefix = self.wanted.prefix.encode()
        self._after = self._behind = place_asked(self.wanted.after)
        try:
            return self._page()
        finally:
            self._let_go()

    def _page(self) -> FilesFound:
        above = self._prefix.rpartition(b"/")[0]
        levels = [self._level(above + b"/") if above else self._keys(b"")]
        # Where it all begins is looked at for every page, or a folder of many would never have one.
        self._looked_at = 0
        while levels:
            level = levels[-1]
            if not level.keys:
                if level.has_more:
                    return self._found(self._behind)
                levels.pop()
                self._behind = max(self._behind, level.path + _LAST)
                continue
            if len(self.files) == self.wanted.limit or self._looked_at > _MOST_LOOKED_AT:
                return self._found(self._behind)
            path = level.path + level.keys.pop()
            if path.endswith(b"/"):
                levels.append(self._level(path))
                # Where the next page begins if this one ends here: it will not count again what was counted now.
                self._behind = max(self._behind, path)
            else:
                self._take(level.path, path)
        return self._found(None)

    def _found(self, place: bytes | None) -> FilesFound:
        after = None if place is None else place_told(place)
        return FilesFound(files=tuple(self.files), next_after=after, skipped=self.skipped)

    def _level(self, path: bytes) -> _Level:
        try:
            return self._keys(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            # A link by now, or closed to the host.
            self.skipped += 1
        return _Level(path, [], has_more=False)

    def _keys(self, folder: bytes) -> _Level:
        """What in the folder may be in the page or lead to it."""
        opened = self._open(folder)
        seen = 1 + folder.count(b"/") // _STEPS
        ahead = []
        with os.scandir(opened) as entries:
            for entry in entries:
                seen += 1
                key = _key(folder, entry)
                if self._is_ahead(folder + key.removesuffix(b"\0"), is_folder=key.endswith(b"/")):
                    ahead.append(key)
                    if len(ahead) >= 4 * _MOST_KEYS:
                        ahead = heapq.nsmallest(_MOST_KEYS + 1, ahead)
        keys = heapq.nsmallest(_MOST_KEYS + 1, ahead)
        has_more = len(keys) > _MOST_KEYS
        del keys[_MOST_KEYS:]
        keys.reverse()
        # Folders on the way to where the page begins are listed whole each time, or it would never come further.
        self._looked_at += 1 if self._after.startswith(folder) else seen
        return _Level(folder, keys, has_more)

    def _is_ahead(self, path: bytes, *, is_folder: bool) -> bool:
        if is_folder:
            is_wanted = path.startswith(self._prefix) or self._prefix.startswith(path)
            is_done = self._after == path + _LAST
            return is_wanted and not is_done and (path > self._after or self._after.startswith(path))
        return path.startswith(self._prefix) and path > self._after

    def _take(self, folder: bytes, path: bytes) -> None:
        if path.endswith(b"\0"):
            self.skipped += 1
            self._behind = path.removesuffix(b"\0")
            return
        self._behind = path
        try:
            opened = self._open(folder)
            found = os.stat(path[len(folder) :], dir_fd=opened, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISREG(found.st_mode):
            self.files.append(described(path.decode(), found))
        else:
            self.skipped += 1

    def _open(self, folder: bytes) -> int:
        if self._held is None or self._held[0] != folder:
            self._let_go()
            self._held = folder, open_folder(self.top, os.fsdecode(folder.removesuffix(b"/")))
        return self._held[1]

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held[1])
            self._held = None


def _key(folder: bytes, entry: os.DirEntry[str]) -> bytes:
    name = os.fsencode(entry.name)
    if not _can_be_told(folder, name):
        return name + b"\0"
    if entry.is_dir(follow_symlinks=False):
        return name + b"/"
    return name if entry.is_file(follow_symlinks=False) else name + b"\0"


def _can_be_told(folder: bytes, name: bytes) -> bool:
    if len(folder) + len(name) > MOST_PATH_BYTES:
        return False
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
