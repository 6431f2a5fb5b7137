"""Docs for people, made of the OpenAPI document: one plain page, without scripts, fonts or anything from elsewhere."""

from __future__ import annotations

import html
import json
from typing import Any

_METHODS = ("get", "post", "patch", "put", "delete")
_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--mark:#0a7}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem}
h2{border-bottom:1px solid var(--line);margin-top:2.5rem}
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:.5rem .8rem}
summary{cursor:pointer}
code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:var(--soft);border-radius:6px;overflow:auto;padding:.6rem}
.method{color:var(--mark);display:inline-block;font-weight:600;width:4.2rem}
table{border-collapse:collapse;width:100%}
td,th{border-top:1px solid var(--line);padding:.25rem .5rem;text-align:left;vertical-align:top}
nav a{margin-right:1rem}
"""
# BARRIER: nothing on this page may run or be fetched; held by tests/server/test_documents.py.
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(document: dict[str, Any]) -> str:
    """The page."""
    schemas = document["components"]["schemas"]
    title = html.escape(document["info"]["title"])
    tags = document["tags"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title} {html.escape(document['info']['version'])}</h1>",
        _paragraphs(document["info"]["description"]),
        f"<p>Server: <code>{html.escape(document['servers'][0]['url'])}</code>. ",
        "The same for programs: <a href='/openapi.json'>/openapi.json</a>.</p><nav>",
        *(f"<a href='#{tag['name']}'>{tag['name']}</a>" for tag in tags),
        "<a href='#shapes'>shapes</a></nav>",
    ]
    for tag in tags:
        parts.append(f"<h2 id='{tag['name']}'>{tag['name']}</h2><p>{_text(tag['description'])}</p>")
        parts += [_operation(*one) for one in _operations(document) if tag["name"] in one[2]["tags"]]
    parts.append("<h2 id=shapes>shapes</h2>")
    parts += [_shape(name, schemas[name]) for name in sorted(schemas)]
    return "".join(parts)


def _operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    ]


def _operation(method: str, path: str, told: dict[str, Any]) -> str:
    parts = [
        f"<details id='{told['operationId']}'><summary><span class=method>{method.upper()}</span> ",
        f"<code>{html.escape(path)}</code> {_text(told['summary'])}</summary>",
        _paragraphs(told.get("description", "")),
    ]
    if parameters := told.get("parameters"):
        rows = [
            (one["name"], one["in"], _kind(one["schema"]), one.get("description", ""), one.get("required", False))
            for one in parameters
        ]
        parts.append(_table(rows, "parameter"))
    if body := told.get("requestBody"):
        parts.append(f"<p>Body: {_kind(body['content']['application/json']['schema'])}</p>")
    parts.append("<table><tr><th>status<th>answer<th>")
    for status, response in told["responses"].items():
        kinds = [_answer(mime, one) for mime, one in response.get("content", {}).items()]
        parts.append(f"<tr><td>{status}<td>{'<br>'.join(kinds)}<td>{_text(response.get('description', ''))}")
    parts.append("</table></details>")
    return "".join(parts)


def _answer(mime: str, content: dict[str, Any]) -> str:
    return _kind(content["schema"]) if mime == "application/json" else f"<code>{html.escape(mime)}</code>"


def _shape(name: str, schema: dict[str, Any]) -> str:
    parts = [
        f"<details id='shape-{name}'><summary><code>{name}</code></summary>{_paragraphs(schema.get('description', ''))}"
    ]
    required = schema.get("required", ())
    rows = [
        (field, "", _kind(one), one.get("description", ""), field in required)
        for field, one in schema.get("properties", {}).items()
    ]
    parts.append(
        _table(rows, "field") if rows else f"<pre>{html.escape(json.dumps(schema.get('enum', ''), indent=1))}</pre>"
    )
    return "".join([*parts, "</details>"])


def _table(rows: list[tuple[str, str, str, str, bool]], what: str) -> str:
    parts = [f"<table><tr><th>{what}<th>type<th>"]
    for name, place, kind, words, required in rows:
        where = f" <small>{html.escape(place)}</small>" if place else ""
        must = " <small>required</small>" if required else ""
        parts.append(f"<tr><td><code>{html.escape(name)}</code>{where}{must}<td>{kind}<td>{_text(words)}")
    return "".join([*parts, "</table>"])


def _kind(schema: dict[str, Any]) -> str:
    """A type in a word or two, with a link to its shape."""
    if ref := schema.get("$ref"):
        name = html.escape(ref.rpartition("/")[2])
        return f"<a href='#shape-{name}'>{name}</a>"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_kind(one) for one in choices)
    if values := schema.get("enum"):
        return " | ".join(f"<code>{html.escape(json.dumps(one))}</code>" for one in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return html.escape(str(schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "maxLength": "at most"}
    told = [f"{word} {schema[name]:,}" for name, word in words.items() if name in schema]
    default = schema.get("default")
    if default not in (None, "", [], {}):
        told.append(f"default {html.escape(json.dumps(default))}")
    return f" <small>{', '.join(told)}</small>" if told else ""


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>" for part in text.strip().split("\n\n") if part)


def _text(text: str) -> str:
    """Escaped, with `code` in its own letters."""
    parts = html.escape(text, quote=False).split("`")
    # An odd one out is no pair of marks.
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
