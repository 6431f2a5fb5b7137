"""Whole outputs as files under /mnt/files/outputs, written from the spool by a thread."""

from __future__ import annotations

import base64
import binascii
import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from workbench.host.cells.cell_spool import CellSpool
from workbench.host.cells.displays import DisplayKeeper, is_base64, text_of
from workbench.host.cells.mount_files import Mount, MountFolder, MountRefused, NewFile
from workbench.model.execution import Piece, PieceKind
from workbench.model.ids import CellId

FOLDER = "outputs"
DISPLAYS, RESULTS = "displays", "results"
_TEXTS = {DISPLAYS, RESULTS, PieceKind.STDOUT.value, PieceKind.STDERR.value}
_ENDINGS = {DISPLAYS: "jsonl"}
_json = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Written:
    """One file, or why there is none."""

    path: str | None
    """inside the sandbox"""
    reason: str = ""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One display in the file."""

    data: dict[str, str]
    metadata: msgspec.Raw
    display_id: str
    is_result: bool
    update: bool
    """it replaces an earlier one with its id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is put into files."""

    texts: Sequence[str]
    """by name: each of them whole"""
    formats: Mapping[int, Mapping[str, str]]
    """of displays, by the number of their piece and by mime type: the file's name"""
    since: int = 0
    """the offset of the spool from which on output is shown"""

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.texts, *(name for files in self.formats.values() for name in files.values())]


def write_whole(
    spool: CellSpool, mount: Mount, cell: CellId, wanted: Wanted, give_up: threading.Event
) -> dict[str, Written]:
    """Each of the named in a file of its own, in one pass over the spool."""
    try:
        with mount.folder(FOLDER) as folder:
            missing = dict.fromkeys(wanted.names, Written(None, "it was not kept"))
            return missing | _write_all(spool, folder, cell, wanted, give_up)
    except MountRefused as problem:
        return dict.fromkeys(wanted.names, Written(None, str(problem)))
    except OSError as problem:
        # Ours, not the mount's: the disk of the spool.
        return dict.fromkeys(wanted.names, Written(None, f"it cannot be read back: {problem.strerror}"))


def _write_all(
    spool: CellSpool, folder: MountFolder, cell: CellId, wanted: Wanted, give_up: threading.Event
) -> dict[str, Written]:
    done: dict[str, Written] = {}
    files: dict[str, NewFile] = {}
    with contextlib.ExitStack() as opened:
        for name in wanted.texts:
            file_name = f"{cell}.{name}.{_ENDINGS.get(name, 'txt')}"
            try:
                files[name] = folder.create(file_name)
            except MountRefused as problem:
                done[name] = Written(None, str(problem))
                continue
            opened.callback(files[name].close)
            done[name] = Written(f"{folder.inside}/{file_name}")
        for name, data in _contents(spool.pieces(wanted.since), wanted.formats):
            if give_up.is_set():
                done.update(_discarded(files, list(files), "the sandbox was closed"))
                break
            if name in files:
                try:
                    files[name].write(data)
                except MountRefused as problem:
                    done.update(_discarded(files, [name], str(problem)))
            elif name not in done and name not in _TEXTS:
                done[name] = _one_file(folder, f"{cell}.{name}", data)
    return done


def _one_file(folder: MountFolder, name: str, data: bytes) -> Written:
    try:
        file = folder.create(name)
    except MountRefused as problem:
        return Written(None, str(problem))
    try:
        file.write(data)
    except MountRefused as problem:
        file.discard()
        return Written(None, str(problem))
    finally:
        file.close()
    return Written(f"{folder.inside}/{name}")


def _discarded(files: dict[str, NewFile], names: Sequence[str], reason: str) -> dict[str, Written]:
    """Half a file would be read as the whole."""
    for name in names:
        files.pop(name).discard()
    return dict.fromkeys(names, Written(None, reason))


def _contents(pieces: Iterator[Piece], formats: Mapping[int, Mapping[str, str]]) -> Iterator[tuple[str, bytes]]:
    """What belongs where, in order."""
    displays, any_result, number = DisplayKeeper(), False, 0
    for piece in pieces:
        if piece.kind in (PieceKind.STDOUT, PieceKind.STDERR):
            yield piece.kind.value, piece.text.encode()
        if piece.display is None:
            continue
        number += 1
        for mime, name in formats.get(number, {}).items():
            yield name, _as_a_file(mime, piece.display.data.get(mime, ""))
        if piece.display.is_result and piece.kind is PieceKind.DISPLAY:
            text = text_of(piece.display)
            yield RESULTS, (f"\n{text}" if any_result else text).encode()
            any_result = any_result or bool(text)
        if not displays.add(piece):
            yield DISPLAYS, _line(piece)


def _as_a_file(mime: str, value: str) -> bytes:
    """As programs open it, unless it is not what it says that it is."""
    if is_base64(mime):
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode("".join(value.split()), validate=True)
    return value.encode()


def _line(piece: Piece) -> bytes:
    display = piece.display
    assert display is not None
    line = _Line(
        data=display.data,
        metadata=msgspec.Raw(_valid_json(display.metadata)),
        display_id=display.display_id,
        is_result=display.is_result,
        update=piece.kind is PieceKind.UPDATE,
    )
    return _json.encode(line) + b"\n"


def _valid_json(text: str) -> bytes:
    """The guest's word; anything else would spoil the line."""
    try:
        return _json.encode(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError):
        return b"{}"
