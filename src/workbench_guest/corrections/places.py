"""Where in the agent's code something happens: the expression of an instruction, and what is caught around it."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import opcode
import types
from dataclasses import dataclass, field
from typing import Any

_MOST_FILES = 64
ANYTHING = "*"
_BROAD = frozenset({"Exception", "BaseException", ANYTHING})


@dataclass(frozen=True, slots=True)
class Place:
    """An expression of the agent's."""

    node: ast.expr
    augmented: bool
    """it is the target of `+=` and the like, so that what is read is written back"""


@dataclass(slots=True)
class _Source:
    text: str
    places: dict[tuple[type, int, int], Place] = field(default_factory=dict)
    caught: list[tuple[int, int, frozenset[str]]] = field(default_factory=list)
    """first and last line of what is guarded, and the names of what is caught"""


_sources: dict[str, _Source] = {}


def place_of(code: types.CodeType, instruction: int) -> Place | None:
    """Of an instruction; None if nobody can tell."""
    if instruction < 0 or (source := _source(code.co_filename)) is None:
        return None
    operations = code.co_code
    # Behind an instruction is room that Python uses for itself, and a call stands at the end of it.
    while instruction > 0 and opcode.opname[operations[instruction]] == "CACHE":
        instruction -= 2
    operation = opcode.opname[operations[instruction]]
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    _, last_line, _, last_column = position
    if last_line is None or last_column is None:
        return None
    for kind in (ast.Subscript, ast.Call, ast.Attribute, ast.Name):
        if (found := source.places.get((kind, last_line, last_column))) is not None and operation in _OPERATIONS[kind]:
            return found
    return None


_OPERATIONS = {
    ast.Subscript: ("BINARY_SUBSCR",),
    ast.Call: ("CALL", "CALL_FUNCTION_EX", "CALL_KW", "PRECALL"),
    ast.Attribute: ("LOAD_ATTR", "LOAD_METHOD"),
    ast.Name: ("LOAD_NAME", "LOAD_GLOBAL"),
}


def is_guarded(
    frame: types.FrameType | None,
    namespace: dict[str, Any],
    error: str,
    *broader: str,
    broad: frozenset[str] = _BROAD,
) -> bool:
    """Whether the agent's code itself catches such an error, here or in what called it."""
    names = {error, *broader} | broad
    while frame is not None:
        if frame.f_globals is namespace:
            source = _source(frame.f_code.co_filename)
            # What cannot be read may catch anything.
            if source is None or any(
                first <= frame.f_lineno <= last and names & caught for first, last, caught in source.caught
            ):
                return True
        frame = frame.f_back
    return False


def _source(file: str) -> _Source | None:
    text = "".join(linecache.getlines(file))
    if not text:
        return None
    found = _sources.get(file)
    if found is None or found.text != text:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found = _read(text, tree)
        if len(_sources) >= _MOST_FILES:
            _sources.clear()
        _sources[file] = found
    return found


def _read(text: str, tree: ast.AST) -> _Source:
    source = _Source(text)
    targets = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Subscript, ast.Call, ast.Attribute, ast.Name)):
            key = (type(node), node.end_lineno or 0, node.end_col_offset or 0)
            source.places[key] = Place(node, id(node) in targets)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            names = frozenset().union(*(caught_by(handler.type) for handler in node.handlers))
            if node.body:
                source.caught.append((node.body[0].lineno, node.body[-1].end_lineno or 0, names))
        elif isinstance(node, (ast.With, ast.AsyncWith)) and any(suppresses(item) for item in node.items):
            source.caught.append((node.body[0].lineno, node.body[-1].end_lineno or 0, frozenset({ANYTHING})))
    return source


def caught_by(kind: ast.expr | None) -> frozenset[str]:
    """Names of exceptions; `*` for all of them, and for what cannot be known."""
    if isinstance(kind, ast.Tuple):
        return frozenset().union(*(caught_by(one) for one in kind.elts))
    if isinstance(kind, ast.Name):
        return frozenset({kind.id if kind.id in _KNOWN else ANYTHING})
    return frozenset({ANYTHING})


def _builtin_errors() -> frozenset[str]:
    found = vars(builtins).items()
    return frozenset(name for name, one in found if isinstance(one, type) and issubclass(one, BaseException))


_KNOWN = _builtin_errors()


def suppresses(item: ast.withitem) -> bool:
    """Whether a `with` is there to catch errors."""
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("suppress", "raises", "assertRaises")
