"""A document of OpenAPI 3.1 with every way to say where an argument goes."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def _get(summary: str, *parameters: Json, **more: Any) -> Json:
    return {"summary": summary, "parameters": list(parameters), "responses": {"200": {"description": "ok"}}, **more}


def _parameter(name: str, place: str, schema: Json, **more: Any) -> Json:
    needed = {"required": True} if place == "path" else {}
    return {"name": name, "in": place, "schema": schema, **needed, **more}


def _post(summary: str, kind: str, schema: Json, *, required: bool = True, **media: Any) -> Json:
    body = {"required": required, "content": {kind: {"schema": schema, **media}}}
    return {"summary": summary, "requestBody": body, "responses": {"200": {"description": "ok"}}}


TEXT, WHOLE, TEXTS, WHOLES = (
    {"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"type": "integer"}},
)  # fmt: skip
POINT: Json = {"type": "object", "properties": {"x": WHOLE, "y": WHOLE}}


def shop(url: str) -> Json:
    """The document, of a service at that address."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Corner Shop", "version": "1", "description": "Sells things.\n\nAt length."},
        "servers": [{"url": "/relative"}, {"url": f"{url}/{{version}}", "variables": {"version": {"default": "v1"}}}],
        "security": [{"key": []}],
        "paths": {
            "/items/{id}": {
                "parameters": [_parameter("id", "path", WHOLE)],
                "get": _get(
                    "Get an item",
                    {"$ref": "#/components/parameters/verbose"},
                    operationId="items.get",
                    tags=["Items"],
                    responses={
                        "200": {
                            "description": "ok",
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}},
                        }
                    },
                ),
                "delete": _get("Delete an item", operationId="items.delete"),
                "put": {
                    **_post("Replace an item", "application/json", {"$ref": "#/components/schemas/Item"}),
                    "operationId": "items.put",
                },
            },
            "/label/{ids}": {"get": _get("Label", _parameter("ids", "path", WHOLES, style="label"))},
            "/labels/{ids}": {
                "get": _get("Label exploded", _parameter("ids", "path", WHOLES, style="label", explode=True))
            },
            "/matrix/{ids}": {"get": _get("Matrix", _parameter("ids", "path", WHOLES, style="matrix"))},
            "/simple/{ids}": {"get": _get("Simple", _parameter("ids", "path", WHOLES))},
            "/query": {
                "get": _get(
                    "Search everything",
                    _parameter("each", "query", TEXTS),
                    _parameter("joined", "query", TEXTS, explode=False),
                    _parameter("spaced", "query", TEXTS, style="spaceDelimited", explode=False),
                    _parameter("piped", "query", TEXTS, style="pipeDelimited", explode=False),
                    _parameter("where", "query", POINT, style="deepObject", explode=True),
                    _parameter("flag", "query", {"type": "boolean"}),
                    _parameter("limit", "query", {"type": "number"}),
                    _parameter("X-Names", "header", TEXTS),
                    _parameter("taste", "cookie", TEXT),
                    {"name": "filter", "in": "query", "content": {"application/json": {"schema": POINT}}},
                    _parameter("Authorization", "header", TEXT),
                    security=[],
                )
            },
            "/same/{name}": {
                "post": {
                    **_post(
                        "Same names",
                        "application/json",
                        {"type": "object", "properties": {"name": TEXT, "other": WHOLE}},
                    ),
                    "parameters": [_parameter("name", "path", TEXT), _parameter("name", "query", TEXT)],
                }
            },
            "/list": {"post": _post("Send a list", "application/json", {"type": "array", "items": POINT})},
            "/patch": {
                "patch": _post("Patch loosely", "application/merge-patch+json", {"type": "object"}, required=False)
            },
            "/form": {
                "post": _post(
                    "Send a form",
                    "application/x-www-form-urlencoded",
                    {
                        "type": "object",
                        "properties": {"name": TEXT, "tags": TEXTS, "count": WHOLE},
                        "required": ["name"],
                    },
                )
            },
            "/upload": {
                "post": _post(
                    "Upload a picture",
                    "multipart/form-data",
                    {
                        "type": "object",
                        "properties": {"title": TEXT, "picture": {"type": "string", "format": "binary"}, "at": POINT},
                        "required": ["title", "picture"],
                    },
                    encoding={"picture": {"contentType": "image/png"}},
                )
            },
            "/raw": {"put": _post("Put bytes", "application/octet-stream", {"type": "string", "format": "binary"})},
            "/note": {"put": _post("Put text", "text/plain", TEXT)},
            "/pay": {
                "post": {
                    **_post("Pay", "application/json", {"type": "object", "properties": {"amount": WHOLE}}),
                    "parameters": [_parameter("Idempotency-Key", "header", TEXT, required=True)],
                }
            },
            "/elsewhere": {"get": _get("Elsewhere", servers=[{"url": f"{url}/other"}])},
        },
        "components": {
            "parameters": {"verbose": _parameter("verbose", "query", {"type": "boolean"})},
            "schemas": {
                "Named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                "Item": {
                    "allOf": [
                        {"$ref": "#/components/schemas/Named"},
                        {
                            "type": "object",
                            "properties": {
                                "made_at": {"type": "string", "readOnly": True},
                                "price": {"type": ["number", "null"]},
                                "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
                            },
                            "required": ["made_at", "price"],
                        },
                    ]
                },
            },
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Shop-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
                "open": {
                    "type": "oauth2",
                    "flows": {
                        "authorizationCode": {
                            "authorizationUrl": "https://shop.example/authorize",
                            "tokenUrl": "https://shop.example/token",
                            "scopes": {"read": "to read", "write": "to write"},
                        }
                    },
                },
            },
        },
    }
