"""Data from outside as the agent's code gets it: real dicts, texts and tuples, which are read forgivingly by that code.

Everybody else, libraries above all, sees what Python's own types do. Which field is meant is left to `reading`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, SupportsIndex

from workbench_guest.corrections import reading

# Text above this is parsed as it is: dressing it takes several times as long as parsing it.
MOST_DRESSED_CHARACTERS = 20_000_000


class ToolDict(dict[str, Any]):
    """A dict of an answer."""

    __slots__ = ()
    _workbench_plain: ClassVar[type] = dict

    def __missing__(self, key: Any) -> Any:
        """`d[key]` that is not there."""
        return reading.item(self, key, sys._getframe(1))  # noqa: SLF001  who asks is the question

    def get(self, key: Any, default: Any = None, /) -> Any:
        """As a dict's, in the field's own spelling."""
        if key in self:
            return dict.__getitem__(self, key)
        return reading.got(self, key, default, sys._getframe(1))  # noqa: SLF001

    def __getattr__(self, name: str) -> Any:
        """`d.name`, which no dict has."""
        return reading.attribute(self, name, sys._getframe(1))  # noqa: SLF001

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """As a plain one."""
        return dict, (), None, None, iter(self.items())

    def copy(self) -> dict[str, Any]:
        """One of the same kind."""
        return type(self)(self)


class ToolAnswer(ToolDict):
    """The outermost dict of an answer, or what is in its wrapper: around it, or right inside, may be wrappers."""

    __slots__ = ()
    _workbench_outermost: ClassVar[bool] = True


class ToolList(list[Any]):
    """A list of an answer, where lists of one are read as their element."""

    __slots__ = ()
    _workbench_plain: ClassVar[type] = list

    def __getitem__(self, key: Any) -> Any:
        """An element, or a field of the only one."""
        if isinstance(key, str):
            return reading.only_element(self, key, sys._getframe(1))  # noqa: SLF001
        return list.__getitem__(self, key)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """As a plain one."""
        return list, (), None, iter(self)


class ToolStr(str):
    """A text of an answer that may be JSON."""

    __slots__ = ()
    _workbench_plain: ClassVar[type] = str

    def __getitem__(self, key: Any) -> Any:
        """Characters, or a field of the JSON."""
        if isinstance(key, str):
            return reading.in_json(self, key, sys._getframe(1))  # noqa: SLF001
        return str.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        """`get`, which no text has."""
        return reading.json_attribute(self, name, sys._getframe(1))  # noqa: SLF001

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """As a plain one."""
        return str, (str(self),)

    def __str__(self) -> str:
        """A plain one."""
        return str.__str__(self)


class ToolResult(tuple[Any, Any]):
    """What a helper returns: `(data, error)`."""

    __slots__ = ()
    _workbench_plain: ClassVar[type] = tuple

    def __getitem__(self, key: Any) -> Any:
        """One of the two, or a field of the data."""
        if isinstance(key, str):
            return reading.in_pair(self, key, sys._getframe(1))  # noqa: SLF001
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        """`get`, which no tuple has."""
        return reading.pair_attribute(self, name, sys._getframe(1))  # noqa: SLF001

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """As a plain one."""
        return tuple, (list(self),)


TYPES = (ToolDict, ToolAnswer, ToolList, ToolStr, ToolResult)


class Dresser:
    """Makes such data of plain data, by what the session has switched on."""

    def __init__(self, on: frozenset[str]) -> None:
        self._texts = "json_text" in on
        self._lists = "single_element" in on
        self._dicts = bool(on & {"keys", "wrappers", "attributes"}) or self._texts or self._lists
        self._pairs = "tuples" in on

    def pair(self, data: Any, error: Any) -> tuple[Any, Any]:
        """Of a helper."""
        made = (self.data(data), error)
        return ToolResult(made) if self._pairs else made

    def data(self, value: Any) -> Any:
        """The same in it; lists are changed in place."""
        try:
            return self._dressed(value, ToolAnswer)
        except RecursionError:
            return value

    def _dressed(self, value: Any, table: type[ToolDict]) -> Any:
        kind = type(value)
        if kind is dict:
            if self._dicts:
                if table is ToolAnswer:
                    return table((key, self._dressed(one, _inner(key))) for key, one in value.items())
                return table((key, self._dressed(one, ToolDict)) for key, one in value.items())
        elif kind is list:
            for number, one in enumerate(value):
                if type(one) in _NESTED:
                    value[number] = self._dressed(one, ToolDict)
            return ToolList(value) if self._lists else value
        elif kind is str and self._texts and value[:1] in _JSON_BEGINS and reading.may_be_json(value):
            return ToolStr(value)
        return value


def _inner(key: Any) -> type[ToolDict]:
    """What is in a wrapper of an answer is an answer, too."""
    return ToolAnswer if isinstance(key, str) and key in reading.WRAPPERS else ToolDict


_PLAIN = "_workbench_plain"
_NESTED = frozenset({dict, list, str})
_JSON_BEGINS = ("{", " ", "\n")


def plain(value: Any) -> Any:
    """The same in Python's own types, as deep as it goes."""
    if isinstance(value, ToolStr):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def yaml_representers(yaml: Any) -> None:
    """PyYAML goes by exact types."""
    for name in ("SafeDumper", "Dumper", "CSafeDumper", "CDumper"):
        if (dumper := getattr(yaml, name, None)) is not None:
            for kind in TYPES:
                dumper.add_representer(kind, _represented(getattr(kind, _PLAIN)))


def _represented(kind: type) -> Callable[[Any, Any], Any]:
    def represent(dumper: Any, value: Any) -> Any:
        return dumper.represent_data(kind(value))

    return represent


def orjson_pairs(orjson: Any) -> None:
    """It takes dicts, lists and texts of any class, and tuples only of their own."""
    real = orjson.dumps

    def dumps(value: Any, /, default: Callable[[Any], Any] | None = None, option: int | None = None) -> bytes:
        def otherwise(one: Any) -> Any:
            if isinstance(one, ToolResult):
                return tuple(one)
            if default is None:
                message = f"Type is not JSON serializable: {type(one).__name__}"
                raise TypeError(message)
            return default(one)

        return real(value, otherwise, option)  # type: ignore[no-any-return]  # bytes

    dumps.__doc__ = real.__doc__
    orjson.dumps = dumps
