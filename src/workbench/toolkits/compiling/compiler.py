"""compile_openapi: a document of OpenAPI 3.0 or 3.1 in, a toolkit with its tools and operations out.

A document is somebody's word: what of it cannot be used is left out and named, and it is refused only if nothing is
left, or it is no such document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from workbench.errors import InvalidRequest
from workbench.model.toolkit import AuthScheme, Json, Tool, Toolkit
from workbench.toolkits.compiling.document import BrokenReference, Document, entries, table, text
from workbench.toolkits.compiling.naming import Slugs, toolkit_slug, words_of
from workbench.toolkits.compiling.requests import Requests
from workbench.toolkits.compiling.schemas import MOST_NODES, Budget, Schemas
from workbench.toolkits.compiling.security import auth_of, is_open, scopes_of
from workbench.toolkits.operations import CompiledTool, CompiledToolkit, Operation

MOST_TOOLS = 5000
_METHODS = ("get", "put", "post", "delete", "patch", "head")
_MOST_WARNINGS = 100
_MOST_WORDS = 1500
_VARIABLE = re.compile(r"\{([^{}]{1,100})\}")
_DESTROYS = frozenset(
    ("DELETE", "REMOVE", "REVOKE", "ARCHIVE", "PURGE", "DESTROY", "CANCEL", "UNINSTALL", "KICK", "BAN", "CLOSE")
)
_ANY_ANSWER: Json = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is said about a document by who adds it, above what it says of itself."""

    slug: str = ""
    """of the toolkit; from the title if empty"""
    name: str = ""
    description: str = ""
    logo: str = ""
    base_url: str = ""
    """where the service is; from `servers` if empty"""
    hosts: tuple[str, ...] = ()
    """those of the base URL if empty"""
    auth: tuple[AuthScheme, ...] | None = None
    """instead of what the document says"""
    no_auth: bool | None = None


def compile_openapi(root: Mapping[str, Any], wanted: Wanted | None = None) -> CompiledToolkit:
    """All of a document.

    Raises:
        InvalidRequest: it is no document of OpenAPI 3, or has nothing that could be called; the message says why.
    """
    return _Compiler(root, wanted or Wanted()).compiled()


class _Compiler:
    def __init__(self, root: Mapping[str, Any], wanted: Wanted) -> None:
        _check_version(root)
        self._root = root
        self._wanted = wanted
        self._document = Document(root)
        self._schemas = Schemas(self._document)
        self._requests = Requests(self._document, self._schemas)
        self._warnings: list[str] = []
        told, self._kinds, unknown = auth_of(self._document)
        self._ways = () if wanted.no_auth else told if wanted.auth is None else wanted.auth
        self._warnings += unknown
        info = table(root.get("info"))
        self._title = wanted.name or text(info.get("title"), 100)
        self._slug = wanted.slug or toolkit_slug(self._title)
        if not self._slug:
            raise InvalidRequest("the document has no `info.title` to name the toolkit by: give a slug")
        self._said = wanted.description or text(info.get("description"), 500).partition("\n\n")[0]
        self._base = wanted.base_url or self._server(root.get("servers"))
        self._hosts = list(wanted.hosts)

    def compiled(self) -> CompiledToolkit:
        slugs = Slugs(self._slug)
        tools: list[CompiledTool] = []
        for path, shared, method, told in self._operations():
            if len(tools) >= MOST_TOOLS:
                self._warn(f"only the first {MOST_TOOLS:,} operations are taken")
                break
            try:
                tools.append(self._tool(slugs, path, shared, method, told))
            except BrokenReference as problem:
                self._warn(f"{method.upper()} {path[:100]} is left out: {problem}")
        if not tools:
            why = self._warnings[-1] if self._warnings else "`paths` has no operation"
            raise InvalidRequest(f"nothing of the document can be called: {why}")
        return CompiledToolkit(toolkit=self._toolkit(tools), tools=tuple(tools), warnings=tuple(self._warnings))

    def _toolkit(self, tools: list[CompiledTool]) -> Toolkit:
        no_auth = self._wanted.no_auth
        if no_auth is None:
            no_auth = all(one.tool.no_auth for one in tools)
        return Toolkit(
            slug=self._slug,
            name=self._title or self._slug,
            description=self._said,
            logo=self._wanted.logo,
            no_auth=no_auth,
            base_url=self._base,
            hosts=tuple(dict.fromkeys(self._hosts)),
            auth=() if no_auth else self._ways,
        )

    def _warn(self, words: str) -> None:
        if len(self._warnings) < _MOST_WARNINGS:
            self._warnings.append(words)

    def _operations(self) -> Iterator[tuple[str, Json, str, Json]]:
        for path, told in table(self._root.get("paths")).items():
            if not isinstance(path, str) or not path.startswith("/") or len(path) > 1000:
                continue
            try:
                item, _ = self._document.followed(told)
            except BrokenReference as problem:
                self._warn(f"{path[:100]} is left out: {problem}")
                continue
            for method in _METHODS:
                if isinstance(item.get(method), dict):
                    yield path, item, method, item[method]

    def _tool(self, slugs: Slugs, path: str, item: Json, method: str, told: Json) -> CompiledTool:
        base = self._base_of(told, item)
        found = self._requests.arguments(path, item.get("parameters"), told)
        output = self._output(table(told.get("responses")))
        tags = [text(one, 60) for one in entries(told.get("tags"))[:5] if isinstance(one, str)]
        summary, operation_id = text(told.get("summary"), 200), text(told.get("operationId"), 200)
        slug = slugs.slug(summary, operation_id, method, path, tags)
        security = told.get("security", self._root.get("security"))
        tool = Tool(
            slug=slug,
            name=summary or operation_id or f"{method.upper()} {path}",
            description=_described(told, summary, method, path),
            toolkit=self._slug,
            input_schema=found.schema(),
            output_schema=output,
            tags=hints(method, slug, tags),
            scopes=scopes_of(security, self._kinds),
            # Many documents name schemes, and forget to say that they are needed.
            no_auth=is_open(security) or not self._ways,
        )
        operation = Operation(
            method=method.upper(),
            base_url=base,
            path=path,
            parameters=tuple(found.parameters),
            body=found.body,
            idempotency_header=found.idempotency_header,
        )
        return CompiledTool(tool=tool, operation=operation)

    def _base_of(self, told: Json, item: Json) -> str:
        """Where an operation is asked: some have a host of their own."""
        own = "" if self._wanted.base_url else self._server(told.get("servers")) or self._server(item.get("servers"))
        base = own or self._base
        if not base:
            raise BrokenReference("`servers` has no absolute address of http or https: give a base URL")
        host = host_of(base)
        if not self._wanted.hosts:
            self._hosts.append(host)
        elif host not in self._wanted.hosts and not _is_below(host, self._wanted.hosts):
            raise BrokenReference(f"it is at {host[:100]!r}, which is none of the hosts of this toolkit")
        return base

    def _server(self, servers: Any) -> str:
        """The first that is absolute, with the usual values of its variables."""
        for server in entries(servers)[:20]:
            told = table(server)
            variables = table(told.get("variables"))

            def usual(found: re.Match[str], variables: Json = variables) -> str:
                return text(table(variables.get(found[1])).get("default"), 100) or found[0]

            url = _VARIABLE.sub(usual, text(told.get("url"), 1000))
            if host_of(url):
                return url.rstrip("/")
        return ""

    def _output(self, responses: Json) -> Json:
        """What a success gives, as tools tell it: an object."""
        good = sorted(one for one in responses if str(one).startswith("2")) or [
            one for one in ("default",) if one in responses
        ]
        for status in good:
            try:
                response, _ = self._document.followed(responses[status])
            except BrokenReference:
                continue
            for kind, media in table(response.get("content")).items():
                if "json" in str(kind).lower() and isinstance(media, dict):
                    written = self._schemas.written(media.get("schema", {}), "answer", Budget(MOST_NODES // 2))
                    return as_answer(written)
        return dict(_ANY_ANSWER)


def as_answer(schema: Json) -> Json:
    """A schema of what a service sends, as one of what tools give: an object always."""
    kind = schema.get("type")
    if kind == "object":
        return {"properties": {}, **schema}
    if kind == "array":
        return {"type": "object", "properties": {"items": schema}}
    if kind in ("string", "number", "integer", "boolean"):
        return {"type": "object", "properties": {"value": schema}}
    return {**dict(_ANY_ANSWER), **({"description": schema["description"]} if "description" in schema else {})}


def hints(method: str, slug: str, tags: list[str]) -> tuple[str, ...]:
    """What is known of an operation by its method, and by its name where that says more; then the document's tags."""
    found = {
        "get": ["readOnlyHint", "idempotentHint"],
        "head": ["readOnlyHint", "idempotentHint"],
        "put": ["destructiveHint", "idempotentHint"],
        "patch": ["destructiveHint"],
        "delete": ["destructiveHint", "idempotentHint"],
    }.get(method.lower(), [])
    if method.lower() == "post" and _DESTROYS & set(slug.split("_")):
        found = ["destructiveHint"]
    known = [" ".join(words_of(one)).lower() for one in tags]
    return tuple(dict.fromkeys([*found, "openWorldHint", *filter(None, known)]))


def host_of(url: str) -> str:
    """As `Toolkit.hosts` has it: with its port if that is not the usual; what an account fills in is `*`."""
    filled = _VARIABLE.sub("x-filled-x", url)
    try:
        parts = httpx2.URL(filled)
    except (httpx2.InvalidURL, ValueError):
        return ""
    if parts.scheme not in ("http", "https") or not parts.host or parts.userinfo:
        return ""
    host = parts.host.lower()
    if "x-filled-x" in host:
        rest = host.rpartition("x-filled-x")[2]
        # One name of a top level domain's is everybody's.
        if not rest.startswith(".") or rest.count(".") < 2:
            return ""
        host = f"*{rest}"
    elif ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port}" if parts.port is not None else host


def _is_below(host: str, hosts: tuple[str, ...]) -> bool:
    return any(one.startswith("*.") and host.endswith(one[1:]) for one in hosts)


def _described(told: Json, summary: str, method: str, path: str) -> str:
    said = text(told.get("description"), _MOST_WORDS)
    words = said if said.startswith(summary) else f"{summary}. {said}" if said else summary
    old = " Deprecated." if told.get("deprecated") is True else ""
    return (words or f"{method.upper()} {path}") + old


def _check_version(root: Mapping[str, Any]) -> None:
    told = root.get("openapi")
    if "swagger" in root:
        raise InvalidRequest("the document is of Swagger 2: turn it into OpenAPI 3 first, as swagger2openapi does")
    if not isinstance(told, str) or not re.fullmatch(r"3\.[012](\.\d+)?(-\w+)?", told):
        raise InvalidRequest(
            "the document is neither OpenAPI 3 nor a discovery document of Google's: "
            + ("it has no `openapi`" if told is None else f"its `openapi` is {str(told)[:40]!r}")
        )
    if not isinstance(root.get("paths"), dict):
        raise InvalidRequest("the document has no `paths`, so it describes nothing that could be called")
