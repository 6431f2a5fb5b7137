"""AddedToolkit: one that whoever runs a workbench added to it: where its tools come from, and for which project.

What it takes is one object, the same in a settings file, by REST and from commands; it is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.connection import Secret
from workbench.model.ids import ProjectId
from workbench.model.toolkit import META_TOOLKIT, Json

_SLUG = re.compile(r"[a-z0-9][a-z0-9_]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_RESERVED = (META_TOOLKIT, "composio_search", "local")
_MOST_TEXT, _MOST_SECRET, _MOST_WORDS = 4000, 16_000, 200


class AddedKind(StrEnum):
    """Where its tools come from."""

    PROGRAM = "command"
    """an MCP server that is run here"""
    SERVER = "url"
    """an MCP server that is asked by HTTP"""
    FUNCTIONS = "functions"
    """a Python file here"""
    COMPOSIO = "composio"
    """Composio, with a key of its own"""
    OPENAPI = "openapi"
    """a service, by its description"""


LOCAL = frozenset((AddedKind.PROGRAM, AddedKind.FUNCTIONS))
"""those that run what lies on this machine"""
# What each of them takes besides the option that it is named by, and of which form.
_COMMON = {"name": "text", "description": "text"}
_TAKES: Mapping[AddedKind, Mapping[str, str]] = {
    AddedKind.PROGRAM: {
        "command": "words", "env": "secrets", "folder": "path", "timeout_s": "seconds", "memory_mib": "memory"
    },
    AddedKind.SERVER: {"url": "text", "headers": "headers", "bearer": "secret", "timeout_s": "seconds"},
    AddedKind.FUNCTIONS: {
        "functions": "path", "env": "secrets", "timeout_s": "seconds", "memory_mib": "memory", "workers": "workers"
    },
    AddedKind.COMPOSIO: {"composio": "slugs", "key": "secret", "address": "text", "timeout_s": "seconds"},
    AddedKind.OPENAPI: {"openapi": "text", "base_url": "text", "timeout_s": "seconds"},
}  # fmt: skip
_NUMBERS = {"seconds": (1, 3600), "memory": (64, 1_048_576), "workers": (1, 64)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedToolkit:
    """One of them."""

    slug: str
    kind: AddedKind
    project: ProjectId | None
    """None for all"""
    options: Json
    """what it was added with, without what is secret"""
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    """by `bearer`, `key`, `env.NAME`, `headers.NAME`"""
    added_at: str = ""
    from_file: bool = False
    """it is in the settings file, and not among the records"""

    @property
    def is_local(self) -> bool:
        """Whether it runs or reads what lies on this machine."""
        return self.kind in LOCAL or (
            self.kind is AddedKind.OPENAPI and not str(self.options["openapi"]).startswith(("http://", "https://"))
        )

    def group(self, name: str) -> dict[str, Secret]:
        """The secrets of `env` or `headers`."""
        before = f"{name}."
        return {key.removeprefix(before): one for key, one in self.secrets.items() if key.startswith(before)}


def checked_slug(slug: str) -> str:
    """`slug`, if a toolkit can be called so.

    Raises:
        InvalidRequest: it cannot.
    """
    if not _SLUG.fullmatch(slug) or slug in _RESERVED:
        why = "is kept for tools of the workbench" if slug in _RESERVED else "is no name of a toolkit"
        raise InvalidRequest(
            f"{slug[:60]!r} {why}; take small letters, digits and _, at most 40, such as `my_tools`", {"toolkit": slug}
        )
    return slug


def added_toolkit(
    slug: str, given: Mapping[str, Any], *, project: ProjectId | None, added_at: str = "", from_file: bool = False
) -> AddedToolkit:
    """What was asked for, checked.

    Raises:
        InvalidRequest: it is not what a toolkit is added with; the message names the option.
    """
    checked_slug(slug)
    kind = _kind(slug, given)
    takes = {**_TAKES[kind], **_COMMON}
    options: Json = {}
    secrets: dict[str, Secret] = {}
    for name, value in given.items():
        if name not in takes:
            raise InvalidRequest(
                f"{slug}: a toolkit with `{kind}` takes no `{name[:60]}`; it takes {', '.join(takes)}", {"option": name}
            )
        _take(f"{slug}: `{name}`", name, takes[name], value, options, secrets)
    if kind is AddedKind.COMPOSIO and "key" not in secrets:
        raise InvalidRequest(f"{slug}: Composio is asked with a key of yours; give it as `key`", {"option": "key"})
    return AddedToolkit(
        slug=slug,
        kind=kind,
        project=project,
        options=options,
        secrets=secrets,
        added_at=added_at,
        from_file=from_file,
    )


def _kind(slug: str, given: Mapping[str, Any]) -> AddedKind:
    found = [kind for kind in AddedKind if kind in given]
    if len(found) != 1:
        have = f"has {' and '.join(f'`{one}`' for one in found)}" if found else "has none of them"
        raise InvalidRequest(
            f"{slug}: a toolkit comes from one of {', '.join(f'`{one}`' for one in AddedKind)}, and this {have}",
            {"toolkit": slug},
        )
    return found[0]


def _take(where: str, name: str, form: str, value: Any, options: Json, secrets: dict[str, Secret]) -> None:
    match form:
        case "secret":
            secrets[name] = _secret(where, value)
        case "secrets" | "headers":
            if not isinstance(value, Mapping):
                raise InvalidRequest(f"{where} has to be an object of names and values", {"option": name})
            rule = _VARIABLE if form == "secrets" else _HEADER
            for key, one in value.items():
                if not rule.fullmatch(str(key)):
                    what = "variable" if form == "secrets" else "header"
                    raise InvalidRequest(f"{where} has {str(key)[:60]!r}, which is no name of a {what}")
                secrets[f"{name}.{key}"] = _secret(f"{where}: {key}", one)
        case "words" | "slugs":
            options[name] = _words(where, form, value)
        case "text" | "path":
            options[name] = _text(where, form, value)
        case _:
            options[name] = _number(where, value, *_NUMBERS[form])


def _secret(where: str, value: Any) -> Secret:
    # Never quoted: it is one.
    if not isinstance(value, str) or not value or len(value) > _MOST_SECRET or not value.isprintable():
        raise InvalidRequest(f"{where} has to be one line of text that is not empty")
    return Secret(value)


def _words(where: str, form: str, value: Any) -> list[str]:
    good = isinstance(value, list) and 1 <= len(value) <= _MOST_WORDS
    if not good or not all(isinstance(one, str) and one and "\0" not in one for one in value):
        raise InvalidRequest(f"{where} has to be a list of texts, such as {_EXAMPLES[form]}")
    if form == "slugs" and (wrong := [one for one in value if not re.fullmatch(r"[a-z0-9_-]{1,60}", one)]):
        raise InvalidRequest(f"{where} has {wrong[0][:60]!r}, which is no name of a toolkit: {_EXAMPLES[form]}")
    return list(value)


_EXAMPLES = {"words": '["npx", "-y", "some-server"]', "slugs": '["gmail", "slack"]'}


def _text(where: str, form: str, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > _MOST_TEXT or "\0" in value:
        raise InvalidRequest(f"{where} has to be a text of 1 to {_MOST_TEXT} characters")
    if form == "path" and not value.startswith("/"):
        raise InvalidRequest(f"{where} has to be an absolute path, not {value[:100]!r}")
    return value


def _number(where: str, value: Any, least: int, most: int) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidRequest(f"{where} has to be a number from {least:,} to {most:,}")
    return value
