"""What libraries removed and documented an exact equivalent for. The agent's own code gets that; libraries get none."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import sys
import types
from collections.abc import Callable
from typing import Any

from workbench_guest.corrections import places
from workbench_guest.corrections.desk import desk

_RULE, _SWITCH = "removed-api", "removed_api"
# What NumPy's own migration guides name for each.
_NUMPY = {
    **{name: f"builtins.{name}" for name in ("float", "int", "bool", "object", "complex", "str")},
    **dict.fromkeys(("NaN", "NAN"), "numpy.nan"),
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "numpy.inf"),
    "NINF": "-numpy.inf",
    "float_": "numpy.float64",
    "bool8": "numpy.bool_",
    "int0": "numpy.intp",
    "uint0": "numpy.uintp",
    "str0": "numpy.str_",
    "bytes0": "numpy.bytes_",
    "object0": "numpy.object_",
    "unicode": "builtins.str",
    "complex_": "numpy.complex128",
    "cfloat": "numpy.complex128",
    "singlecomplex": "numpy.complex64",
    "longfloat": "numpy.longdouble",
    "longcomplex": "numpy.clongdouble",
    "clongfloat": "numpy.clongdouble",
    "unicode_": "numpy.str_",
    "string_": "numpy.bytes_",
    "product": "numpy.prod",
    "cumproduct": "numpy.cumprod",
    "alltrue": "numpy.all",
    "sometrue": "numpy.any",
    "round_": "numpy.round",
    "row_stack": "numpy.vstack",
    "trapz": "numpy.trapezoid",
    "mat": "numpy.asmatrix",
}
_PILLOW = {"ANTIALIAS": "PIL.Image.LANCZOS", "LINEAR": "PIL.Image.BILINEAR", "CUBIC": "PIL.Image.BICUBIC"}
_COLLECTIONS = {name: f"collections.abc.{name}" for name in collections.abc.__all__ if not hasattr(collections, name)}
TABLES = {"numpy": _NUMPY, "PIL.Image": _PILLOW, "collections": _COLLECTIONS}


def is_agents_attribute(frame: types.FrameType, name: str) -> bool:
    """Whether the agent's own code reads this attribute, and does not only ask for it."""
    if not desk.serves(_SWITCH, frame):
        return False
    place = places.place_of(frame.f_code, frame.f_lasti)
    if place is None or not isinstance(place.node, ast.Attribute) or place.node.attr != name:
        return False
    # Who names the error has an answer of its own to it.
    return not places.is_guarded(frame, desk.namespace, "AttributeError", broad=frozenset())


def patch_module(module: types.ModuleType) -> None:
    """Its removed names, by their equivalents; those that it has are its own."""
    table = TABLES[module.__name__]
    before = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:  # noqa: N807  Python's own name for it
        frame = sys._getframe(1)  # noqa: SLF001  who asks is the question
        if name in table and is_agents_attribute(frame, name):
            found = _equivalent(table[name])
            if found:
                line = desk.line_of(frame.f_code.co_filename, frame.f_lineno)
                desk.acted(_RULE, f"{module.__name__}.{name}", table[name], line)
                return found[0]
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)

    vars(module)["__getattr__"] = __getattr__


def _equivalent(path: str) -> list[Any]:
    module, _, name = path.removeprefix("-").rpartition(".")
    found = builtins if module == "builtins" else sys.modules.get(module)
    if not hasattr(found, name):
        return []
    value = getattr(found, name)
    return [-value if path.startswith("-") else value]


class _Removed:
    """A method that was removed, as long as nobody else has the name."""

    def __init__(self, name: str, used: str, call: Callable[..., Any]) -> None:
        self._name = name
        self._used = used
        self._call = call

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001
        # A column of that name is found by the table's own __getattr__.
        if owner is None or not is_agents_attribute(frame, self._name) or self._name in owner._info_axis:  # noqa: SLF001
            what = kind.__name__ if owner is None else type(owner).__name__
            raise AttributeError(f"{what!r} object has no attribute {self._name!r}", name=self._name, obj=owner)

        def called(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)  # noqa: SLF001
            result = self._call(owner, *args, **kwargs)
            line = desk.line_of(caller.f_code.co_filename, caller.f_lineno)
            desk.acted(_RULE, f"{type(owner).__name__}.{self._name}", self._used, line)
            return result

        return called


def patch_pandas(pandas: Any) -> None:
    """`append` and `iteritems`, which went with pandas 2, and what has another name in pandas 3."""

    def append_rows(
        table: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False, sort: bool = False
    ) -> Any:
        if isinstance(other, dict):
            if not ignore_index:
                raise TypeError("Can only append a dict if ignore_index=True")
            other = pandas.Series(dict(other))
        if isinstance(other, pandas.Series):
            if other.name is None and not ignore_index:
                raise TypeError("Can only append a Series if ignore_index=True or if the Series has a name")
            other = other.to_frame().T.infer_objects().rename_axis(table.index.names)
        elif isinstance(other, list) and other and not isinstance(other[0], pandas.DataFrame):
            other = pandas.DataFrame(other)
        parts = [table, *other] if isinstance(other, (list, tuple)) else [table, other]
        return pandas.concat(parts, ignore_index=ignore_index, verify_integrity=verify_integrity, sort=sort)

    def append_values(row: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False) -> Any:
        parts = [row, *other] if isinstance(other, (list, tuple)) else [row, other]
        return pandas.concat(parts, ignore_index=ignore_index, verify_integrity=verify_integrity)

    for kind, append in ((pandas.DataFrame, append_rows), (pandas.Series, append_values)):
        if "append" not in dir(kind):
            kind.append = _Removed("append", "pandas.concat", append)
        _rename(kind, "iteritems", "items")
        _rename(kind, "pad", "ffill")
        _rename(kind, "backfill", "bfill")
    _rename(pandas.DataFrame, "applymap", "map")


def _rename(kind: Any, removed: str, used: str) -> None:
    """A method that takes what the other took, and does the same."""
    if removed not in dir(kind) and hasattr(kind, used):
        # Asked for where it is called, as a class of its own may have its own.
        call = _Removed(removed, used, lambda table, *args, **kwargs: getattr(table, used)(*args, **kwargs))
        setattr(kind, removed, call)
