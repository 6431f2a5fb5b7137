"""The OpenAPI document: what FastAPI makes of the routes, and what it cannot know."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from workbench import __version__
from workbench.server.refusals import API
from workbench.server.service import ServerOptions
from workbench.wire import rest

_METHODS = ("get", "post", "patch", "put", "delete")
_ABOUT = """An isolated, persistent place where an agent writes and runs code.

Send a key with every request, as `Authorization: Bearer <key>` or as `x-api-key: <key>`. Every answer that is not a
success has the same shape: `error` with a stable `code`, a `message` that names the next step, and a `request_id`. If
code began to run there is a result, whatever became of it; an error means that nothing ran.
"""
_TAGS = (
    ("sessions", "What a caller comes back to: a kernel with its memory, and files."),
    ("cells", "Code for the session's kernel."),
    ("commands", "Command lines for bash, beside what the kernel does."),
    ("state", "The kernel's memory: looked at, undone, branched, begun anew; and what was run."),
    ("contexts", "Further kernels of a session, around the same files."),
    ("files", "Files of a session from outside: what code inside sees at /mnt/files."),
    ("composio", "The sessions API as SDKs for Composio's service ask it; also under /api/v3."),
    ("toolkits", "Tools of other services: those that were added beside what comes along."),
    ("connections", "Accounts of users with other services, and the clients by which they are connected."),
    ("corrections", "How often mistakes of code were corrected."),
    ("keys", "Keys of a project, and tokens for one session."),
    ("users", "Whoever sessions are made for."),
    ("audit", "Who did what."),
    ("health", "For whoever watches over the server."),
)
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key or a session's token."},
    "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same in another header."},
}
_REQUEST_ID = {
    "x-request-id": {
        "description": "By which the server's log knows the request; yours, if you sent one.",
        "required": True,
        "schema": {"type": "string"},
    }
}
_API_SESSION = "/api/v3.1/tool_router/session/{session_id}"
_REF = "#/components/schemas/"
# Of answers that FastAPI thinks of by itself, and that we never give.
_FOREIGN = ("HTTPValidationError", "ValidationError")


def document(app: FastAPI, options: ServerOptions) -> dict[str, Any]:
    """The whole of it."""
    made = get_openapi(
        title="Open Workbench",
        version=__version__,
        description=_ABOUT,
        routes=app.routes,
        tags=[{"name": name, "description": words} for name, words in _TAGS],
        servers=[{"url": options.url or "/"}],
    )
    made = _with_short_names(made)
    made["components"]["securitySchemes"] = _SECURITY
    for path, item in made["paths"].items():
        for method in _METHODS:
            if method in item:
                _completed(path, item[method])
    _add_events(made)
    _add_links(made)
    # What is refused is known here, and only here.
    for name in ("RunCell", "RunCommand"):
        made["components"]["schemas"][name]["properties"]["limit_s"]["maximum"] = options.cell_limit_max_s
    if options.runtimes:
        # Other names that a runtime has are taken as well, in whatever letters: a document has no words for that.
        schemas = made["components"]["schemas"]
        schemas["CreateSession"]["properties"]["runtime"]["enum"] = list(options.runtimes)
        for one in schemas["CreateContext"]["properties"]["runtime"]["anyOf"]:
            if one["type"] == "string":
                one["enum"] = list(options.runtimes)
    return made


def _with_short_names(made: dict[str, Any]) -> dict[str, Any]:
    """FastAPI names shapes after their modules where two have one name: then those of the sessions API say so."""
    schemas = made["components"]["schemas"]
    for name in _FOREIGN:
        schemas.pop(name, None)
    text = json.dumps(made)
    for name in schemas:
        module, _, short = name.rpartition("__")
        if module:
            text = text.replace(f'"{name}"', f'"{_short(module, short)}"')
            text = text.replace(f'"{_REF}{name}"', f'"{_REF}{_short(module, short)}"')
    named: dict[str, Any] = json.loads(text)
    return named


def _short(module: str, name: str) -> str:
    return f"Api{name}" if "__composio" in module else name


def _completed(path: str, operation: dict[str, Any]) -> None:
    if path.startswith(("/v1/", API)):
        operation["security"] = [{"bearer": []}, {"api_key": []}]
    elif path == "/metrics":
        operation["security"] = [{}, {"bearer": []}, {"api_key": []}]
    if path.startswith(API):
        # What FastAPI thinks of by itself: it is a 400 here.
        operation["responses"].pop("422", None)
    for status, response in operation["responses"].items():
        response.setdefault("headers", {}).update(_REQUEST_ID)
        if status == "401":
            response["headers"]["www-authenticate"] = {"required": True, "schema": {"type": "string"}}
        if status == "204":
            response.pop("content", None)


def _add_events(made: dict[str, Any]) -> None:
    """Shapes that only events carry."""
    schemas = made["components"]["schemas"]
    for model in (rest.Piece, rest.Dropped):
        shape = model.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
        schemas.update({name: one for name, one in shape.pop("$defs", {}).items() if name not in schemas})
        schemas[model.__name__] = shape


def _add_links(made: dict[str, Any]) -> None:
    """Which answers name what can be asked for next, for those who read the document by program."""
    operations = [(path, told) for path, item in made["paths"].items() for told in item.values()]
    for path, told in operations:
        inside = path.startswith("/v1/sessions/{session_id}/")
        if (inside and "{cell_id}" not in path) or path == "/v1/sessions/{session_id}":
            _link(made, ("create_session", "201"), told, {"session_id": "$response.body#/id"})
            _link(made, ("branch", "201"), told, {"session_id": "$response.body#/session/id"})
            _link(made, ("create_context", "201"), told, {"session_id": "$response.body#/id"})
        elif inside:
            kind = "run_cell" if "/cells/" in path else "run_command"
            names = {"session_id": "$request.path.session_id", "cell_id": "$response.body#/id"}
            _link(made, (kind, "200"), told, names)
            _link(made, (kind, "202"), told, names)
        elif path.startswith(_API_SESSION):
            _link(made, ("api_create_session", "201"), told, {"session_id": "$response.body#/session_id"})
        elif path.startswith("/v1/keys/"):
            _link(made, ("create_key", "201"), told, {"key_id": "$response.body#/id"})


def _link(made: dict[str, Any], source: tuple[str, str], to: dict[str, Any], parameters: dict[str, str]) -> None:
    name, status = source
    for item in made["paths"].values():
        for told in item.values():
            if told["operationId"] == name:
                links = told["responses"][status].setdefault("links", {})
                links[to["operationId"]] = {"operationId": to["operationId"], "parameters": parameters}
