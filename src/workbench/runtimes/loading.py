"""Reads descriptions of runtimes; what they mean is in `model/runtime.py`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec

from workbench.errors import InvalidRequest
from workbench.model.runtime import CONNECTION_FILE, PYTHON, Runtime, Runtimes

_SHIPPED = Path(__file__).parent
_MOST_BYTES = 64 * 1024
_FIELDS = {field.name for field in dataclasses.fields(Runtime)}


def load_runtimes(added: Path | str | None = None) -> Runtimes:
    """Those that are shipped, then those of a folder of the operator's, if one is named; they may replace shipped ones.

    Raises:
        InvalidRequest: a file that is no description, or a name that two have; the file is named.
    """
    found: dict[str, Runtime] = {}
    for folder in (_SHIPPED, *([Path(added)] if added else [])):
        if not folder.is_dir():
            raise InvalidRequest(f"no such folder of runtimes: {folder}")
        for path in sorted(folder.glob("*.json")):
            one = _read(path)
            found[one.name] = one
    _check_names(found)
    return Runtimes(known=tuple(found.values()))


def _read(path: Path) -> Runtime:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES)
    try:
        # Read leniently, a misspelt field would be as if it were not there.
        unknown = set(msgspec.json.decode(data, type=dict[str, object])) - _FIELDS
        one = msgspec.json.decode(data, type=Runtime)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"{path} is no description of a runtime: {problem}") from None
    if unknown:
        raise InvalidRequest(f"{path} has {', '.join(sorted(unknown))}, which no description has")
    if one.argv and CONNECTION_FILE not in "".join(one.argv):
        raise InvalidRequest(f"{path}: the command of a kernel needs {CONNECTION_FILE} where its connection file goes")
    if one.name != path.stem or not one.name.isidentifier() or one.name != one.name.lower():
        raise InvalidRequest(f"{path} describes {one.name!r}; the name is a small-letter word, and the file's own")
    _check_command(path, one)
    return one


def _check_command(path: Path, one: Runtime) -> None:
    """What goes by the name of Python is forked, and whatever is forked goes by it."""
    if one.name == PYTHON and one.argv:
        raise InvalidRequest(
            f"{path}: {PYTHON} is the image's own interpreter and has no command (argv); another kernel of Python "
            "needs another name"
        )
    if one.name != PYTHON and not one.argv:
        raise InvalidRequest(f"{path}: {one.name} needs argv, the command of its kernel; {PYTHON} alone has none")


def _check_names(found: dict[str, Runtime]) -> None:
    owner: dict[str, str] = {}
    for one in found.values():
        for name in one.names:
            if owner.setdefault(name, one.name) != one.name:
                raise InvalidRequest(f"two runtimes are called {name!r}: {owner[name]} and {one.name}")
