"""Whole outputs as files under /mnt/files/outputs, written from the spool by a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from workbench.host.cells.cell_spool import CellSpool
from workbench.host.cells.displays import DisplayKeeper, text_of
from workbench.host.cells.mount_files import Mount, MountFolder, MountRefused, NewFile
from workbench.model.execution import Piece, PieceKind
from workbench.model.ids import CellId

FOLDER = "outputs"
DISPLAYS = "displays"
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


def write_whole(
    spool: CellSpool, mount: Mount, cell: CellId, names: Sequence[str], give_up: threading.Event
) -> dict[str, Written]:
    """Each of the named texts in a file of its own, in one pass over the spool."""
    try:
        with mount.folder(FOLDER) as folder:
            return _write_all(spool, folder, cell, names, give_up)
    except MountRefused as problem:
        return dict.fromkeys(names, Written(None, str(problem)))
    except OSError as problem:
        # Ours, not the mount's: the disk of the spool.
        return dict.fromkeys(names, Written(None, f"it cannot be read back: {problem.strerror}"))


def _write_all(
    spool: CellSpool, folder: MountFolder, cell: CellId, names: Sequence[str], give_up: threading.Event
) -> dict[str, Written]:
    done: dict[str, Written] = {}
    files: dict[str, NewFile] = {}
    with contextlib.ExitStack() as opened:
        for name in names:
            file_name = f"{cell}.{name}.{_ENDINGS.get(name, 'txt')}"
            try:
                files[name] = folder.create(file_name)
            except MountRefused as problem:
                done[name] = Written(None, str(problem))
                continue
            opened.callback(files[name].close)
            done[name] = Written(f"{folder.inside}/{file_name}")
        for name, data in _contents(spool.pieces()):
            if give_up.is_set():
                done.update(_discarded(files, list(files), "the sandbox was closed"))
                break
            if name in files:
                try:
                    files[name].write(data)
                except MountRefused as problem:
                    done.update(_discarded(files, [name], str(problem)))
    return done


def _discarded(files: dict[str, NewFile], names: Sequence[str], reason: str) -> dict[str, Written]:
    """Half a file would be read as the whole."""
    for name in names:
        files.pop(name).discard()
    return dict.fromkeys(names, Written(None, reason))


def _contents(pieces: Iterator[Piece]) -> Iterator[tuple[str, bytes]]:
    """What belongs where, in order."""
    displays, any_result = DisplayKeeper(), False
    for piece in pieces:
        if piece.kind in (PieceKind.STDOUT, PieceKind.STDERR):
            yield piece.kind.value, piece.text.encode()
        if piece.display is None:
            continue
        if piece.display.is_result and piece.kind is PieceKind.DISPLAY:
            text = text_of(piece.display)
            yield "results", (f"\n{text}" if any_result else text).encode()
            any_result = any_result or bool(text)
        if not displays.add(piece):
            yield DISPLAYS, _line(piece)


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
