"""Whether code has its own answer to an import that fails: then it is left to it."""

from __future__ import annotations

import ast
import builtins
import linecache
import types
from collections.abc import Iterator
from typing import Any

from workbench_guest.packages.frames import is_the_agents

# Frames above the import that are looked at: a guard further up is meant for something else.
_MOST_FRAMES = 20
_SUPPRESSING = ("suppress", "raises", "assertRaises", "assertRaisesRegex")


def is_guarded(frame: types.FrameType | None) -> bool:
    """Whether any of the agent's lines that led here would catch what the import raises."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        if _is_guarded_here(frame):
            return True
        frame = _callers(frame)
    return False


def _callers(frame: types.FrameType) -> types.FrameType | None:
    """The next one above, as long as it is not the machinery that runs cells and modules."""
    above = frame.f_back
    if frame.f_code.co_name == "<module>" or above is None:
        return None
    return above if is_the_agents(above) else None


def _is_guarded_here(frame: types.FrameType) -> bool:
    tree = _tree(frame)
    if tree is None:
        return False
    return any(_catches(node, frame) for node in _around(tree, frame.f_lineno))


def _tree(frame: types.FrameType) -> ast.AST | None:
    source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    if not source:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        pass
    # A cell may have lines that only IPython understands.
    shell: Any = frame.f_globals.get("get_ipython")
    try:
        return ast.parse(shell().transform_cell(source)) if callable(shell) else None
    except Exception:  # noqa: BLE001  then nobody can tell
        return None


def _around(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """Statements whose body has that line, the innermost too."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith) and body:
            last = body[-1].end_lineno or body[-1].lineno
            if body[0].lineno <= line <= last:
                yield node


def _catches(node: ast.AST, frame: types.FrameType) -> bool:
    if isinstance(node, ast.Try | ast.TryStar):
        return any(one.type is None or _is_caught(one.type, frame) for one in node.handlers)
    assert isinstance(node, ast.With | ast.AsyncWith)
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    return any(_called(call) in _SUPPRESSING and any(_is_caught(one, frame) for one in call.args) for call in calls)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_caught(kind: ast.expr, frame: types.FrameType) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(_is_caught(one, frame) for one in kind.elts)
    named = _meant(kind, frame)
    return isinstance(named, type) and issubclass(ModuleNotFoundError, named)


def _meant(kind: ast.expr, frame: types.FrameType) -> Any:
    """Of a plain name only: nothing is evaluated."""
    if not isinstance(kind, ast.Name):
        return None
    for names in (frame.f_locals, frame.f_globals, vars(builtins)):
        if kind.id in names:
            return names[kind.id]
    return None
