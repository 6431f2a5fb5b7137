"""What a cell or command said: into the spool as it comes, counted and shortened for the result at the same time."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace

from workbench.host.cells.cell_spool import CellSpool, short_error
from workbench.host.cells.displays import MOST_OF_A_NAME, DisplayKeeper, Kept, text_of
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.whole_output import DISPLAYS, Wanted, Written, write_whole
from workbench.model.execution import CellError, Display, Piece, PieceKind, Text
from workbench.model.ids import CellId
from workbench.model.truncation import INLINE_CHARACTERS, Excerpt

_RESULTS = "results"
# Colours and titles for a terminal, which a traceback of IPython's has.
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_TEXTS = (PieceKind.STDOUT, PieceKind.STDERR)
# What takes the place of what was cleared before it.
_OUTPUT = (*_TEXTS, PieceKind.DISPLAY, PieceKind.ERROR)
# Of formats in files that are told one by one.
_MOST_TOLD = 5
_MOST_OF_A_TYPE = 100


class Recorder:
    """Owned by its cell."""

    def __init__(self, cell: CellId, spool: CellSpool, spool_max_bytes: int) -> None:
        self._cell = cell
        self._spool_max_bytes = spool_max_bytes
        self._texts = _no_texts()
        self._displays = DisplayKeeper()
        self._since = 0
        """the offset behind what was cleared; the spool keeps all"""
        self._clear_next = False
        self._give_up = threading.Event()
        self._written: dict[str, Written] = {}
        self.spool = spool
        self.error: CellError | None = None

    def add(self, piece: Piece) -> None:
        """The next piece. Never waits."""
        if self._clear_next and piece.kind in _OUTPUT:
            self._clear()
        try:
            self.spool.append(piece)
        except UnicodeEncodeError:
            # Half of a surrogate pair, which a guest can print and nobody can send.
            piece = _sendable(piece)
            self.spool.append(piece)
        if piece.kind in _TEXTS:
            self._texts[piece.kind.value].add(piece.text)
        elif piece.kind is PieceKind.ERROR:
            self.error = piece.error and plain_error(piece.error)
        elif piece.kind in (PieceKind.DISPLAY, PieceKind.UPDATE):
            self._add_display(piece)
        elif piece.kind is PieceKind.CLEAR:
            # As a notebook, which waits so that its page does not jump.
            self._clear_next = piece.wait
            if not piece.wait:
                self._clear()

    def _clear(self) -> None:
        """What was said so far is not in the result, nor in its files."""
        self._clear_next = False
        self._since = self.spool.size
        self._texts = _no_texts()
        self._displays.clear()

    def _add_display(self, piece: Piece) -> None:
        self._displays.add(piece)
        if piece.display is not None and piece.display.is_result and piece.kind is PieceKind.DISPLAY:
            results = self._texts[_RESULTS]
            if results.characters:
                results.add("\n")
            results.add(text_of(piece.display))

    def end(self) -> None:
        """Nothing more will come. May be called twice."""
        self.spool.end()

    def give_up(self) -> None:
        """Write no file any more: the mount is about to be given back."""
        self._give_up.set()

    async def keep_whole(self, mount: Mount) -> None:
        """Put what is not shown in full into files of the mount. Never fails: why there is no file is told."""
        self.end()
        texts = [name for name, text in self._texts.items() if text.is_cut]
        if self._displays.left_out:
            texts.append(DISPLAYS)
        wanted = Wanted(texts=texts, formats=self._displays.files, since=self._since)
        if wanted.names:
            self._written = await asyncio.to_thread(write_whole, self.spool, mount, self._cell, wanted, self._give_up)

    def text(self, name: str) -> Text:
        """`results`, `stdout` or `stderr` for the result."""
        text, written = self._texts[name], self._written.get(name)
        return Text(
            text=text.shown(),
            characters=text.characters,
            lines=text.lines,
            file_path=written.path if written else None,
            note=self._note(name),
        )

    @property
    def displays(self) -> tuple[Display, ...]:
        """Those that the result carries."""
        return tuple(self._with_files(one) for one in self._displays.kept)

    def _with_files(self, kept: Kept) -> Display:
        written = {mime: self._written.get(name) for mime, name in kept.files.items()}
        files = {mime: one.path for mime, one in written.items() if one is not None and one.path is not None}
        shown = replace(kept.display, files=files)
        # A display without anything would be taken for nothing.
        words = "; ".join(self._words_of_files(kept))
        return shown if shown.data or not words else replace(shown, data={"text/plain": f"[{words}]"})

    def _words_of_files(self, kept: Kept) -> list[str]:
        said = []
        for mime, name in kept.files.items():
            written = self._written.get(name, Written(None, "it was not kept"))
            where = f"is in {written.path}" if written.path else f"is not in a file: {written.reason}"
            said.append(f"{mime[:_MOST_OF_A_TYPE]} of {kept.large[mime]:,} characters {where}")
        if kept.misnamed:
            said.append(f"formats left out as their types have over {MOST_OF_A_NAME} characters: {kept.misnamed:,}")
        return said

    @property
    def displays_left_out(self) -> int:
        """Those that it does not."""
        return self._displays.left_out

    @property
    def displays_file(self) -> str | None:
        """Where those are."""
        written = self._written.get(DISPLAYS)
        return written.path if written else None

    @property
    def displays_note(self) -> str:
        """How to read them, or why they cannot be; and where formats are that were too large."""
        kept = enumerate(self._displays.kept, 1)
        words = [f"display {number}: {said}" for number, one in kept for said in self._words_of_files(one)]
        if len(words) > _MOST_TOLD:
            words = [*words[:_MOST_TOLD], f"and {len(words) - _MOST_TOLD} more in `files`"]
        return "; ".join(one for one in (self._note(DISPLAYS), *words) if one)

    @property
    def held_bytes(self) -> int:
        """About what the result takes in memory."""
        return self._displays.bytes + sum(min(text.characters, INLINE_CHARACTERS) for text in self._texts.values())

    def _note(self, name: str) -> str:
        written = self._written.get(name)
        if written is None:
            return ""
        note = _how_to_read(name, written.path) if written.path else f"the whole is not in a file: {written.reason}"
        if self.spool.dropped_kinds.intersection(_KINDS[name]):
            most = self._spool_max_bytes / 2**20
            note += f"; what is beyond {most:g} MiB of one cell's output was not kept (WORKBENCH_SPOOL_MAX_MIB)"
        return note


def _no_texts() -> dict[str, Excerpt]:
    return {_RESULTS: Excerpt(), PieceKind.STDOUT.value: Excerpt(), PieceKind.STDERR.value: Excerpt()}


_KINDS = {
    _RESULTS: {PieceKind.DISPLAY},
    PieceKind.STDOUT.value: {PieceKind.STDOUT},
    PieceKind.STDERR.value: {PieceKind.STDERR},
    DISPLAYS: {PieceKind.DISPLAY, PieceKind.UPDATE},
}


def _how_to_read(name: str, path: str) -> str:
    if name == DISPLAYS:
        return f"one JSON object a line: [json.loads(line) for line in open({path!r})]"
    return f"the whole: open({path!r}).read(), or lines 1 to 200: sed -n 1,200p {path}"


def plain_error(error: CellError) -> CellError:
    """For the result: bounded, and without colours."""
    short = short_error(error, INLINE_CHARACTERS)
    return replace(short, message=_ANSI.sub("", short.message), traceback=_ANSI.sub("", short.traceback))


def _sendable(piece: Piece) -> Piece:
    display, error = piece.display, piece.error
    if display is not None:
        display = Display(
            data={_text(mime): _text(value) for mime, value in display.data.items()},
            metadata=_text(display.metadata),
            display_id=_text(display.display_id),
            is_result=display.is_result,
        )
    if error is not None:
        error = CellError(name=_text(error.name), message=_text(error.message), traceback=_text(error.traceback))
    return Piece(kind=piece.kind, text=_text(piece.text), wait=piece.wait, display=display, error=error)


def _text(text: str) -> str:
    return text.encode(errors="replace").decode()
