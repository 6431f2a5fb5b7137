"""Discovery documents compiled: what a method takes and where it goes; documents that lie are refused or bounded."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from workbench.errors import InvalidRequest
from workbench.model.toolkit import AuthKind
from workbench.toolkits.building import built
from workbench.toolkits.compiling.compiler import Wanted
from workbench.toolkits.discovery import FILE_ARGUMENT, compile_added, compile_discovery, is_discovery
from workbench.toolkits.operations import BodyKind, CompiledTool


def document(**methods: Any) -> dict[str, Any]:
    return {
        "rootUrl": "https://shop.example.com/",
        "servicePath": "shop/v1/",
        "title": "Shop",
        "revision": "20260102",
        "parameters": {"fields": {"type": "string", "location": "query"}},
        "schemas": {
            "Item": {
                "type": "object",
                "description": "A thing.",
                "properties": {
                    "id": {"type": "string", "readOnly": True},
                    "made": {"type": "string", "description": "Output only. When."},
                    "name": {"type": "string", "annotations": {"required": ["shop.items.insert"]}},
                    "price": {"type": "integer", "format": "int32", "minimum": "0", "default": "3"},
                    "big": {"type": "string", "format": "int64"},
                    "parts": {"type": "array", "items": {"$ref": "Item"}},
                    "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                    "anything": {"type": "any"},
                },
            }
        },
        "resources": {"items": {"methods": methods}},
    }


def method(verb: str, path: str, **more: Any) -> dict[str, Any]:
    names = [part.strip("{+}") for part in path.replace(":", "/").split("/") if part.startswith("{")]
    parameters = {name: {"type": "string", "location": "path", "required": True} for name in names}
    return {
        "id": "shop.items.insert",
        "httpMethod": verb,
        "path": path,
        "parameters": {**parameters, **more.pop("parameters", {})},
        **more,
    }


def only(found: dict[str, Any]) -> CompiledTool:
    [one] = compile_discovery(found, slug="shop").tools
    return one


def test_a_method_becomes_a_tool() -> None:
    query = {
        "deep": {"type": "boolean", "location": "query", "default": "false"},
        "tags": {"type": "string", "location": "query", "repeated": True, "description": "Which."},
    }
    one = only(document(get=method("GET", "items/{itemId}", parameters=query, response={"$ref": "Item"})))
    assert (one.tool.slug, one.tool.name, one.tool.version) == ("SHOP_ITEMS_GET", "Get items", "20260102_00")
    assert "readOnlyHint" in one.tool.tags
    taken = one.tool.input_schema["properties"]
    assert taken["deep"] == {"type": "boolean", "default": False}
    assert taken["tags"] == {"type": "array", "items": {"type": "string"}, "description": "Which."}
    assert one.tool.input_schema["required"] == ["itemId"]
    assert one.tool.output_schema["properties"]["id"] == {"type": "string"}
    made = built(one.operation, {"itemId": "a/b c", "tags": ["x", "y"], "deep": True, "fields": "id"})
    assert made.url == "https://shop.example.com/shop/v1/items/a%2Fb%20c?deep=true&tags=x&tags=y&fields=id"


def test_a_body_is_taken_apart_and_what_the_service_fills_in_is_not_asked_for() -> None:
    one = only(document(insert=method("POST", "items/{name}", request={"$ref": "Item"})))
    taken = one.tool.input_schema["properties"]
    assert {"id", "made"} & taken.keys() == set()
    assert taken["price"] == {"type": "integer", "minimum": 0, "default": 3}
    assert taken["big"] == {"type": "string"}
    assert taken["anything"] == {}
    # Both are called `name`: the one in the path has it.
    assert one.tool.input_schema["required"] == ["body_name", "name"]
    made = built(one.operation, {"name": "n", "body_name": "soap", "price": 4, "notes": {"a": "b"}})
    assert json.loads(made.body or b"") == {"name": "soap", "price": 4, "notes": {"a": "b"}}
    assert jsonschema_rs.meta.is_valid(one.tool.input_schema)


def test_a_name_with_slashes_stays_one() -> None:
    one = only(document(get=method("GET", "{+name}:run")))
    made = built(one.operation, {"name": "shops/1/items/a b?c"})
    assert made.url == "https://shop.example.com/shop/v1/shops/1/items/a%20b%3Fc:run"


def test_a_file_goes_to_the_address_for_uploads() -> None:
    upload = {"protocols": {"simple": {"multipart": True, "path": "/upload/shop/v1/items"}}}
    both = only(document(insert=method("POST", "items", request={"$ref": "Item"}, mediaUpload=upload)))
    assert both.operation.media is not None
    file = {"name": "a.png", "mimetype": "image/png", "base64": "iVA="}
    made = built(both.operation, {"body_name": "x", "name": "soap", FILE_ARGUMENT: file})
    assert made.url == "https://shop.example.com/upload/shop/v1/items?uploadType=multipart"
    assert built(both.operation, {"name": "soap"}).url == "https://shop.example.com/shop/v1/items"
    alone = only(document(set=method("POST", "items", mediaUpload=upload)))
    assert alone.operation.body is not None
    assert alone.operation.body.kind is BodyKind.RAW
    assert alone.tool.input_schema["required"] == [FILE_ARGUMENT]
    made = built(alone.operation, {FILE_ARGUMENT: file})
    assert (made.url, made.body) == ("https://shop.example.com/upload/shop/v1/items?uploadType=media", b"\x89P")


def test_a_schema_that_is_in_itself_ends() -> None:
    one = only(document(insert=method("POST", "items", request={"$ref": "Item"}, response={"$ref": "Item"})))
    assert len(json.dumps(one.tool.input_schema)) < 30_000
    assert len(json.dumps(one.tool.output_schema)) < 30_000


def test_a_schema_that_is_huge_is_told_less_deeply() -> None:
    found = document(insert=method("POST", "items", request={"$ref": "Wide"}))
    inner = {f"p{number}": {"type": "string", "description": "w " * 50} for number in range(200)}
    found["schemas"]["Inner"] = {"type": "object", "properties": inner}
    found["schemas"]["Wide"] = {
        "type": "object",
        "properties": {f"w{number}": {"$ref": "Inner"} for number in range(9)},
    }
    one = only(found)
    assert one.tool.input_schema["properties"]["w0"] == {"type": "object"}


def test_methods_whose_names_are_too_long_are_told_apart() -> None:
    found = document()
    inner: dict[str, Any] = {"methods": {"get": method("GET", "a"), "list": method("GET", "b")}}
    found["resources"] = {
        f"aVeryLongResourceNameThatNeverEnds{number}": {"resources": {"settingsOfTheWholeOrganisation": inner}}
        for number in range(2)
    }
    slugs = [one.tool.slug for one in compile_discovery(found, slug="shop").tools]
    assert len(set(slugs)) == 4
    assert all(len(slug) <= 60 for slug in slugs)


@pytest.mark.parametrize("broken", [
    {},
    {"openapi": "3.0.0", "paths": {}},
    {**document(get=method("GET", "a")), "rootUrl": "http://shop.example.com/"},
    {**document(get=method("GET", "a")), "rootUrl": "https://user:pass@shop.example.com/"},
    {**document(get=method("GET", "a")), "rootUrl": "file:///etc/passwd"},
    document(),
    document(get=method("TRACE", "a")),
    document(get={"httpMethod": "GET", "path": "a/{lost}"}),
    document(get=method("POST", "a", request={"$ref": "Nowhere"})),
    document(get="no"),
])  # fmt: skip
def test_a_document_that_cannot_be_used_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        compile_discovery(broken, slug="shop")


def test_one_bad_method_does_not_take_the_others_along() -> None:
    found = compile_discovery(
        document(good=method("GET", "a"), bad=method("POST", "a", request={"$ref": "Nowhere"})), slug="shop"
    )
    assert [one.tool.slug for one in found.tools] == ["SHOP_ITEMS_GOOD"]
    assert "Nowhere" in found.warnings[0]


def test_one_that_somebody_added_asks_nobody_to_log_in_at_google_for_a_service_elsewhere() -> None:
    found = {**document(list=method("GET", "items")), "discoveryVersion": "v1"}
    assert is_discovery(found)
    assert not is_discovery({"openapi": "3.0.0"})
    made = compile_added(found, Wanted(slug="things", name="Things", description="Of ours."))
    assert [one.kind for one in made.toolkit.auth] == [AuthKind.BEARER_TOKEN]
    assert (made.toolkit.name, made.toolkit.description) == ("Things", "Of ours.")
    asked = {"oauth2": {"scopes": {"https://www.googleapis.com/auth/shop": {"description": "All."}}}}
    theirs = {**found, "rootUrl": "https://shop.googleapis.com/", "auth": asked}
    oauth, _ = compile_added(theirs, Wanted(slug="things")).toolkit.auth
    assert oauth.oauth is not None
    assert oauth.oauth.scopes == ("https://www.googleapis.com/auth/shop",)


def test_one_that_somebody_added_goes_where_they_say() -> None:
    found = document(list=method("GET", "items"))
    made = compile_added(found, Wanted(slug="things", base_url="http://127.0.0.1:8080/"))
    assert (made.toolkit.hosts, made.tools[0].operation.base_url) == (("127.0.0.1:8080",), "http://127.0.0.1:8080")
    assert [one.kind for one in made.toolkit.auth] == [AuthKind.BEARER_TOKEN]
    with pytest.raises(InvalidRequest, match="cannot be used"):
        compile_added(found, Wanted(slug="things", base_url="ftp://x"))
