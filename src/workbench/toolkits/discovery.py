"""Discovery documents, in which Google describes its services, compiled to tools. See `operations` for what comes out.

Documents may come from anybody: what they claim is bounded here, and never followed to another address.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, Json, OAuthEndpoints, Tool, Toolkit
from workbench.toolkits.building import FILE_SCHEMA
from workbench.toolkits.compiling.compiler import Wanted, hints, host_of
from workbench.toolkits.compiling.naming import parts_of
from workbench.toolkits.operations import (
    Body,
    BodyField,
    BodyKind,
    CompiledTool,
    CompiledToolkit,
    Media,
    Operation,
    Parameter,
    Style,
)

FILE_ARGUMENT = "file_to_upload"
"""of calls that take the contents of a file"""
# A description longer than this is cut; a schema of more characters is told less deeply, and free below that.
_MOST_TEXT, _MOST_SCHEMA, _DEEPEST = 900, 24_000, 6
_MOST_TOOLS, _MOST_RESOURCES, _MOST_SLUG, _MOST_SCOPES = 2_000, 16, 60, 30
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_HOLE = re.compile(r"\{\+?([A-Za-z0-9_.]+)\}")
_KINDS = {"string", "integer", "number", "boolean", "object", "array"}
# Methods that only look, though they are sent as if they changed something.
_LOOKING = frozenset({"QUERY", "SEARCH", "GET", "LIST", "COUNT", "INSPECT", "DETECT", "LOOKUP", "COMPUTE"})
_FIELDS: Json = {
    "type": "string",
    "description": "Which fields to answer with, as a mask: `files(id,name),nextPageToken`. All usual ones without.",
}


def compile_discovery(document: Json, *, slug: str, name: str = "") -> CompiledToolkit:
    """Everything that a document describes, as the toolkit `slug`. What cannot be made a tool of is in the warnings.

    Raises:
        InvalidRequest: it is not a discovery document, or not a sound one; the message says where.
    """
    if not isinstance(document, dict) or not isinstance(document.get("rootUrl"), str):
        raise InvalidRequest("this is not a discovery document: it has no rootUrl")
    root = urllib.parse.urlsplit(document["rootUrl"])
    if root.scheme != "https" or not root.hostname or root.username:
        raise InvalidRequest(
            f"rootUrl of the discovery document has to be an https address, not {root.geturl()[:100]!r}"
        )
    reader = _Reader(document, slug)
    tools, warnings = reader.read()
    toolkit = Toolkit(
        slug=slug,
        name=name or str(document.get("title", slug)),
        description=_short(document.get("description", "")),
        base_url=document["rootUrl"].rstrip("/"),
        hosts=(root.netloc,),
        auth=google_auth(),
    )
    return CompiledToolkit(toolkit=toolkit, tools=tools, warnings=warnings)


def is_discovery(document: Json) -> bool:
    """Whether it is one, by what all of them say of themselves."""
    return document.get("kind") == "discovery#restDescription" or "discoveryVersion" in document


def compile_added(document: Json, wanted: Wanted) -> CompiledToolkit:
    """One that somebody added: from anybody, and perhaps for a service elsewhere.

    Raises:
        InvalidRequest: as `compile_discovery`, or the address cannot be used.
    """
    made = compile_discovery(document, slug=wanted.slug, name=wanted.name)
    toolkit, tools = made.toolkit, made.tools
    if wanted.base_url:
        base, host = wanted.base_url.rstrip("/"), host_of(wanted.base_url)
        if not host:
            raise InvalidRequest(f"the address of the service cannot be used: {wanted.base_url[:100]!r}")
        toolkit = replace(toolkit, base_url=base, hosts=(host,))
        tools = tuple(replace(one, operation=replace(one.operation, base_url=base)) for one in tools)
    # BARRIER: a document of anybody's would have people log in at Google, and be sent what they got there; held by
    # tests/unit/toolkits/test_discovery.py.
    if toolkit.hosts[0].endswith(".googleapis.com"):
        toolkit = replace(toolkit, auth=google_auth(*_scopes(document)))
    else:
        toolkit = replace(toolkit, auth=google_auth()[1:])
    return replace(made, toolkit=replace(toolkit, description=wanted.description or toolkit.description), tools=tools)


def _scopes(document: Json) -> list[str]:
    """What the document says can be asked for; a client with fewer asks for its own."""
    found = document.get("auth")
    for name in ("oauth2", "scopes"):
        found = found.get(name) if isinstance(found, dict) else None
    return [str(one) for one in found][:_MOST_SCOPES] if isinstance(found, dict) else []


def google_auth(*scopes: str) -> tuple[AuthScheme, ...]:
    """The ways in that all of Google's services have. A code to type in elsewhere is none of them: Google gives one for
    a few scopes only, and refuses it for those that these services need.
    """
    endpoints = OAuthEndpoints(
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106 - an address
        revoke_url="https://oauth2.googleapis.com/revoke",
        scopes=scopes,
        # Without these there is no refresh token.
        extra={"access_type": "offline", "prompt": "consent"},
    )
    token = AuthField(name="token", label="Access token", description="One that was obtained elsewhere.")
    return (
        AuthScheme(kind=AuthKind.OAUTH2, prefix="Bearer ", oauth=endpoints),
        AuthScheme(kind=AuthKind.BEARER_TOKEN, prefix="Bearer ", fields=(token,)),
    )


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a method takes, as it is gathered."""

    properties: dict[str, Json]
    required: list[str]
    parameters: list[Parameter]


class _Reader:
    """One document."""

    def __init__(self, document: Json, slug: str) -> None:
        self._document = document
        self._slug = slug
        self._root = str(document["rootUrl"]).rstrip("/")
        self._service = "/" + str(document.get("servicePath", "")).lstrip("/")
        self._schemas = document.get("schemas") or {}
        self._shared = document.get("parameters") or {}

    def read(self) -> tuple[tuple[CompiledTool, ...], tuple[str, ...]]:
        tools: dict[str, CompiledTool] = {}
        warnings: list[str] = []
        for parents, name, method in _methods(self._document, ()):
            if len(tools) >= _MOST_TOOLS:
                warnings.append(f"only the first {_MOST_TOOLS} methods were taken")
                break
            try:
                one = self._tool(parents, name, method)
            except (InvalidRequest, KeyError, TypeError, ValueError, AttributeError) as problem:
                warnings.append(f"{'.'.join((*parents, name))[:200]} was left out: {str(problem)[:200]}")
                continue
            slug, number = one.tool.slug, 2
            while slug in tools:
                slug, number = f"{one.tool.slug[: _MOST_SLUG - 3]}_{number}", number + 1
            tools[slug] = replace(one, tool=replace(one.tool, slug=slug))
        if not tools:
            raise InvalidRequest(f"the discovery document describes no method that could be a tool: {warnings[:3]}")
        return tuple(tools.values()), tuple(warnings)

    def _tool(self, parents: tuple[str, ...], name: str, method: Json) -> CompiledTool:
        verb = method["httpMethod"]
        if verb not in _METHODS:
            raise InvalidRequest(f"the method {verb!r} is none that a tool could have")
        taken = _Taken({}, [], [])
        path = self._path(method, taken)
        body, media = self._sent(method, taken)
        if media is None and body is not None and body.kind is BodyKind.RAW:
            path = _upload_path(method)
            taken.parameters.append(Parameter(name="uploadType", place="query", fixed="media"))
        slug = self._slugged(parents, name)
        tool = Tool(
            slug=slug,
            name=_named(parents, name),
            description=_short(f"{_named(parents, name)}. {method.get('description') or ''}"),
            toolkit=self._slug,
            input_schema={"type": "object", "properties": taken.properties, "required": sorted(taken.required)},
            output_schema=self._answer(method),
            tags=_hints(verb, slug, parts_of(name)),
            scopes=tuple(str(one) for one in method.get("scopes", ())),
            version=str(self._document.get("revision", "") or "0") + "_00",
        )
        operation = Operation(
            method=verb, base_url=self._root, path=path, parameters=tuple(taken.parameters), body=body, media=media
        )
        return CompiledTool(tool=tool, operation=operation)

    def _slugged(self, parents: tuple[str, ...], name: str) -> str:
        """The end says what it does: of one that is too long the words after the toolkit's are left out."""
        words = [word for part in (*parents, name) for word in parts_of(part)]
        while len(found := "_".join([self._slug.upper(), *words])) > _MOST_SLUG and len(words) > 1:
            words = words[1:]
        return found[:_MOST_SLUG]

    def _path(self, method: Json, taken: _Taken) -> str:
        path = self._service + str(method["path"]).lstrip("/")
        described = method.get("parameters") or {}
        for hole in re.finditer(r"\{(\+?)([A-Za-z0-9_.]+)\}", path):
            style: Style = "reserved" if hole[1] else "simple"
            one = described[hole[2]]
            taken.parameters.append(Parameter(name=hole[2], place="path", style=style, required=True))
            taken.properties[hole[2]] = _scalar(one)
            if "default" not in taken.properties[hole[2]]:
                taken.required.append(hole[2])
        for name, one in described.items():
            if one.get("location") == "query":
                repeated = bool(one.get("repeated"))
                taken.parameters.append(
                    Parameter(
                        name=name, place="query", style="form", explode=repeated, required=bool(one.get("required"))
                    )
                )
                taken.properties[name] = {"type": "array", "items": _scalar(one)} if repeated else _scalar(one)
                if repeated and one.get("description"):
                    taken.properties[name]["description"] = taken.properties[name]["items"].pop("description")
                if one.get("required"):
                    taken.required.append(name)
        if method.get("supportsMediaDownload") and "alt" not in described:
            words = "`media` for the content itself, instead of what is known about it."
            taken.properties["alt"] = {"type": "string", "enum": ["json", "media"], "description": words}
            taken.parameters.append(Parameter(name="alt", place="query", style="form"))
        if "fields" in self._shared and "fields" not in taken.properties:
            taken.properties["fields"] = _FIELDS
            taken.parameters.append(Parameter(name="fields", place="query", style="form"))
        return _HOLE.sub(r"{\1}", path)

    def _sent(self, method: Json, taken: _Taken) -> tuple[Body | None, Media | None]:
        uploads = bool(method.get("mediaUpload"))
        if uploads:
            taken.properties[FILE_ARGUMENT] = dict(FILE_SCHEMA)
        request = method.get("request")
        if request is None:
            if not uploads:
                return None, None
            taken.required.append(FILE_ARGUMENT)
            return Body(kind=BodyKind.RAW, whole=FILE_ARGUMENT, is_file=True, required=True), None
        schema = self._flat(request, str(method.get("id", "")))
        fields = []
        for name, one in schema.get("properties", {}).items():
            argument = f"body_{name}" if name in taken.properties else name
            taken.properties[argument] = one
            fields.append(BodyField(name=name, argument="" if argument == name else argument))
            if name in schema.get("required", ()):
                taken.required.append(argument)
        body = Body(kind=BodyKind.JSON, fields=tuple(fields))
        if not fields:
            taken.properties["body"] = {"type": "object", "description": "The whole body."}
            body = Body(kind=BodyKind.JSON, whole="body")
        return body, Media(path=_upload_path(method), argument=FILE_ARGUMENT) if uploads else None

    def _answer(self, method: Json) -> Json:
        return self._flat(method.get("response") or {"type": "object"}, "", answering=True)

    def _flat(self, schema: Json, method: str, *, answering: bool = False) -> Json:
        """Without references; as deep as it stays short."""
        for deepest in range(_DEEPEST, 0, -1):
            found = self._schema(schema, deepest, method, answering)
            if len(json.dumps(found)) <= _MOST_SCHEMA:
                break
        return found

    def _schema(self, schema: Json, left: int, method: str, answering: bool) -> Json:
        if "$ref" in schema:
            described = self._schemas.get(schema["$ref"])
            if not isinstance(described, dict):
                raise InvalidRequest(f"it refers to the schema {str(schema['$ref'])[:100]!r}, which is not there")
            words = schema.get("description") or described.get("description")
            schema = {**described, **({"description": words} if words else {})}
        found = _plain(schema)
        kind = found.get("type")
        if left <= 0 and kind in {"object", "array"}:
            return {"type": kind, **_described(schema)}
        if kind == "array":
            found["items"] = self._schema(schema.get("items") or {}, left, method, answering)
        if kind == "object":
            self._object(schema, found, left, method, answering)
        return found

    def _object(self, schema: Json, found: Json, left: int, method: str, answering: bool) -> None:
        properties = schema.get("properties") or {}
        kept = {name: one for name, one in properties.items() if answering or not _is_told_only(one)}
        if kept:
            found["properties"] = {name: self._schema(one, left - 1, method, answering) for name, one in kept.items()}
            wanted = [
                name
                for name, one in kept.items()
                if method and method in (one.get("annotations") or {}).get("required", ())
            ]
            if wanted:
                found["required"] = wanted
        if isinstance(schema.get("additionalProperties"), dict):
            found["additionalProperties"] = self._schema(schema["additionalProperties"], left - 1, method, answering)


def _methods(resource: Mapping[str, Any], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, Json]]:
    if len(parents) > _MOST_RESOURCES:
        return
    for name, method in (resource.get("methods") or {}).items():
        yield parents, name, method
    for name, inner in (resource.get("resources") or {}).items():
        yield from _methods(inner, (*parents, name))


def _is_told_only(schema: Json) -> bool:
    """What the service fills in itself; older documents say so in words."""
    words = str(schema.get("description", ""))
    return bool(schema.get("readOnly")) or words.startswith(("Output only", "[Read-only]", "Read-only"))


def _upload_path(method: Json) -> str:
    return str(method["mediaUpload"]["protocols"]["simple"]["path"])


def _plain(schema: Json) -> Json:
    """Of one schema: what JSON Schema has as well."""
    kind = schema.get("type")
    found: Json = {"type": kind} if kind in _KINDS else {}
    found.update(_described(schema))
    if isinstance(schema.get("enum"), list):
        found["enum"] = [str(one) for one in schema["enum"]]
    if kind == "string" and schema.get("format") in {"byte", "date", "date-time"}:
        found["format"] = schema["format"]
    for bound in ("minimum", "maximum"):
        if kind in {"integer", "number"} and bound in schema:
            found[bound] = int(schema[bound]) if kind == "integer" else float(schema[bound])
    if "default" in schema:
        usual = _value(kind, schema["default"])
        if usual is not None:
            found["default"] = usual
    return found


def _scalar(schema: Json) -> Json:
    found = _plain(schema)
    if found.get("type") in {"object", "array"}:
        raise InvalidRequest("a parameter that is no single value")
    return found


def _value(kind: Any, text: Any) -> Any:
    """Usual values are told as texts, whatever they are."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(str(text).lower())
    if kind in {"integer", "number"}:
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return None
    return str(text) if kind == "string" and text != "" else None


def _described(schema: Json) -> Json:
    words = _short(schema.get("description", ""))
    return {"description": words} if words else {}


def _short(text: Any) -> str:
    found = " ".join(str(text or "").split())
    return found if len(found) <= _MOST_TEXT else found[: _MOST_TEXT - 1].rstrip() + "…"


def _named(parents: tuple[str, ...], name: str) -> str:
    of = parts_of(parents[-1]) if parents else []
    return " ".join([*parts_of(name), *of]).capitalize()


def _hints(verb: str, slug: str, words: list[str]) -> tuple[str, ...]:
    if verb == "POST" and words and (words[0] in _LOOKING or words[-1] in _LOOKING):
        return hints("get", slug, [])
    return hints(verb, slug, [])
