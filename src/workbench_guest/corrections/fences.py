"""A cell that is a piece of Markdown: its Python blocks are the program, what is around them is not."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from workbench_guest.corrections.scanning import scan
from workbench_guest.corrections.stepping import Declined, Note, Stepped

_FENCE = re.compile(r" *(`{3,}|~{3,})[ \t]*([^`]*?)[ \t\r]*")
_PYTHON = frozenset({"python", "py", "python3", "py3", "ipython", "ipython3"})
# Words of prose parse as these, and so do items of lists: `- load`, `Output: 5`.
_PROSE = (ast.Name, ast.Constant, ast.Attribute, ast.Tuple, ast.Starred, ast.UnaryOp, ast.BinOp, ast.BoolOp)
_SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)


@dataclass(slots=True)
class _Block:
    tag: str
    indent: str = ""
    """of the line that opens it"""
    lines: list[int] = field(default_factory=list)
    closed: bool = False

    @property
    def is_python(self) -> bool:
        return not self.tag or self.tag in _PYTHON


def without_fences(text: str) -> Stepped | None:
    """Python's and untagged blocks; all other lines become comments.

    Raises:
        Declined: which lines are the program is not clear.
    """
    lines = text.split("\n")
    if not any(_FENCE.fullmatch(line) for line in lines):
        return None
    blocks, outer = _blocks(lines)
    if not blocks:
        return None
    last = max(number for number, line in enumerate(lines) if line.strip())
    if len(blocks) == 1 and not blocks[0].closed and _first(blocks[0]) == last:
        # Only the closing one was left over: all before it is the program.
        return _kept(lines, [number for number in range(len(lines)) if number != last], 1)
    kept = [block for block in blocks if block.is_python]
    if not kept or any(not block.closed for block in blocks) or len({not block.tag for block in kept}) > 1:
        raise Declined
    if _has_code([lines[number] for number in outer]):
        raise Declined
    lines = _dedented(lines, kept)
    for block in kept:
        # Each by itself, if there are several, or one of them is the rest of something else.
        if (len(kept) > 1 or not block.tag) and not _parses("\n".join(lines[number] for number in block.lines)):
            raise Declined
    return _kept(lines, [number for block in kept for number in block.lines], len(kept))


def _dedented(lines: list[str], blocks: list[_Block]) -> list[str]:
    """A block that is indented with its fence, as in a list, is so in none of its lines."""
    out = list(lines)
    for block in blocks:
        if all(lines[number].startswith(block.indent) or not lines[number].strip() for number in block.lines):
            for number in block.lines:
                out[number] = lines[number].removeprefix(block.indent)
    return out


def _first(block: _Block) -> int:
    return block.lines[0] - 1 if block.lines else -1


def _kept(lines: list[str], numbers: list[int], blocks: int) -> Stepped:
    keep = set(numbers)
    if not any(lines[number].strip() for number in keep):
        raise Declined
    out = [line if number in keep else "#" for number, line in enumerate(lines)]
    dropped = sum(1 for number, line in enumerate(lines) if number not in keep and line.strip())
    first = next(number for number in range(len(lines)) if number not in keep and lines[number].strip())
    what = "its Python" if blocks == 1 else f"its {blocks} Python blocks"
    return Stepped("\n".join(out), (Note(first + 1, "a Markdown fence", f"{what}, {dropped} lines left out"),))


def _blocks(lines: list[str]) -> tuple[list[_Block], list[int]]:
    """And the numbers of lines outside of them. A fence at the end that nothing follows is an open block."""
    blocks: list[_Block] = []
    outer: list[int] = []
    now: _Block | None = None
    mark = ""
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if now is None:
            if fence is None:
                outer.append(number)
                continue
            mark = fence[1]
            tag = fence[2].split()[0].strip("{}.").lower() if fence[2].split() else ""
            now = _Block(tag, line[: len(line) - len(line.lstrip(" "))])
            if not any(rest.strip() for rest in lines[number + 1 :]):
                now.lines = [number + 1]
            blocks.append(now)
        elif fence is not None and not fence[2] and fence[1].startswith(mark) and not _in_string(lines, now, number):
            now.closed, now = True, None
        else:
            now.lines.append(number)
    return blocks, outer


def _in_string(lines: list[str], block: _Block, number: int) -> bool:
    """Whether a line is inside of a string of the block."""
    before = [lines[one] for one in block.lines]
    return len(before) in scan("\n".join([*before, lines[number]])).inner_lines


def _has_code(outer: list[str]) -> bool:
    """Whether something of what would be left out could be meant to run."""
    for line in outer:
        try:
            body = ast.parse(line.strip()).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if not all(_is_prose(one) for one in body):
            return True
    return False


def _is_prose(statement: ast.stmt) -> bool:
    """Whether leaving it out changes nothing."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        parts = [statement.target, statement.annotation]
    elif isinstance(statement, ast.Expr):
        parts = [statement.value]
    else:
        return False
    return all(isinstance(one, (*_PROSE, *_SIGNS)) for part in parts for one in ast.walk(part))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
