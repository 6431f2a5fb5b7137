"""Real Python, damaged by machine as models damage it, and what became of each copy. Takes any folder."""

from __future__ import annotations

import ast
import html
import json
import random
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench_guest.corrections import rules
from workbench_guest.corrections.names import missing_names
from workbench_guest.corrections.returns import outer_returns
from workbench_guest.corrections.scanning import CODE, STRING, scan
from workbench_guest.corrections.source import mended, problem_of

_MOST_FILE_BYTES = 400_000
_STATEMENTS = 12
_MOST_CELL = 8_000
_SOME = 0.3
Damage = Callable[[str, random.Random], "str | None"]


def own_folders() -> tuple[Path, ...]:
    """Python's own library, and what is installed beside it."""
    return tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))


def files(folders: Sequence[Path]) -> Iterator[Path]:
    """All Python files there, once each."""
    seen: set[Path] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            real = path.resolve()
            if real not in seen and path.stat().st_size <= _MOST_FILE_BYTES:
                seen.add(real)
                yield path


def text_of(path: Path) -> str | None:
    """If it is valid Python in UTF-8."""
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    return text if problem_of(text) is None else None


def cells(folders: Sequence[Path], count: int, seed: int = 12) -> list[str]:
    """So many pieces of such files, each some statements long, as cells are."""
    chance = random.Random(seed)
    paths = list(files(folders))
    chance.shuffle(paths)
    found: list[str] = []
    for path in paths:
        text = text_of(path)
        pieces = list(_pieces(text)) if text is not None else []
        found += chance.sample(pieces, min(4, len(pieces)))
        if len(found) >= count:
            break
    return found[:count]


def _pieces(text: str) -> Iterator[str]:
    lines = text.split("\n")
    body = ast.parse(text).body
    for first in range(0, len(body), _STATEMENTS):
        some = body[first : first + _STATEMENTS]
        begin = min([some[0].lineno, *(one.lineno for one in getattr(some[0], "decorator_list", []))])
        piece = "\n".join(lines[begin - 1 : some[-1].end_lineno])
        if len(piece) <= _MOST_CELL and problem_of(piece) is None:
            yield piece


# What is done to them


def _fenced(text: str, chance: random.Random) -> str | None:
    mark = chance.choice(("```", "~~~"))
    return f"{mark}{chance.choice(('python', 'py', '', 'Python'))}\n{text}\n{mark}"


def _two_blocks(text: str, chance: random.Random) -> str | None:
    body = ast.parse(text).body
    if len(body) < 2:
        return None
    lines = text.split("\n")
    cut = body[chance.randrange(1, len(body))]
    at = min([cut.lineno, *(one.lineno for one in getattr(cut, "decorator_list", []))]) - 1
    if not all(one.strip() == "" or one.startswith("#") for one in lines[at - 1 : at]) and ";" in lines[at - 1]:
        return None
    before, after = "\n".join(lines[:at]), "\n".join(lines[at:])
    if problem_of(before) is not None or problem_of(after) is not None:
        return None
    return f"First we do this:\n\n```python\n{before}\n```\n\nAnd now the rest:\n\n```python\n{after}\n```\nThat's it."


def _closing_fence(text: str, _chance: random.Random) -> str | None:
    return f"{text}\n```"


def _typographic(text: str, chance: random.Random) -> str | None:
    found, out, place, changed = scan(text), [], 0, False
    while place < len(text):
        if found.kinds[place] != STRING:
            out.append(text[place])
            place += 1
            continue
        end = place
        mark = text[place]
        end = place + 1
        while end < len(text) and text[end] != mark and text[end] != "\n":
            end += 2 if text[end] == "\\" else 1
        part = text[place : end + 1]
        if text.startswith(mark * 3, place) or end >= len(text) or text[end] != mark:
            return None if not changed else "".join(out) + text[place:]
        if chance.random() < _SOME and len(part) > 2:
            pair = "\u201c\u201d" if mark == '"' else "\u2018\u2019"
            out.append(f"{pair[0]}{part[1:-1]}{pair[1]}")
            changed = True
        else:
            out.append(part)
        place = end + 1
    return "".join(out) if changed else None


def _hard_spaces(text: str, chance: random.Random) -> str | None:
    found = scan(text)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        if number not in found.inner_lines and bare and len(bare) < len(line) and chance.random() < _SOME:
            lines[number] = "\u00a0" * (len(line) - len(bare)) + bare
    return "\n".join(lines)


def _invisible(text: str, chance: random.Random) -> str | None:
    found = scan(text)
    lines = text.split("\n")
    for number in range(len(lines) - 1):
        if number + 1 not in found.inner_lines and chance.random() < _SOME:
            lines[number] += "\u200b"
    return "\ufeff" + "\n".join(lines)


def _full_width(text: str, chance: random.Random) -> str | None:
    kinds = scan(text).kinds
    wide = {one: chr(0xFEE0 + ord(one)) for one in "(),:=;+[]"}
    return "".join(
        wide[one] if one in wide and kind == CODE and chance.random() < _SOME else one
        for one, kind in zip(text, kinds, strict=True)
    )


def _dashes(text: str, chance: random.Random) -> str | None:
    kinds = scan(text).kinds
    other = chance.choice("\u2212\u2013")
    return "".join(
        other if one == "-" and kind == CODE else one for one, kind in zip(text, kinds, strict=True)
    ).replace(f"{other}>", "->")


def _tabs(text: str, chance: random.Random) -> str | None:
    found = scan(text)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        if number not in found.inner_lines and depth >= 4 and chance.random() < _SOME:
            lines[number] = "\t" * (depth // 4) + " " * (depth % 4) + bare
    return "\n".join(lines)


def _no_colon(text: str, chance: random.Random) -> str | None:
    kinds = scan(text).kinds
    places = [
        at for at, one in enumerate(text) if one == ":" and kinds[at] == CODE and text[at + 1 : at + 2] in ("\n", "")
    ]
    if not places:
        return None
    for at in sorted(chance.sample(places, min(len(places), chance.choice((1, 2)))), reverse=True):
        text = text[:at] + text[at + 1 :]
    return text


def _one_line(text: str, _chance: random.Random) -> str | None:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _entities(text: str, chance: random.Random) -> str | None:
    return html.escape(text, quote=chance.random() < 0.5)


def _numbered(text: str, chance: random.Random) -> str | None:
    mark = chance.choice((": ", " | ", "| "))
    return "\n".join(f"{number}{mark}{line}" for number, line in enumerate(text.split("\n"), chance.choice((1, 7, 98))))


def _indented(text: str, _chance: random.Random) -> str | None:
    if scan(text).inner_lines:
        return None
    return "# as asked\n" + "\n".join(f"    {line}" if line.strip() else line for line in text.split("\n"))


def _cut(text: str, chance: random.Random) -> str | None:
    return text[: chance.randrange(len(text) // 4, len(text))] if len(text) > 40 else None


def _cut_fence(text: str, chance: random.Random) -> str | None:
    cut = _cut(text, chance)
    return f"```python\n{cut}" if cut is not None else None


MENDABLE: dict[str, Damage] = {
    "in a fence": _fenced,
    "in two fences with prose": _two_blocks,
    "a closing fence left over": _closing_fence,
    "typographic quotes": _typographic,
    "no-break spaces": _hard_spaces,
    "invisible characters": _invisible,
    "full-width punctuation": _full_width,
    "other dashes": _dashes,
    "tabs among spaces": _tabs,
    "colons missing": _no_colon,
    "newlines written out": _one_line,
    "HTML entities": _entities,
    "lines numbered": _numbered,
    "indented under a comment": _indented,
}
LOST: dict[str, Damage] = {"cut off": _cut, "cut off in a fence": _cut_fence}
"""what nobody can mend, and nobody may"""


@dataclass(slots=True)
class Seen:
    """What became of the copies of one kind of damage."""

    right: int = 0
    declined: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    """the damaged text, and what was made of it"""

    @property
    def copies(self) -> int:
        """All of them."""
        return self.right + self.declined + len(self.wrong)


def damaged(some: Sequence[str], kinds: dict[str, Damage], seed: int = 12) -> dict[str, Seen]:
    """Each of them by each kind, where that makes it invalid."""
    found = {kind: Seen() for kind in kinds}
    for number, text in enumerate(some):
        whole = _dump(text)
        for kind, damage in kinds.items():
            copy = damage(text, random.Random(f"{seed} {number} {kind}"))
            if copy is None or problem_of(copy) is None:
                continue
            better = mended(copy, lambda one: problem_of(one) is None)
            if better is None:
                found[kind].declined += 1
            elif _dump(better.text) == whole:
                found[kind].right += 1
            else:
                found[kind].wrong.append((copy, better.text))
    return found


def _dump(text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.dump(ast.parse(text))


@dataclass(slots=True)
class Untouched:
    """Valid files, and those that a rule would have acted on."""

    files: int = 0
    touched: list[tuple[Path, str]] = field(default_factory=list)


def untouched(folders: Sequence[Path], most: int | None = None, seed: int = 12) -> Untouched:
    """All that is done before a cell runs, to valid files as cells of an empty session."""
    found = Untouched()
    paths = list(files(folders))
    if most is not None:
        random.Random(seed).shuffle(paths)
        paths = paths[:most]
    for path in paths:
        try:
            text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
            continue
        found.files += 1
        if outer_returns(tree).lines:
            found.touched.append((path, "return-outside-function"))
        bound = missing_names(
            text, tree, {"__name__": "", "__file__": ""}, frozenset(rules.SWITCHES), lambda _rule: None
        )
        found.touched += [(path, f"{rule}: {written}") for rule, _, written, _ in bound.notes]
    return found
