"""Recognising the text of one picture, offline: upright as it is first, then by what its letters look like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from workbench_guest.extract.languages import Languages, find_languages
from workbench_guest.extract.layout import Word, as_table
from workbench_guest.extract.skew import straightened
from workbench_guest.extract.values import Piece

# Tesseract's own measure, in percent: above the first nobody has to look again, below the second it is mostly noise.
_SURE = 80
_NOISE = 45
# Fewer letters than these say nothing about how sure one can be.
_ENOUGH_LETTERS = 12
# How sure tesseract has to be of what is up: letters give it 4 and more, noise and photographs 2 at most.
_ORIENTED = 3.0
# A page on which nothing differs from paper by more than this is empty.
_CONTRAST = 40
# White on black, as in a screenshot of a terminal.
_DARK = 110
_RESOLUTION = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    text: str
    confidence: int

    @property
    def letters(self) -> int:
        return sum(letter.isalnum() for letter in self.text)

    @property
    def worth(self) -> float:
        return self.confidence * min(1.0, self.letters / _ENOUGH_LETTERS)

    @property
    def is_sure(self) -> bool:
        return self.confidence >= _SURE and self.letters >= _ENOUGH_LETTERS


def recognise(grey: Any, name: str) -> Piece:
    """The text of a picture in shades of grey; empty, with a warning if there is reason for one."""
    languages = _languages()
    if not languages.groups:
        return Piece(text="", warning=f"{name} is a scan, and this image has no language data: `workbench image build`")
    darkest, lightest = grey.getextrema()
    if lightest - darkest < _CONTRAST:
        return Piece(text="")
    grey = _on_white(grey)
    if _last_page.group and (guess := _read(_turned(grey, _last_page.turn), _last_page.group)).is_sure:
        return Piece(text=guess.text)
    turn, script = _orientation(grey)
    upright = _turned(grey, turn)
    fitting = languages.of(script)
    best = _Try(text="", confidence=0)
    for group in dict.fromkeys((*fitting, *languages.groups)):
        one = _read(upright, group)
        best = max(best, one, key=lambda tried: tried.worth)
        if one.is_sure:
            _last_page.turn, _last_page.group = turn, group
            break
    if best.confidence < _NOISE:
        best = _Try(text="", confidence=0)
    if not fitting and script and not best.is_sure:
        return Piece(text=best.text, warning=f"{name} looks like {script}, {languages.missing(script)}")
    return Piece(text=best.text)


@dataclass(slots=True)
class _LastPage:
    """How the page before was read: most pages are like it, and need no second look."""

    turn: int = 0
    group: str = ""


_last_page = _LastPage()


def _turned(grey: Any, turn: int) -> Any:
    return straightened(grey.rotate(turn, expand=True, fillcolor=255) if turn else grey)


def _on_white(grey: Any) -> Any:
    from PIL import ImageOps, ImageStat

    return ImageOps.invert(grey) if ImageStat.Stat(grey).median[0] < _DARK else grey


@cache
def _languages() -> Languages:
    return find_languages()


@cache
def _api(group: str) -> Any:
    """Kept for the pages that follow: reading the language data takes longer than some pages."""
    import tesserocr

    mode = tesserocr.PSM.OSD_ONLY if group == "osd" else tesserocr.PSM.AUTO
    return tesserocr.PyTessBaseAPI(path=_languages().folder, lang=group, psm=mode)


def _show(api: Any, grey: Any) -> None:
    width, height = grey.size
    api.SetImageBytes(grey.tobytes(), width, height, 1, width)
    api.SetSourceResolution(_RESOLUTION)


def _read(grey: Any, group: str) -> _Try:
    api = _api(group)
    _show(api, grey)
    try:
        text = api.GetUTF8Text().strip("\n\f ")
        if text and (rows := as_table(list(_words(api)))):
            text = rows
        return _Try(text=text, confidence=api.MeanTextConf())
    finally:
        api.Clear()


def _words(api: Any) -> Iterator[Word]:
    import tesserocr

    level = tesserocr.RIL.WORD
    for word in tesserocr.iterate_level(api.GetIterator(), level):
        box = word.BoundingBox(level)
        if box and not word.Empty(level):
            yield Word(
                text=word.GetUTF8Text(level).strip(), left=box[0], top=box[1], right=box[2], bottom=box[3],
                begins_line=word.IsAtBeginningOf(tesserocr.RIL.TEXTLINE),
            )  # fmt: skip


def _orientation(grey: Any) -> tuple[int, str]:
    """How far to turn it, and its script; nothing if there are too few letters to tell."""
    if not _languages().has_orientation:
        return 0, ""
    api = _api("osd")
    # A page that lies askew is straightened for a second look, which one on its side must not be for the first.
    for again in (False, True):
        _show(api, straightened(grey) if again else grey)
        try:
            seen = api.DetectOrientationScript()
            if seen and seen["orient_conf"] >= _ORIENTED:
                return int(seen["orient_deg"]), str(seen["script_name"])
        finally:
            api.Clear()
    return 0, ""
