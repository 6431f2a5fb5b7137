"""The shipped catalogue as one file: a zip archive of lines of JSON, of which only what is asked for is read.

`index.json` has everything that lists and searches show. Of each toolkit there are two more members: `<slug>.tools`, a
line for each tool with what it takes, answers and sends; and `<slug>.shared`, parts that several of those have. A part
that is `{"$": 7}` is line 7 of the shared ones. The same tools give the same bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, Json, OAuthEndpoints, Tool, Toolkit
from workbench.toolkits.operations import CompiledToolkit, Operation, packed, unpacked
from workbench.toolkits.shipped.adapted.alike import ALIKE

# A part is shared if it is at least as long as this; shorter ones cost more than they save.
_LEAST_SHARED = 100
# The archive has no times of its own, so that the same tools are the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)
# Toolkits whose lines are kept in memory, and tools whose schemas are.
_MOST_TOOLKITS, _MOST_TOOLS = 8, 256


def pack(toolkits: Sequence[CompiledToolkit]) -> bytes:
    """The archive of these."""
    index: list[Json] = []
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for one in sorted(toolkits, key=lambda one: one.toolkit.slug):
            lines, shared = _shared_lines(
                [
                    {"i": made.tool.input_schema, "o": made.tool.output_schema, "c": packed(made.operation)}
                    for made in one.tools
                ]
            )
            _put(archive, f"{one.toolkit.slug}.tools", lines)
            _put(archive, f"{one.toolkit.slug}.shared", shared)
            index.append(_entry(one))
        _put(archive, "index.json", [_text({"toolkits": index})])
    return written.getvalue()


def _put(archive: zipfile.ZipFile, name: str, lines: Sequence[str]) -> None:
    info = zipfile.ZipInfo(name, _WHEN)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, "\n".join(lines), compresslevel=9)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _entry(one: CompiledToolkit) -> Json:
    """What the index says of a toolkit. Tags and scopes of tools are numbers of the toolkit's."""
    tags = sorted({tag for made in one.tools for tag in made.tool.tags})
    scopes = sorted({scope for made in one.tools for scope in made.tool.scopes})
    toolkit = {name: value for name, value in dataclasses.asdict(one.toolkit).items() if value}
    return {
        "toolkit": toolkit,
        "version": one.tools[0].tool.version if one.tools else "",
        "tags": tags,
        "scopes": scopes,
        "tools": [
            [
                made.tool.slug,
                made.tool.name,
                made.tool.description,
                [tags.index(tag) for tag in made.tool.tags],
                [scopes.index(scope) for scope in made.tool.scopes],
                int(made.tool.no_auth),
            ]
            for made in one.tools
        ],
    }


def _shared_lines(values: Sequence[Json]) -> tuple[list[str], list[str]]:
    """Each value as a line, and the parts that they share. A shared part may itself have shared parts."""
    counts: Counter[str] = Counter()
    for value in values:
        for one in value.values():
            _count(one, counts)
    numbers: dict[str, int] = {}
    shared: list[str] = []

    def lean(value: Any) -> Any:
        if isinstance(value, list):
            return [lean(one) for one in value]
        if not isinstance(value, dict):
            return value
        whole = _text(value)
        if counts[whole] < 2 or len(whole) < _LEAST_SHARED:
            return {name: lean(one) for name, one in value.items()}
        if whole not in numbers:
            inner = _text({name: lean(one) for name, one in value.items()})
            numbers[whole] = len(shared)
            shared.append(inner)
        return {"$": numbers[whole]}

    return [_text({name: lean(one) for name, one in value.items()}) for value in values], shared


def _count(value: Any, counts: Counter[str]) -> None:
    if isinstance(value, list):
        for one in value:
            _count(one, counts)
    elif isinstance(value, dict):
        whole = _text(value)
        counts[whole] += 1
        # What is in a part that was counted is shared with it.
        if counts[whole] == 1:
            for one in value.values():
                _count(one, counts)


class ShippedTool(Tool):
    """One whose schemas are read when somebody asks for them. A changed copy has its own."""

    __slots__ = ("_schemas",)
    _schemas: Callable[[], tuple[Json, Json]]

    def __init__(self, schemas: Callable[[], tuple[Json, Json]] | None = None, **told: Any) -> None:
        if schemas is None:
            own = (told.pop("input_schema"), told.pop("output_schema"))
            schemas = lambda: own  # noqa: E731 - one line
        put = object.__setattr__
        put(self, "_schemas", schemas)
        for name, value in told.items():
            put(self, name, value)

    @property
    def input_schema(self) -> Json:
        """What it takes."""
        return self._schemas()[0]

    @property
    def output_schema(self) -> Json:
        """What it answers."""
        return self._schemas()[1]


class Packed:
    """An archive that was looked into. It may be asked from several threads; nothing is kept open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            index = json.loads(archive.read("index.json"))["toolkits"]
        self._of = functools.lru_cache(_MOST_TOOLKITS)(self._lines)
        self.schemas = functools.lru_cache(_MOST_TOOLS)(self._schemas)
        self.toolkits: tuple[Toolkit, ...] = tuple(_toolkit(entry["toolkit"]) for entry in index)
        self._places: dict[str, tuple[str, int]] = {}
        tools: list[Tool] = []
        for entry in index:
            slug = entry["toolkit"]["slug"]
            for at, one in enumerate(entry["tools"]):
                tools.append(self._tool(slug, at, one, entry))
                self._places[one[0]] = (slug, at)
        self.tools: tuple[Tool, ...] = tuple(tools)

    def operation(self, slug: str) -> Operation:
        """How a tool is carried out.

        Raises:
            KeyError: there is none of that name.
        """
        toolkit, at = self._places[slug]
        lines, shared = self._of(toolkit)
        return unpacked(_whole(json.loads(lines[at])["c"], shared))

    def _schemas(self, toolkit: str, at: int) -> tuple[Json, Json]:
        """What a tool takes, and what it answers."""
        lines, shared = self._of(toolkit)
        line = json.loads(lines[at])
        return _whole(line["i"], shared), _whole(line["o"], shared)

    def _tool(self, toolkit: str, at: int, one: list[Any], entry: Json) -> Tool:
        slug, name, description, tags, scopes, no_auth = one
        return ShippedTool(
            functools.partial(self.schemas, toolkit, at),
            slug=slug,
            name=name,
            description=description,
            toolkit=toolkit,
            tags=tuple(entry["tags"][number] for number in tags),
            scopes=tuple(entry["scopes"][number] for number in scopes),
            no_auth=bool(no_auth),
            version=entry["version"],
            acts_as=ALIKE.get(slug, ()),
        )

    def _lines(self, toolkit: str) -> tuple[list[bytes], list[bytes]]:
        with zipfile.ZipFile(self._path) as archive:
            tools, shared = archive.read(f"{toolkit}.tools"), archive.read(f"{toolkit}.shared")
        return tools.split(b"\n"), shared.split(b"\n")


def _whole(value: Any, shared: Sequence[bytes]) -> Any:
    if isinstance(value, list):
        return [_whole(one, shared) for one in value]
    if not isinstance(value, dict):
        return value
    number = value.get("$")
    if isinstance(number, int) and len(value) == 1:
        return _whole(json.loads(shared[number]), shared)
    return {name: _whole(one, shared) for name, one in value.items()}


def _toolkit(data: Mapping[str, Any]) -> Toolkit:
    auth = tuple(_scheme(one) for one in data.get("auth", ()))
    return Toolkit(**{**data, "hosts": tuple(data.get("hosts", ())), "auth": auth})


def _scheme(data: Mapping[str, Any]) -> AuthScheme:
    oauth = data.get("oauth")
    return AuthScheme(
        **{
            **data,
            "kind": AuthKind(data["kind"]),
            "oauth": None if oauth is None else OAuthEndpoints(**{**oauth, "scopes": tuple(oauth["scopes"])}),
            "fields": tuple(AuthField(**one) for one in data["fields"]),
        }
    )
