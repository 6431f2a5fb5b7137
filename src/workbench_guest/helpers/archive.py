"""One zip of several files and folders: names kept apart, nothing that was not named, what is left out is told."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from typing import IO

MOST_FILES = 100_000
_CHUNK_BYTES = 1024 * 1024
# From where on a member needs the longer headers; a file may still grow while it is read.
_LARGE_BYTES = 1024**3
_MOST_TOLD = 5


class NothingToPack(Exception):
    """There is no file in what was named. Says so."""


class Contents:
    """What goes into an archive: pairs of a file and its name there, in a steady order."""

    def __init__(self, paths: list[str], leave_out: str) -> None:
        """`leave_out` begins the names of files that are being made, perhaps in one of the folders.

        Raises:
            NothingToPack: a folder has no file that can be packed, or there are too many.
            OSError: a folder cannot be read.
        """
        self._leave_out = leave_out
        self._folders = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
        self.members: list[tuple[str, str]] = []
        self.skipped: list[str] = []
        """what was left out, with the reason"""
        self.name = f"{os.path.basename(paths[0])}.zip" if len(paths) == 1 and paths[0] != "/" else "files.zip"
        """of the archive"""
        taken: set[str] = set()
        for path in _once(paths):
            name = _free(os.path.basename(path) or "files", taken)
            taken.add(name)
            if os.path.isdir(path):
                self._add_folder(path, name)
            else:
                self.members.append((path, name))

    @property
    def note(self) -> str:
        """What is said of it, to follow its name."""
        left_out = f"; left out: {told(self.skipped)}" if self.skipped else ""
        return f" ({len(self.members):,} files{left_out})"

    def _add_folder(self, top: str, name: str) -> None:
        before, skipped_before = len(self.members), len(self.skipped)
        for path in self._walk(top):
            self.members.append((path, f"{name}/{os.path.relpath(path, top)}"))
            if len(self.members) > MOST_FILES:
                raise NothingToPack(f"{top} has more than {MOST_FILES:,} files: upload parts of it")
        if len(self.members) == before:
            left_out = self.skipped[skipped_before:]
            why = f"has no file that can be uploaded ({told(left_out)})" if left_out else "is an empty folder"
            raise NothingToPack(f"{top} {why}")

    def _walk(self, top: str) -> Iterator[str]:
        """Files below a folder, without recursion: a guest can nest deeper than Python can."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            deeper = []
            for entry in found:
                if entry.name.startswith(self._leave_out):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    deeper.append(entry.path)
                elif reason := self._reason_against(entry):
                    self.skipped.append(f"{entry.path} ({reason})")
                else:
                    yield entry.path
            waiting += reversed(deeper)

    def _reason_against(self, entry: os.DirEntry[str]) -> str:
        if entry.is_symlink():
            target = os.path.realpath(entry.path)
            # Whoever made the folder may be another than who hands it out: it must not bring along what nobody named.
            if not any(target.startswith(folder.rstrip("/") + "/") for folder in self._folders):
                return "a link to elsewhere"
            if not os.path.isfile(target):
                return "a link to no file"
        elif not entry.is_file(follow_symlinks=False):
            return "a pipe, a socket or a device"
        return "" if os.access(entry.path, os.R_OK) else "no permission to read it"


def write(contents: Contents, target: IO[bytes]) -> None:
    """The archive, streamed: no file is held in memory.

    Raises:
        OSError: a file cannot be read, or there is no room.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, name in contents.members:
            with open_regular(path) as source:
                info = zipfile.ZipInfo.from_file(path, _sayable(name), strict_timestamps=False)
                info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, "w", force_zip64=info.file_size >= _LARGE_BYTES) as member:
                    copy(source, member)


def open_regular(path: str) -> IO[bytes]:
    """A file for reading; what has become a pipe meanwhile is not waited for.

    Raises:
        OSError: it cannot be read, or is no regular file any more.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")


def copy(source: IO[bytes], target: IO[bytes]) -> None:
    """All of it, in pieces."""
    shutil.copyfileobj(source, target, _CHUNK_BYTES)


def told(skipped: list[str]) -> str:
    """Some of them, and how many more."""
    more = len(skipped) - _MOST_TOLD
    return "; ".join(skipped[:_MOST_TOLD]) + (f"; and {more:,} more" if more > 0 else "")


def _once(paths: list[str]) -> list[str]:
    """A file that was named twice is packed once."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(os.path.realpath(path), path)
    return list(first.values())


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = numbered(name, number)
    return free


def numbered(name: str, number: int) -> str:
    """`report.pdf` and 2 are `report-2.pdf`."""
    stem, ending = os.path.splitext(name)
    return f"{stem}-{number}{ending}"


def _sayable(name: str) -> str:
    """A name on Linux is bytes; in an archive it is text."""
    return name.encode("utf-8", "backslashreplace").decode()
