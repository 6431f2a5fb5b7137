"""A search for secrets: in the memory, the environment and the command line of processes, in files, and in texts."""

from __future__ import annotations

import base64
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Forks share most of their memory: a block that was searched is not searched again.
_BLOCK = 64 * 1024
_CHUNK = 128 * _BLOCK
_PAGE = os.sysconf("SC_PAGESIZE")
# In an entry of a process's table of pages: in memory, or swapped.
_IS_THERE = 0b11 << 62
# More than this nobody expects here; a search that would need more has gone astray.
_MOST_BYTES = 16 * 2**30
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)")
# Where a process of a sandbox can write, as it sees it; its mount lies in the data folder, which is searched whole.
_WRITABLE = ("home", "tmp", "var/tmp", "dev/shm", "run", "root")


def forms(secret: bytes) -> set[bytes]:
    """What it may look like: as it is, in two bytes a letter, and in base64 wherever it begins in that."""
    text = secret.decode("latin-1")
    found = {secret, text.encode("utf-16-le"), text.encode("utf-16-be")}
    for before in range(3):
        packed = base64.b64encode(b"\0" * before + secret)
        # Without the letters that depend on what stands around it.
        inner = packed[4 if before else 0 : len(packed) - 4]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return found


@dataclass
class Search:
    """For secrets by their names. What was found is told by name and place, never by itself.

    Those that begin with the `mark` are looked for by it, all at once. The same in several processes is told of one.
    """

    secrets: Mapping[str, bytes]
    mark: bytes = b""
    found: set[tuple[str, str]] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)
    """processes whose memory is closed to us"""
    bytes_searched: int = 0

    def __post_init__(self) -> None:
        self._forms = {name: forms(secret) for name, secret in self.secrets.items()}
        marked = {name for name, secret in self.secrets.items() if self.mark and secret.startswith(self.mark)}
        self._needles = {form for name, those in self._forms.items() if name not in marked for form in those}
        self._needles |= forms(self.mark) if self.mark else set()
        self._overlap = max(len(form) for those in self._forms.values() for form in those)
        self._seen: set[int] = set()

    def text(self, where: str, text: str | bytes) -> None:
        """All of it."""
        self._pieces(where, [text.encode() if isinstance(text, str) else text])

    def process(self, pid: int, what: str) -> None:
        """What it holds, what it was started with, and its environment. One that has ended holds nothing."""
        for name in ("environ", "cmdline"):
            try:
                self.text(f"{name} of {what}", Path(f"/proc/{pid}/{name}").read_bytes())
            except (ProcessLookupError, FileNotFoundError):
                return
            except PermissionError:
                self.unread.append(f"{name} of {what}")
        try:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                maps = Path(f"/proc/{pid}/maps").read_bytes()
                with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pages:
                    for start, end in _own_ranges(maps, pages.fileno()):
                        self._pieces(f"memory of {what}", _read_memory(memory.fileno(), start, end))
        except (ProcessLookupError, FileNotFoundError):
            return
        except PermissionError:
            self.unread.append(f"memory of {what}")

    def folder(self, path: Path, what: str, leave_out: Iterable[Path] = ()) -> None:
        """Every regular file below it, and every name; nothing of the files and folders that are left out."""
        left_out = set(leave_out)
        for folder, inner, names in os.walk(path):
            inner[:] = [name for name in inner if Path(folder, name) not in left_out]
            for name in names:
                file = Path(folder, name)
                self.text(f"names in {what}", os.fsencode(name))
                if file in left_out:
                    continue
                self._file(file, f"{what}: {file.relative_to(path)}")

    def root_of(self, pid: int, what: str) -> None:
        """What lies in a sandbox where its processes can write."""
        if not os.access(f"/proc/{pid}/root/tmp", os.R_OK):
            self.unread.append(f"files of {what}")
        closed = _read_only(pid)
        for place in _WRITABLE:
            self.folder(Path(f"/proc/{pid}/root/{place}"), f"/{place} of {what}", closed)

    def _file(self, file: Path, where: str) -> None:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._pieces(where, iter(lambda: opened.read(_CHUNK), b""))

    def _pieces(self, where: str, pieces: Iterable[bytes]) -> None:
        """One after the other; what lies across the seam of two is found as well."""
        tail = b""
        for piece in pieces:
            self.bytes_searched += len(piece)
            assert self.bytes_searched < _MOST_BYTES
            whole = tail + (piece if self._is_new(piece) else piece[: self._overlap])
            if any(needle in whole for needle in self._needles):
                self._name(where, whole)
            tail = (tail + piece)[-self._overlap :]

    def _is_new(self, piece: bytes) -> bool:
        print_of_it = hash(piece)
        new = print_of_it not in self._seen
        self._seen.add(print_of_it)
        return new

    def _name(self, where: str, whole: bytes) -> None:
        names = {name for name, those in self._forms.items() if any(form in whole for form in those)}
        self.found |= {(name, where) for name in names or {"a part of one"}}


def _read_only(pid: int) -> list[Path]:
    """What is mounted for it and can be written nowhere, as the files of the interpreter are."""
    try:
        mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_bytes().splitlines()]
    except OSError:
        return []
    # The last one at a place is the one that is seen; octal numbers stand for spaces, and such a place is searched.
    seen = {Path(os.fsdecode(words[4])): b"ro" in words[5].split(b",") for words in mounts}
    open_places = {above for place, is_closed in seen.items() if not is_closed for above in (place, *place.parents)}
    return [Path(f"/proc/{pid}/root", *place.parts[1:]) for place in seen if place not in open_places]


def _own_ranges(maps: bytes, pages: int) -> Iterator[tuple[int, int]]:
    """What it can have written to: not code, and no file that it only reads."""
    for line in maps.splitlines():
        parsed = _MAPPING.match(line)
        assert parsed is not None
        start, end, rights, name = int(parsed[1], 16), int(parsed[2], 16), parsed[3], parsed[4]
        if rights[:1] != b"r" or (name.startswith(b"/") and rights[1:2] != b"w") or name in (b"[vvar]", b"[vsyscall]"):
            continue
        # What is shared may have been written by another process, and is not in this one's table then.
        yield from [(start, end)] if rights[3:4] == b"s" else _written(pages, start, end)


def _written(pages: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of it that are in memory or swapped: allocators reserve gigabytes and use little of them."""
    begin = None
    for at in range(start, end, _CHUNK):
        count = min(_CHUNK, end - at) // _PAGE
        entries = os.pread(pages, count * 8, at // _PAGE * 8)
        if not any(entries):
            if begin is not None:
                yield begin, at
            begin = None
            continue
        assert len(entries) == count * 8
        for number, (entry,) in enumerate(struct.iter_unpack("=Q", entries)):
            here = at + number * _PAGE
            if entry & _IS_THERE and begin is None:
                begin = here
            elif not entry & _IS_THERE and begin is not None:
                yield begin, here
                begin = None
    if begin is not None:
        yield begin, end


def _read_memory(memory: int, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, _CHUNK):
        try:
            piece = os.pread(memory, min(_CHUNK, end - at), at)
        except OSError:
            # It was given back meanwhile, or is no memory.
            return
        yield from (piece[begin : begin + _BLOCK] for begin in range(0, len(piece), _BLOCK))
