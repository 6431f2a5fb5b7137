"""After a cell has failed: what could be meant. Nothing is done, and nothing of the agent's is run to find it out.

Names are told, never values.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import types
from collections.abc import Callable
from itertools import islice
from typing import Any

from workbench_guest.corrections import places
from workbench_guest.corrections.desk import desk
from workbench_guest.corrections.reading import may_be_json, same_spelling
from workbench_guest.corrections.suggestions import close, suggestion

_MOST_NAMED = 8
# A table with more keys than this is data, and its keys are values.
_MOST_KEYS = 60
_MOST_FILES = 1000
_FROM = re.compile(r"cannot import name '([^']+)' from '([^']+)'")
_OF_SEVERAL = ("] not in index", "] are in the [columns]")
_NOTHING = object()


def hint(problem: BaseException, names: dict[str, Any]) -> None:
    """Tell what may help; `names` are the agent's own."""
    line = _Raised(problem).line
    if said := suggestion(problem).lstrip(". "):
        desk.hinted("python-suggestion", said, line)
    for kind, look in _LOOKS:
        if isinstance(problem, kind):
            look(problem, _Raised(problem), names)
            return
    if type(problem).__name__ == "StdinNotImplementedError":
        desk.hinted("input", "nobody can type into this session: put the value into the code", line)


class _Raised:
    """Where an error came from, as far as the agent wrote it."""

    def __init__(self, problem: BaseException) -> None:
        last, agents = problem.__traceback__, None
        self.file_of_end = ""
        while last is not None:
            if last.tb_frame.f_globals is desk.namespace:
                agents = last
            self.file_of_end = last.tb_frame.f_code.co_filename
            last = last.tb_next
        self._last = agents
        file = agents.tb_frame.f_code.co_filename if agents is not None else ""
        self.line = desk.line_of(file, agents.tb_lineno) if agents is not None else 0
        self.is_agents = self.file_of_end == file or f"{os.sep}workbench_guest{os.sep}" in self.file_of_end
        """no library raised it"""

    def subscript(self) -> ast.Subscript | None:
        """The expression that failed, if it is one of these."""
        if self._last is None:
            return None
        place = places.place_of(self._last.tb_frame.f_code, self._last.tb_lasti)
        return place.node if place is not None and isinstance(place.node, ast.Subscript) else None

    def value(self, node: ast.expr) -> Any:
        """Of a name, or of constant subscripts on built-in containers; nothing is called for it."""
        assert self._last is not None
        frame = self._last.tb_frame
        if isinstance(node, ast.Name):
            return _looked_up(frame, node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            inner = self.value(node.value)
            try:
                if isinstance(inner, dict) and type(inner).__module__ in ("builtins", _TOOL_DATA):
                    return dict.get(inner, node.slice.value, _NOTHING)
                if type(inner) in (list, tuple):
                    return inner[node.slice.value]
            except (TypeError, IndexError):
                return _NOTHING
        return _NOTHING


_TOOL_DATA = "workbench_guest.corrections.data"


def _looked_up(frame: types.FrameType, name: str) -> Any:
    for table in (frame.f_locals, frame.f_globals):
        if name in table:
            return table[name]
    return _NOTHING


def _of_key(problem: BaseException, raised: _Raised, _names: dict[str, Any]) -> None:
    node = raised.subscript()
    key = problem.args[0] if problem.args else None
    if node is None or not isinstance(key, str):
        return
    table = raised.value(node.value)
    what = ast.unparse(node.value)
    if isinstance(table, dict) and type(table).__module__ != _TOOL_DATA and raised.is_agents:
        keys = [one for one in islice(dict.keys(table), _MOST_KEYS + 1) if isinstance(one, str)]
        _tell("missing-key", f"{what} has no key {key!r}", key, keys, raised.line)
    elif type(table).__name__ == "DataFrame" and type(table).__module__.partition(".")[0] == "pandas":
        columns = [one for one in islice(table.columns, _MOST_KEYS + 1) if isinstance(one, str)]
        for one in _columns_asked(raised, node.slice, key):
            if one not in columns:
                _tell("missing-column", f"{what} has no column {one!r}", one, columns, raised.line)


def _columns_asked(raised: _Raised, part: ast.expr, key: str) -> list[str]:
    """Of several, pandas tells in a sentence which there are not."""
    if isinstance(part, ast.List):
        asked = [one.value for one in part.elts if isinstance(one, ast.Constant)]
    else:
        value = raised.value(part)
        asked = value if type(value) is list else [] if key.endswith(_OF_SEVERAL) else [key]
    return [one for one in asked if isinstance(one, str)][:_MOST_NAMED]


def _tell(rule: str, said: str, key: str, names: list[str], line: int) -> None:
    near = same_spelling(dict.fromkeys(names), key) or close(key, names)
    if near:
        desk.hinted(rule, f"{said}; there is {_named(near)}", line)
    elif names and len(names) <= _MOST_KEYS:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        desk.hinted(rule, f"{said}; it has {_named(names)}{more}", line)


def _named(names: list[str]) -> str:
    return ", ".join(repr(one[:80]) for one in names[:_MOST_NAMED])


def _of_type(_problem: BaseException, raised: _Raised, _names: dict[str, Any]) -> None:
    node = raised.subscript()
    if node is None or not raised.is_agents or not isinstance(node.slice, ast.Constant):
        return
    if not isinstance(node.slice.value, str):
        return
    value, what = raised.value(node.value), ast.unparse(node.value)
    key = node.slice.value
    said = ""
    if value is None:
        said = f"{what} is None"
    elif isinstance(value, list):
        said = f"{what} is a list of {len(value)}: take an element first, like {what}[0][{key!r}]"
    elif isinstance(value, tuple):
        said = f"{what} is a tuple of {len(value)}: unpack it first, or take an element by its number"
    elif isinstance(value, str) and may_be_json(value):
        said = f"{what} is a text that looks like JSON: json.loads({what})[{key!r}]"
    if said:
        desk.hinted("not-by-name", said, raised.line)


def _of_name(problem: BaseException, raised: _Raised, names: dict[str, Any]) -> None:
    name = getattr(problem, "name", None)
    near = close(name, list(names)) if isinstance(name, str) else []
    if near:
        desk.hinted("close-name", f"{name!r} is not defined; there is {_named(near)}", raised.line)


def _of_import(problem: BaseException, raised: _Raised, _names: dict[str, Any]) -> None:
    import sys

    found = _FROM.search(str(problem))
    module = sys.modules.get(found[2]) if found is not None else None
    near = close(found[1], [one for one in dir(module) if not one.startswith("_")]) if found and module else []
    if found is not None and near:
        desk.hinted("close-name", f"{found[2]} has no {found[1]!r}; it has {_named(near)}", raised.line)


def _of_file(problem: BaseException, raised: _Raised, _names: dict[str, Any]) -> None:
    path = getattr(problem, "filename", None)
    if not isinstance(path, str) or getattr(problem, "errno", None) != errno.ENOENT:
        return
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, _MOST_FILES) if not entry.name.startswith(".")]
    except OSError:
        return
    where = folder or "the working folder"
    if near := close(name, names):
        desk.hinted("missing-file", f"no file {name!r} in {where}; there is {_named(near)}", raised.line)
    elif names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        desk.hinted("missing-file", f"no file {name!r} in {where}; it has {_named(sorted(names))}{more}", raised.line)


_Look = Callable[[BaseException, _Raised, dict[str, Any]], None]
_LOOKS: tuple[tuple[type[BaseException], _Look], ...] = (
    (KeyError, _of_key),
    (TypeError, _of_type),
    (NameError, _of_name),
    (ModuleNotFoundError, lambda _problem, _raised, _names: None),
    (ImportError, _of_import),
    (FileNotFoundError, _of_file),
)
