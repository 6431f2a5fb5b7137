"""What neither pickle nor dill take apart well enough: classes of cells, enums, type variables, modules.

A class is made empty first and filled afterwards, so that it may hold itself, its instances and its members.
"""

from __future__ import annotations

import abc
import enum
import importlib
import io
import types
import typing
from collections import namedtuple
from typing import Any

_OPEN_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
# What a class cannot be given once it is there.
_FROM_THE_FIRST = ("__module__", "__slots__", "__class__")
# What every class has of its own, made with it.
_MADE_WITH_IT = ("__dict__", "__weakref__", "_abc_impl")
_OF_A_NAMED_TUPLE = ("__new__", "__slots__", "__orig_bases__", "_fields", "_field_defaults", "_make", "_replace")
_OF_A_MEMBER = ("_value_", "_name_", "__objclass__", "_sort_order_")
# Words that an enum's author may write between single underscores; the others are the machinery's.
_OF_AN_ENUM = ("_missing_", "_generate_next_value_")


def reduction(value: Any, main: str, memory: dict[str, Any]) -> Any:
    """How `value` is made again, or NotImplemented; `main` is the module of the cells, `memory` its names.

    May change `__module__` of a function, so it belongs into a fork that is thrown away.
    """
    kind = type(value)
    if kind is types.FunctionType:
        # A function that `functools.wraps` made look like another's: by its module dill would copy all names for it.
        if value.__globals__ is memory and value.__module__ != main:
            value.__module__ = main
    elif kind in _OPEN_FILES:
        # dill opens it again by its name, and a file that was being written is emptied by that.
        raise TypeError("an open file; open it again in the copy")
    elif issubclass(kind, types.ModuleType):
        return importlib.import_module, (value.__name__,)
    elif isinstance(value, type) and value.__module__ == main:
        return _class(value)
    elif kind is typing.TypeVar and value.__module__ == main:
        how = (value.__bound__, value.__covariant__, value.__contravariant__)
        return _made_type_variable, (value.__name__, value.__constraints__, *how)
    elif kind is typing.NewType and value.__module__ == main:
        return typing.NewType, (value.__name__, value.__supertype__)
    return NotImplemented


def _class(made: type) -> Any:
    own = {name: value for name, value in vars(made).items() if name not in _MADE_WITH_IT}
    own["__qualname__"] = made.__qualname__
    if issubclass(made, enum.Enum):
        return _enum(made, own)
    if made.__bases__ == (tuple,) and hasattr(made, "_fields") and hasattr(made, "_field_defaults"):
        return _named_tuple(made, own)
    slots = own.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else tuple(slots):
        # Private ones are called otherwise in the class than in the list.
        own.pop(name, None)
        own.pop(f"_{made.__name__.lstrip('_')}{name}", None)
    first = {name: own.pop(name) for name in _FROM_THE_FIRST if name in own}
    bases = vars(made).get("__orig_bases__", made.__bases__)
    registered = _registered(made) if isinstance(made, abc.ABCMeta) else []
    return _made_class, (type(made), made.__name__, bases, first), (own, registered), None, None, _fill_class


def _registered(made: abc.ABCMeta) -> list[type]:
    # The only way that the standard library has to ask; a copy that is held weakly.
    (held, _, _, _) = abc._get_dump(made)  # type: ignore[attr-defined]  # noqa: SLF001
    return [one for one in (reference() for reference in held) if one is not None]


def _made_class(kind: type, name: str, bases: tuple[Any, ...], first: dict[str, Any]) -> type:
    return types.new_class(name, bases, {"metaclass": kind}, lambda space: space.update(first))


def _fill_class(made: Any, state: tuple[dict[str, Any], list[type]]) -> None:
    own, registered = state
    for name, value in own.items():
        # Not by the class's own metaclass, which may think differently about it.
        type.__setattr__(made, name, value)
    for one in registered:
        made.register(one)


def _named_tuple(made: Any, own: dict[str, Any]) -> Any:
    generated = {*_OF_A_NAMED_TUPLE, *made._fields}
    rest = {name: value for name, value in own.items() if name not in generated and not _is_generated(value)}
    defaults = tuple(made._field_defaults.values())
    return _made_named_tuple, (made.__name__, made._fields, defaults), (rest, []), None, None, _fill_class


def _is_generated(value: Any) -> bool:
    """By collections.namedtuple, in its own words."""
    function = getattr(value, "__func__", value)
    return isinstance(function, types.FunctionType) and function.__globals__.get("__name__", "").startswith(
        ("collections", "namedtuple_")
    )


def _made_named_tuple(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> type:
    return namedtuple(name, fields, defaults=defaults)


def _enum(made: Any, own: dict[str, Any]) -> Any:
    members = {name: member.value for name, member in made.__members__.items()}
    more = {name: _more_of(member) for name, member in made.__members__.items()}
    rest = {name: value for name, value in own.items() if name not in members and not _is_machinery(name, value)}
    first = (made.__name__, made.__bases__, members, made.__module__, getattr(made, "_boundary_", None))
    return _made_enum, first, (rest, {name: how for name, how in more.items() if how}), None, None, _fill_enum


def _is_machinery(name: str, value: Any) -> bool:
    if name in _OF_AN_ENUM:
        return getattr(getattr(value, "__func__", value), "__module__", "") == "enum"
    if name.startswith("_") and name.endswith("_") and not name.startswith("__"):
        return True
    # `__new__` has done its work: the members are made by their values.
    return name in ("__new__", "__new_member__") or getattr(value, "__module__", "") in ("enum", "builtins")


def _more_of(member: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(member).items() if name not in _OF_A_MEMBER}


def _made_enum(name: str, bases: tuple[type, ...], members: dict[str, Any], module: str, boundary: Any) -> Any:
    kind: Any = type(bases[-1])
    space = kind.__prepare__(name, bases)
    for member, value in members.items():
        space[member] = value
    space["__module__"] = module
    return kind(name, bases, space, **({"boundary": boundary} if boundary is not None else {}))


def _fill_enum(made: Any, state: tuple[dict[str, Any], dict[str, dict[str, Any]]]) -> None:
    rest, more = state
    for name, value in rest.items():
        type.__setattr__(made, name, value)
    for member, attributes in more.items():
        vars(made[member]).update(attributes)


def _made_type_variable(name: str, among: tuple[Any, ...], bound: Any, covariant: bool, contravariant: bool) -> Any:
    make: Any = typing.TypeVar
    return make(name, *among, bound=bound, covariant=covariant, contravariant=contravariant)
