"""Configuration files of other programs: one entry of ours is put in, everything else is kept as it is."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import Conflict, InvalidRequest

Entry = dict[str, Any]
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an entry belongs."""

    file: Path
    table: str
    """the name of the table in it that has all servers"""
    name: str
    """of the entry"""

    @property
    def is_toml(self) -> bool:
        """Or JSON."""
        return self.file.suffix == ".toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would be written."""

    place: Place
    before: str | None
    """the whole file as it is; None if there is none"""
    after: str
    old_entry: str
    """as it would be written; empty if there is none"""
    new_entry: str

    @property
    def is_one(self) -> bool:
        """Whether there is anything to do."""
        return self.old_entry != self.new_entry


def plan(place: Place, entry: Entry) -> Change:
    """What the file becomes.

    Raises:
        InvalidRequest: the file cannot be read as what it should be, or not be changed without touching more.
    """
    before = _read(place.file)
    known = _parsed(place, before or "")
    servers = known.get(place.table, {})
    if not isinstance(servers, dict):
        raise _refusal(place, f"`{place.table}` in it is not a table")
    old = servers.get(place.name)
    after = _toml_with(place, before or "", entry) if place.is_toml else _json_with(place, known, entry)
    wanted = {**known, place.table: {**servers, place.name: entry}}
    if _parsed(place, after) != wanted:
        raise _refusal(place, "the entry cannot be changed there without touching others")
    return Change(
        place=place,
        before=before,
        after=before if before is not None and old == entry else after,
        old_entry="" if old is None else shown(place, old),
        new_entry=shown(place, entry),
    )


def shown(place: Place, entry: Entry) -> str:
    """The entry alone, as one would type it."""
    if place.is_toml:
        return _toml(place, entry)
    return json.dumps({place.table: {place.name: entry}}, indent=2, ensure_ascii=False) + "\n"


def write(change: Change, *, private: bool) -> Path | None:
    """At once or not at all; where the file as it was has been kept.

    Raises:
        Conflict: somebody else has changed it meanwhile.
    """
    # Who keeps such files elsewhere and links to them wants them there.
    file = Path(os.path.realpath(change.place.file))
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = _PRIVATE if private or not file.exists() else file.stat().st_mode & 0o777
    kept = None
    if change.before is not None:
        moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
        kept = file.with_name(f"{file.name}.before-{moment}")
        _write(kept, change.before, mode & _PRIVATE)
    if _read(file) != change.before:
        if kept is not None:
            kept.unlink()
        raise Conflict(f"{file} was changed by somebody else meanwhile, and is as they left it; run this again")
    _write(file, change.after, mode)
    return kept


def _write(file: Path, text: str, mode: int) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            # BARRIER: a key in it must be nobody else's to read, not even for a moment; held by
            # tests/cli/test_mcp_install.py.
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _read(file: Path) -> str | None:
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"{file} cannot be read ({problem}); nothing was written") from None


def _parsed(place: Place, text: str) -> Entry:
    if not text.strip():
        return {}
    try:
        known = tomllib.loads(text) if place.is_toml else json.loads(text, object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as problem:
        kind = "TOML" if place.is_toml else "JSON without comments"
        raise _refusal(place, f"it is not {kind}: {problem}") from None
    if not isinstance(known, dict):
        raise _refusal(place, "it is not an object")
    return known


def _without_doubles(pairs: list[tuple[str, Any]]) -> Entry:
    known = dict(pairs)
    if len(known) != len(pairs):
        raise ValueError("a name is there twice, and one of the two would be lost")
    return known


def _refusal(place: Place, why: str) -> InvalidRequest:
    return InvalidRequest(f"{place.file} was left as it is: {why}. Put it right, or add what --print shows by hand")


def _json_with(place: Place, known: Entry, entry: Entry) -> str:
    servers = {**known.get(place.table, {}), place.name: entry}
    return json.dumps({**known, place.table: servers}, indent=2, ensure_ascii=False) + "\n"


def _toml_with(place: Place, text: str, entry: Entry) -> str:
    """The text with our tables taken out and put in again at the end; comments elsewhere stay."""
    name = rf"(?:{re.escape(place.name)}|\"{re.escape(place.name)}\"|'{re.escape(place.name)}')"
    ours = re.compile(rf"^\s*\[\s*{re.escape(place.table)}\s*\.\s*{name}\s*(?:\.[^\]]*)?\]\s*(?:#.*)?$")
    lines, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = ours.match(line) is not None
        if not inside:
            lines.append(line)
    rest = "".join(lines).rstrip()
    return f"{rest}\n\n{_toml(place, entry)}" if rest else _toml(place, entry)


def _toml(place: Place, entry: Entry) -> str:
    values = {key: value for key, value in entry.items() if not isinstance(value, dict)}
    said = [f"[{place.table}.{_toml_key(place.name)}]", *(f"{key} = {_toml_value(one)}" for key, one in values.items())]
    for key, value in entry.items():
        if isinstance(value, dict):
            said += ["", f"[{place.table}.{_toml_key(place.name)}.{key}]"]
            said += [f"{_toml_key(inner)} = {_toml_value(one)}" for inner, one in value.items()]
    return "\n".join(said) + "\n"


def _toml_key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)


def _toml_value(value: Any) -> str:
    """Strings, numbers and lists of them are written as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
