"""Source that does not compile, and the one reading that it has. All or nothing: what still fails is left as it was.

Line numbers stay those of the agent: lines that are dropped become comments.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from workbench_guest.corrections.characters import QUOTES, with_pythons_characters
from workbench_guest.corrections.fences import without_fences
from workbench_guest.corrections.scanning import CODE, STRING, outside, scan
from workbench_guest.corrections.stepping import Declined, Note, Step, Stepped

# A cell that is longer is a file, and was not typed into a message.
MOST_CHARACTERS = 1_000_000
_WIDTHS = (2, 4, 8)
_MOST_COLONS = 20
_HEADS = re.compile(
    r"\s*(async\s+)?(if|elif|else|for|while|def|class|try|except|finally|with|match|case)\b(?!\s*=)", re.ASCII
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&#34;": '"'}
_ENTITY = re.compile("|".join(_ENTITIES))
_NUMBERED = re.compile(r"[ \t]*(\d+)(:| ?\|)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mended:
    """What is run in place of what was sent."""

    text: str
    notes: tuple[tuple[str, Note], ...]
    """by rule"""


def problem_of(text: str) -> SyntaxError | None:
    """What Python says against it; None if it parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as problem:
        return problem
    except (ValueError, RecursionError, MemoryError) as problem:
        return SyntaxError(str(problem))
    return None


def mended(
    text: str, is_code: Callable[[str], bool], declined: Callable[[str], None] = lambda _rule: None
) -> Mended | None:
    """The same in its one reading; None if there is none, or more than one. `is_code` tells what would run."""
    if len(text) > MOST_CHARACTERS or not text.strip():
        return None
    now, notes, tried = text, [], []
    for rule, step in STEPS:
        try:
            stepped = step(now)
        except Declined:
            # What one step cannot read for certain, those behind it would misread.
            tried.append(rule)
            break
        if stepped is None:
            continue
        tried.append(rule)
        now = stepped.text
        notes += [(rule, note) for note in stepped.notes]
        if is_code(now):
            return Mended(now, tuple(notes))
    for rule in tried:
        declined(rule)
    return None


def _without_numbers(text: str) -> Stepped | None:
    """Each line begins with its number."""
    lines = text.rstrip().split("\n")
    found = [_NUMBERED.fullmatch(line) for line in lines]
    if len(lines) < 2 or not all(found):
        return None
    parts = [(int(one[1]), one[2].strip(), one[3]) for one in found if one]
    first = parts[0][0]
    if (
        any(number != first + place for place, (number, _, _) in enumerate(parts))
        or len({sep for _, sep, _ in parts}) > 1
    ):
        return None
    rest = [part for _, _, part in parts]
    full = [part for part in rest if part.strip()]
    if all(part.startswith(" ") for part in full):
        rest = [part[1:] for part in rest]
    # The inside of a dict, whose last line need not have a comma.
    if full and all(part.rstrip().endswith(",") for part in full[: max(1, len(full) - 1)]):
        raise Declined
    return Stepped("\n".join(rest), (Note(1, f"{len(lines)} lines that begin with their number", "without it"),))


def _unescaped(text: str) -> Stepped | None:
    """One line with `\\n` written out."""
    line = text.strip()
    problem = problem_of(text)
    if "\n" in line or "\\n" not in line or problem is None or "line continuation" not in (problem.msg or ""):
        return None
    if any(letter not in _ESCAPES for letter in _ESCAPE.findall(line)):
        raise Declined
    whole = _ESCAPE.sub(lambda found: _ESCAPES[found[1]], line)
    found = scan(line)
    only_code = _ESCAPE.sub(
        lambda one: _ESCAPES[one[1]] if found.kinds[one.start()] == CODE and one[1] in "ntr" else one[0], line
    )
    _one_reading(whole, only_code)
    readable = next((one for one in (whole, only_code) if problem_of(one) is None), None)
    if readable is None:
        raise Declined
    return Stepped(readable, (Note(1, "one line with \\n written out", f"{readable.count(chr(10)) + 1} lines"),))


def _one_reading(*texts: str) -> None:
    """Raises: Declined: two of them are programs, and not the same one."""
    programs = {ast.dump(ast.parse(text)) for text in texts if problem_of(text) is None}
    if len(programs) > 1:
        raise Declined


def _without_entities(text: str) -> Stepped | None:
    """`&lt;` and its like, where no string has any."""
    found = _ENTITY.findall(text)
    if not found:
        return None
    decoded = _ENTITY.sub(lambda one: _ENTITIES[one[0]], text)
    # The sign in an entity begins no comment.
    kinds = scan(text.replace("&#", "&_")).kinds
    # Nor may one stand in a string that begins and ends with other quotes than Python's.
    inner = scan(decoded).kinds
    if any(outside(decoded, inner, mark) for mark in QUOTES):
        raise Declined
    outer = _ENTITY.sub(lambda one: one[0] if kinds[one.start()] == STRING else _ENTITIES[one[0]], text)
    # In a string they may be meant, or may be as little meant as those around.
    if outer != decoded or _has_inner_entity(text, decoded):
        raise Declined
    lines = {text.count("\n", 0, one.start()) + 1: one[0] for one in reversed(list(_ENTITY.finditer(text)))}
    return Stepped(decoded, tuple(Note(line, one, _ENTITIES[one]) for line, one in sorted(lines.items())))


def _has_inner_entity(text: str, decoded: str) -> bool:
    """Whether one stands between quotes that were entities themselves."""
    kinds, shift = scan(decoded).kinds, 0
    for one in _ENTITY.finditer(text):
        place = one.start() - shift
        shift += len(one[0]) - 1
        if kinds[place] == STRING and _ENTITIES[one[0]] not in "\"'":
            return True
    return False


def _with_spaces(text: str) -> Stepped | None:
    """Tabs in indentation, if all widths give one program."""
    if "\t" not in text or not isinstance(problem_of(text), IndentationError):
        return None
    found = scan(text)
    lines = text.split("\n")
    own = [number for number in range(len(lines)) if number not in found.inner_lines]
    readings: dict[str, str] = {}
    for width in _WIDTHS:
        spaced = list(lines)
        for number in own:
            bare = lines[number].lstrip(" \t")
            spaced[number] = lines[number][: len(lines[number]) - len(bare)].expandtabs(width) + bare
        reading = "\n".join(spaced)
        if problem_of(reading) is None:
            readings.setdefault(ast.dump(ast.parse(reading)), reading)
    if len(readings) != 1:
        raise Declined
    (reading,) = readings.values()
    first = next(number for number in own if "\t" in lines[number][: len(lines[number]) - len(lines[number].lstrip())])
    return Stepped(reading, (Note(first + 1, "tabs among spaces", "spaces"),))


def _dedented(text: str) -> Stepped | None:
    """All code is indented alike, and only comments are not, by which IPython's own step does not see it."""
    lines = text.split("\n")
    found = scan(text)
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if found.inner_lines or len(code) < 2 or not isinstance(problem_of(text), IndentationError):
        return None
    indent = min((line[: len(line) - len(line.lstrip(" "))] for line in code), key=len)
    # The first line at the level of the others, or it is the rest of a block whose beginning is lost.
    if not indent or code[0][: len(code[0]) - len(code[0].lstrip())] != indent:
        return None
    out = [line.removeprefix(indent) if line.startswith(indent) else line.lstrip(" ") for line in lines]
    first = next(number for number, line in enumerate(lines) if line in code)
    return Stepped("\n".join(out), (Note(first + 1, "an indented cell", "the same without"),))


def _with_colons(text: str) -> Stepped | None:
    """Missing at the end of a block's first line."""
    notes: list[Note] = []
    for _ in range(_MOST_COLONS):
        problem = problem_of(text)
        if problem is None or problem.msg != "expected ':'" or not problem.lineno:
            break
        lines = text.split("\n")
        number = problem.lineno - 1
        found = scan(text)
        at = sum(len(line) + 1 for line in lines[:number])
        kinds = found.kinds[at : at + len(lines[number])]
        code = lines[number][: kinds.find("#")] if "#" in kinds else lines[number]
        end = len(code.rstrip())
        head = number
        while head in found.joined_lines or head in found.inner_lines:
            head -= 1
        if (problem.offset or 0) - 1 < end or _HEADS.match(lines[head]) is None:
            break
        lines[number] = f"{lines[number][:end]}:{lines[number][end:]}"
        text = "\n".join(lines)
        notes.append(Note(number + 1, f"no colon after {_HEADS.match(lines[head])[0].strip()!r}", "with one"))  # type: ignore[index]
    return Stepped(text, tuple(notes)) if notes else None


STEPS: tuple[tuple[str, Step], ...] = (
    ("linenos", _without_numbers),
    ("fence", without_fences),
    ("escaped", _unescaped),
    ("unicode", with_pythons_characters),
    ("html", _without_entities),
    ("tabs", _with_spaces),
    ("dedent", _dedented),
    ("colon", _with_colons),
)
"""in this order: what is around the code first, then what strings begin and end with, by which the others know them"""
