"""Configuration files of other programs: one entry of ours is put in, everything else is kept as it is."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import stat
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.cli.secrets_shown import masked
from workbench.cli.tables import plain
from workbench.errors import Conflict, InvalidRequest

Entry = dict[str, Any]
_PRIVATE = 0o600
# More than any client has: the largest of them keep what was said in it.
_MOST_BYTES = 32 * 1024 * 1024


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
    """as people may see it, without what is secret in it; empty if there is none"""
    new_entry: str
    is_one: bool
    """whether there is anything to do"""


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
        # BARRIER: both have keys and passwords in them, and screens are seen by others; held by
        # tests/cli/test_mcp_install.py.
        old_entry="" if old is None else shown(place, masked(old, {})),
        new_entry=shown(place, masked(entry, old)),
        is_one=old != entry,
    )


def shown(place: Place, entry: Any) -> str:
    """The entry alone, as one would type it."""
    if place.is_toml:
        return _toml(place, entry if isinstance(entry, dict) else {"": entry})
    return json.dumps({place.table: {place.name: entry}}, indent=2, ensure_ascii=False) + "\n"


def write(change: Change, *, private: bool) -> Path | None:
    """At once or not at all; where the file as it was has been kept.

    Raises:
        Conflict: somebody else has changed it meanwhile.
    """
    # Who keeps such files elsewhere and links to them wants them there.
    file = real(change.place.file)
    owner = _make_folder(file.parent)
    mode = _PRIVATE
    if file.exists():
        owner = file.stat()
        mode = _PRIVATE if private else stat.S_IMODE(owner.st_mode) & 0o777
    kept = None
    if change.before is not None:
        moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
        kept = file.with_name(f"{file.name}.before-{moment}")
        _write(kept, change.before, mode & _PRIVATE, owner)
    if _read(file) != change.before:
        if kept is not None:
            kept.unlink()
        raise Conflict(
            f"{plain(str(file))} was changed by somebody else meanwhile, and is as they left it; run this again"
        )
    _write(file, change.after, mode, owner)
    return kept


def real(file: Path) -> Path:
    """Where it is, if links lead there."""
    return Path(os.path.realpath(file))


def _make_folder(folder: Path) -> os.stat_result:
    """Whose it is. One that is made belongs to the owner of the one that it is in."""
    if folder.is_dir():
        return folder.stat()
    above = _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, above.st_uid, above.st_gid)
    return folder.stat()


def _write(file: Path, text: str, mode: int, owner: os.stat_result) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            _give(stream.fileno(), owner, mode, file)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _give(descriptor: int, owner: os.stat_result, mode: int, file: Path) -> None:
    """To whom the file belongs, before anything is in it."""
    own = os.fstat(descriptor)
    # BARRIER: written by root, a user's own configuration would be root's from then on, and unreadable to its client;
    # held by tests/cli/test_mcp_install.py.
    if own.st_uid != owner.st_uid:
        try:
            os.fchown(descriptor, owner.st_uid, -1)
        except PermissionError:
            raise InvalidRequest(
                f"{plain(str(file))} belongs to another user, and would be yours afterwards; nothing was written. Run "
                "this as its owner"
            ) from None
    if own.st_gid != owner.st_gid:
        try:
            os.fchown(descriptor, -1, owner.st_gid)
        except PermissionError:
            # What its group may do is not for another one.
            mode &= ~0o070
    # BARRIER: a key in it must be nobody else's to read, not even for a moment; held by tests/cli/test_mcp_install.py.
    os.fchmod(descriptor, mode)


def _read(file: Path) -> str | None:
    try:
        # BARRIER: a pipe would be waited for, and a device read, for ever; held by tests/cli/test_mcp_install.py.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidRequest(f"{plain(str(file))} is no file but something else; nothing was written")
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise InvalidRequest(
                f"{plain(str(file))} has more than {_MOST_BYTES:,} bytes, and is hardly a configuration; nothing was "
                "written"
            )
        return text.decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(
            f"{plain(str(file))} cannot be read ({plain(str(problem))}); nothing was written"
        ) from None


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
    return InvalidRequest(
        f"{plain(str(place.file))} was left as it is: {plain(why)}. Put it right, or add what --print shows by hand"
    )


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
    name = f"{place.table}.{_toml_key(place.name)}"
    said = [f"[{name}]", *_toml_lines({key: one for key, one in entry.items() if not isinstance(one, dict)})]
    for key, value in entry.items():
        if isinstance(value, dict):
            said += ["", f"[{name}.{_toml_key(key)}]", *_toml_lines(value)]
    return "\n".join(said) + "\n"


def _toml_lines(values: Entry) -> list[str]:
    return [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in values.items()]


def _toml_key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _toml_value(text)


def _toml_value(value: Any) -> str:
    """Strings, numbers and truths are written as in JSON."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return f"{{ {', '.join(_toml_lines(value))} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(one) for one in value)}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
