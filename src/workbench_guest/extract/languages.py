"""Which languages can be recognised here, and which of them are written in which script."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

_SUFFIX = ".traineddata"
# Where the image has its data, and where a session may have more.
_FOLDERS = (os.path.join(sys.prefix, "share", "tessdata"), "/mnt/files/tessdata")
_ORIENTATION = "osd"
# By the names that tesseract has for scripts; a language that is in none is taken for Latin, as most are.
_SCRIPTS = {
    "Japanese": ("jpn", "jpn_vert"),
    "Han": ("chi_sim", "chi_tra", "chi_sim_vert", "chi_tra_vert"),
    "Korean": ("kor", "kor_vert"),
    "Cyrillic": ("rus", "ukr", "bul", "bel", "srp", "mkd", "kaz", "mon"),
    "Greek": ("ell", "grc"),
    "Arabic": ("ara", "fas", "urd", "pus", "uig"),
    "Hebrew": ("heb", "yid"),
    "Devanagari": ("hin", "mar", "nep", "san"),
    "Bengali": ("ben", "asm"),
    "Thai": ("tha",),
    "Tamil": ("tam",),
    "Telugu": ("tel",),
    "Kannada": ("kan",),
    "Malayalam": ("mal",),
    "Gujarati": ("guj",),
    "Gurmukhi": ("pan",),
    "Georgian": ("kat",),
    "Armenian": ("hye",),
    "Ethiopic": ("amh", "tir"),
    "Khmer": ("khm",),
    "Lao": ("lao",),
    "Myanmar": ("mya",),
    "Sinhala": ("sin",),
    "Tibetan": ("bod", "dzo"),
}
_LATIN = "Latin"
# What one may also try: Japanese is written with Chinese signs too, and parts of it are told apart.
_ALIKE = {"Han": ("Japanese",), "Japanese": ("Han",), "Hiragana": ("Japanese",), "Katakana": ("Japanese",),
          "Hangul": ("Korean",), "Fraktur": (_LATIN,)}  # fmt: skip
# Each one more costs time on every page.
_MOST_OF_A_GROUP = 4
# English last: the first one decides in doubt, and the letters of English are letters of the others too.
_LAST = "eng"


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """What there is. A group is what tesseract is given at once: languages of one script."""

    folder: str
    by_script: dict[str, str]
    has_orientation: bool

    @property
    def groups(self) -> tuple[str, ...]:
        """All of them, the usual one first."""
        return tuple(self.by_script.values())

    def of(self, script: str) -> tuple[str, ...]:
        """What fits a script."""
        return tuple(self.by_script[one] for one in (script, *_ALIKE.get(script, ())) if one in self.by_script)

    def missing(self, script: str) -> str:
        """What to do about a script that there is no data for."""
        there = ", ".join(os.path.basename(name) for group in self.groups for name in group.split("+"))
        wanted = _SCRIPTS.get(script, (script.lower(),))[0]
        return (
            f"which there is no language data for (there is: {there}): put {wanted}{_SUFFIX} into "
            f"{_FOLDERS[-1]}, and read it again"
        )


def find_languages() -> Languages:
    """What the image has, and what the session has beside it."""
    found: dict[str, str] = {}
    # The session's own first: somebody wanted them.
    for folder in reversed(_FOLDERS):
        if os.path.isdir(folder):
            # Tesseract looks into one folder only, but takes names that lead out of it.
            lead = os.path.relpath(folder, _FOLDERS[0])
            for name in sorted(os.listdir(folder)):
                if name.endswith(_SUFFIX):
                    language = name.removesuffix(_SUFFIX)
                    found.setdefault(language, os.path.normpath(os.path.join(lead, language)))
    has_orientation = found.pop(_ORIENTATION, "") == _ORIENTATION
    by_script: dict[str, list[str]] = {_LATIN: []}
    script_of = {language: script for script, languages in _SCRIPTS.items() for language in languages}
    for language, path in found.items():
        by_script.setdefault(script_of.get(language, _LATIN), []).append(path)
    return Languages(
        folder=_FOLDERS[0],
        by_script={script: _group(names) for script, names in by_script.items() if names},
        has_orientation=has_orientation,
    )


def _group(names: list[str]) -> str:
    last = [name for name in names if os.path.basename(name) == _LAST]
    others = [name for name in names if name not in last]
    return "+".join([*others[: _MOST_OF_A_GROUP - len(last)], *last])
