"""Settings: frozen, read once from the environment. Nothing below the CLI reads the environment itself."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import InvalidSetting
from workbench.model.capability import Level

PREFIX = "WORKBENCH_"
_ENGINES = ("namespace", "process")
_LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the variable of the same name, in capitals, after WORKBENCH_."""

    data_dir: Path
    """where the host keeps its socket, files, spools and images; 0700"""
    images_dir: Path
    """where images are built; `data_dir`/images unless set, and may be shared between data folders"""
    engine: str = "namespace"
    """`namespace`, or `process`, which isolates nothing"""
    min_level: Level = Level.ISOLATED
    """what the host insists on before it starts: `strict`, `isolated` or `open`"""
    pool_size: int = 4
    """sandboxes kept prepared, with a kernel that waits; each costs about 11 MB"""
    spool_max_mib: int = 256
    """how much output is kept of one cell or command, and of one process per stream"""
    cell_limit_max_s: int = 3600
    """the longest time limit that a caller may ask for"""
    snapshots_kept: int = 3
    """of one kernel: the newest for a loss, the others for undo"""
    log_level: str = "info"
    """`debug`, `info`, `warning` or `error`"""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read and check all of them.

        Raises:
            InvalidSetting: a name is unknown or a value cannot be used; the message names both.
        """
        given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
        known = {PREFIX + field.name.upper(): field for field in dataclasses.fields(cls)}
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
                raise InvalidSetting(f"no such setting: {name}{hint}", {"setting": name})
        values: dict[str, Any] = {known[name].name: _parsed(name, value) for name, value in given.items()}
        data_dir = values.setdefault("data_dir", default_data_dir(environ))
        values.setdefault("images_dir", data_dir / "images")
        return cls(**values)

    def to_env(self) -> dict[str, str]:
        """The variables that give exactly these settings, for a process that we start."""
        return {PREFIX + field.name.upper(): str(getattr(self, field.name)) for field in dataclasses.fields(self)}


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """For root the machine's, for others the user's."""
    if os.geteuid() == 0:
        return Path("/var/lib/workbench")
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/share")
    return Path(base) / "workbench"


def _parsed(name: str, text: str) -> Any:
    match name.removeprefix(PREFIX).lower():
        case "data_dir" | "images_dir":
            return _folder(name, text)
        case "engine":
            return _one_of(name, text, _ENGINES)
        case "min_level":
            return Level(_one_of(name, text, tuple(Level)))
        case "pool_size":
            return _number(name, text, 0, 1000)
        case "spool_max_mib":
            return _number(name, text, 1, 1024 * 1024)
        case "cell_limit_max_s":
            return _number(name, text, 1, 7 * 24 * 3600)
        case "snapshots_kept":
            return _number(name, text, 1, 64)
        case _:
            return _one_of(name, text, _LOG_LEVELS)


def _folder(name: str, text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise InvalidSetting(f"{name} must be an absolute path, not {text!r}", {"setting": name})
    return path


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise InvalidSetting(f"{name} must be one of {', '.join(allowed)}, not {text!r}", {"setting": name})
    return text


def _number(name: str, text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise InvalidSetting(f"{name} must be a number from {least} to {most}, not {text!r}", {"setting": name})
    return int(text)
