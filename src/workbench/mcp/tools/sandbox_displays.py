"""What a cell displayed, as execute_code gives it: whole for programs while it is small, in words for the model."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.mcp.pictures import Picture, is_picture, pictures_in
from workbench.model.execution import Display
from workbench.model.truncation import excerpt

_MOST_TEXT = 20_000
# Pictures follow as images anyway; more of them twice would be most of the answer.
_MOST_IMAGES = 200_000
# Which a model reads as they are; what else there is, is for programs.
_READABLE = ("text/plain", "text/markdown", "text/latex")
_HTML, _SVG = "text/html", "image/svg+xml"
# Drawings are text, and are read or shown by who can.
_MOST_DRAWINGS, _MOST_OF_A_DRAWING = 5, 100_000

Data = dict[str, str]


def shown(displays: Iterable[Display]) -> list[Data]:
    """For programs: texts cut, and images in base64 as long as all of them together are small."""
    chosen = _but_plain_values(displays)
    images = sum(len(value) for data in chosen for kind, value in data.items() if _is_image(kind))
    whole = images <= _MOST_IMAGES
    return [{kind: _for_programs(data, kind, whole=whole) for kind in data} for data in chosen]


def written(displays: Iterable[Display]) -> list[Data]:
    """For the model, who sees pictures as pictures, and has no use for the same once more in another format."""
    return [_for_models(data) for data in _but_plain_values(displays)]


def pictures(displays: Iterable[Display]) -> tuple[Picture, ...]:
    """The best of each."""
    return pictures_in(tuple(one.data for one in displays))


def drawings(displays: Iterable[Display]) -> tuple[str, ...]:
    """SVG of what has no picture that clients show as one."""
    found = [one.data[_SVG] for one in displays if _SVG in one.data and not any(map(is_picture, one.data))]
    return tuple(one for one in found if len(one) <= _MOST_OF_A_DRAWING)[:_MOST_DRAWINGS]


def _but_plain_values(displays: Iterable[Display]) -> list[Data]:
    """Without the last value as text, which is in `result`."""
    shown = [one for one in displays if not (one.is_result and set(one.data) == {"text/plain"} and not one.files)]
    return [one.data | {mime: f"[too large, in {path}]" for mime, path in one.files.items()} for one in shown]


def _for_programs(data: Data, kind: str, *, whole: bool) -> str:
    if kind.endswith("json"):
        # Half of it cannot be read.
        return data[kind] if len(data[kind]) <= _MOST_TEXT else _size(data, kind)
    if not _is_image(kind):
        return excerpt(data[kind], _MOST_TEXT)
    return data[kind] if whole else _size(data, kind)


def _for_models(data: Data) -> Data:
    has_words = any(kind in data for kind in _READABLE)
    readable = _READABLE if has_words else (_HTML,)
    return {
        kind: excerpt(value, _MOST_TEXT) if kind in readable else _size(data, kind)
        for kind, value in data.items()
        if kind != _HTML or not has_words
    }


def _is_image(kind: str) -> bool:
    return kind.startswith("image/")


def _size(data: Data, kind: str) -> str:
    if data[kind].startswith("[too large, in "):
        return data[kind]
    seen = [one.data for one in pictures_in((data,)) if one.mime_type == kind and not one.problem]
    if seen:
        return f"[{len(seen[0]) * 3 // 4 - seen[0].count('='):,} bytes, shown as an image]"
    return f"[{len(data[kind]):,} characters, not shown]"
