"""The settings file of toolkits: TOML, a table for each, and secrets by reference to where they are.

[toolkits.files]
command = ["mcp-server-filesystem", "/srv/shared"]

[toolkits.tracker]
url = "https://mcp.example.com/mcp"
bearer = { env = "TRACKER_TOKEN" }
projects = ["default"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.model.added import AddedToolkit, added_toolkit
from workbench.model.ids import ProjectId, project_id

_MOST_BYTES = 2**20
_MOST_SECRET_BYTES = 16_000
_REFERENCES = ("bearer", "key", "env", "headers")


def read_file(path: Path, environ: Mapping[str, str]) -> tuple[AddedToolkit, ...]:
    """All of it, or nothing.

    Raises:
        InvalidRequest: it cannot be read or used; the message says where.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise InvalidRequest(f"{path} has more than {_MOST_BYTES:,} bytes")
        told = tomllib.loads(text.decode())
    except OSError as problem:
        raise InvalidRequest(f"{path} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise InvalidRequest(f"{path} is no TOML: {problem}") from problem
    try:
        return tuple(one for slug, given in _tables(told).items() for one in _added(slug, given, environ))
    except WorkbenchError as problem:
        raise InvalidRequest(f"{path}: {problem.message}", problem.context) from problem


def _tables(told: dict[str, Any]) -> dict[str, Any]:
    unknown = [name for name in told if name != "toolkits"]
    tables = told.get("toolkits", {})
    if unknown or not isinstance(tables, dict):
        raise InvalidRequest(f"it has {unknown[0] if unknown else 'toolkits'!r}, and takes tables like [toolkits.name]")
    return tables


def _added(slug: str, given: Any, environ: Mapping[str, str]) -> list[AddedToolkit]:
    if not isinstance(given, dict):
        raise InvalidRequest(f"{slug}: it has to be a table: [toolkits.{slug}]")
    projects = given.get("projects")
    if projects is not None and (not isinstance(projects, list) or not all(isinstance(one, str) for one in projects)):
        raise InvalidRequest(f'{slug}: `projects` has to be a list of names, such as ["default"]')
    options = {
        name: _resolved(f"{slug}: `{name}`", value, environ) if name in _REFERENCES else value
        for name, value in given.items()
        if name != "projects"
    }
    wanted: list[ProjectId | None] = [None] if projects is None else [project_id(one) for one in projects]
    return [added_toolkit(slug, options, project=project, from_file=True) for project in wanted]


def _resolved(where: str, value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict) and set(value) == {"env"} and isinstance(value["env"], str):
        name = value["env"]
        if not environ.get(name):
            raise InvalidRequest(f"{where} is to come from the variable {name}, which the server does not have")
        return environ[name]
    if isinstance(value, dict) and set(value) == {"file"} and isinstance(value["file"], str):
        return _from_file(where, Path(value["file"]))
    if isinstance(value, dict):
        return {name: _resolved(f"{where}: {name}", one, environ) for name, one in value.items()}
    return value


def _from_file(where: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_SECRET_BYTES).decode().strip()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is no text"
        raise InvalidRequest(f"{where} is to come from {path}, which cannot be read: {why}") from problem
