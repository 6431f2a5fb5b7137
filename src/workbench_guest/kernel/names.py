"""Which names of the memory a cell added, removed or bound to another object. Changes inside an object are not seen."""

from __future__ import annotations

import ast
import re
import weakref
from typing import Any

# What IPython keeps of past cells.
_HISTORY = re.compile(r"_+|_i+|_i?\d+|_[dio]h|_exit_code|__\w+__")
# Told in one receipt; the rest is counted.
MOST_TOLD = 200
_ATOMS = (int, float, complex, bool, str, bytes, type(None))
# An old value of this size may be kept until the cell has ended.
_SMALL = 4096
# Names of IPython's that were met. There are two more with each cell, and every cell looks twice: seen once, they are
# taken out all together.
_met: set[str] = set()


def visible(user_ns: dict[Any, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    """Names that are the agent's own, with what they mean."""
    own = {}
    for name in user_ns.keys() - _met:
        # Python binds names only; the agent may put anything into globals().
        if not isinstance(name, str):
            continue
        if _HISTORY.fullmatch(name) is not None:
            _met.add(name)
            continue
        # Another thread may have taken it away.
        value = user_ns.get(name, _met)
        if value is not _met and (name not in hidden or hidden[name] is not value):
            own[name] = value
    return own


class Before:
    """The names as they are before a cell, without keeping anything large alive."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._marks = {name: _mark(value) for name, value in names.items()}

    def changes(self, after: dict[str, Any], code: str) -> dict[str, Any]:
        """As the metadata of a reply has it."""
        added = [name for name in after if name not in self._marks]
        removed = [name for name in self._marks if name not in after]
        again = _Assigned(code)
        both = [(name, value) for name, value in after.items() if name in self._marks]
        rebound = [name for name, value in both if _differs(self._marks[name], name, value, again)]
        told: dict[str, Any] = {}
        room = MOST_TOLD
        for kind, names in (("added", added), ("removed", removed), ("rebound", rebound)):
            told[kind] = sorted(names)[:room]
            room -= len(told[kind])
        told["more"] = len(added) + len(removed) + len(rebound) - (MOST_TOLD - room)
        return told


def _mark(value: Any) -> Any:
    """Something that tells whether a name still means the same object."""
    if type(value) in _ATOMS and (not isinstance(value, (str, bytes)) or len(value) <= _SMALL):
        return value
    try:
        return weakref.ref(value)
    except TypeError:
        return _Place(id(value))


class _Place:
    """Where an object was that no weak reference can be made to; another one may come to lie there."""

    def __init__(self, address: int) -> None:
        self.address = address


def _differs(mark: Any, name: str, value: Any, again: _Assigned) -> bool:
    if isinstance(mark, weakref.ref):
        return mark() is not value
    if isinstance(mark, _Place):
        return mark.address != id(value) or name in again
    return mark is not value and (type(mark) is not type(value) or mark != value)


class _Assigned:
    """Names that a cell binds after they may have been freed: deleted, or bound in a loop, or more than once.

    Only asked when an address is the same as before.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._names: set[str] | None = None

    def __contains__(self, name: str) -> bool:
        if self._names is None:
            self._names = _bound_again(self._code)
        return name in self._names


def _bound_again(code: str) -> set[str]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    seen: set[str] = set()
    again: set[str] = set()
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While, ast.AsyncFor))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            (again if node.id in seen else seen).add(node.id)
    for loop in loops:
        again |= {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return again
