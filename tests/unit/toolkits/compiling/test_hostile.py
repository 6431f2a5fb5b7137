"""Documents that lie, go round in circles, are huge or lead elsewhere: refused in words, or bounded."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest

from workbench.errors import InvalidRequest
from workbench.toolkits.compiling.compiler import MOST_TOOLS, Wanted, compile_openapi
from workbench.toolkits.compiling.document import parsed
from workbench.toolkits.operations import CompiledToolkit

Json = dict[str, Any]


def document(paths: Any = None, **more: Any) -> Json:
    usual = {"/a": {"get": {"summary": "Get a", "responses": {}}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Odd", "version": "1"},
        "servers": [{"url": "https://odd.example"}],
        "paths": usual if paths is None else paths,
        **more,
    }


def posting(schema: Any, schemas: Json | None = None) -> CompiledToolkit:
    body = {"content": {"application/json": {"schema": schema}}}
    return compile_openapi(
        document({"/a": {"post": {"summary": "Do", "requestBody": body}}}, components={"schemas": schemas or {}})
    )


def size_of(compiled: CompiledToolkit) -> int:
    for one in compiled.tools:
        jsonschema.Draft202012Validator.check_schema(one.tool.input_schema)
    return len(json.dumps([one.tool.input_schema for one in compiled.tools]))


@pytest.mark.parametrize(("root", "words"), [
    ({}, "neither OpenAPI 3"),
    ({"swagger": "2.0", "paths": {}}, "Swagger 2"),
    ({"openapi": 3, "paths": {}}, "neither OpenAPI 3"),
    ({"openapi": "4.0.0", "paths": {}}, "neither OpenAPI 3"),
    ({"openapi": "3.0.0"}, "no `paths`"),
    ({"openapi": "3.0.0", "paths": []}, "no `paths`"),
    (document({}), "no operation"),
    (document({"/a": {"get": {}}}, servers=[]), "give a base URL"),
    (document({"/a": {"get": {}}}, servers=[{"url": "/api"}, {"url": "file:///etc"}, 3]), "give a base URL"),
    (document({"/a": {"get": {}}}, servers=[{"url": "https://u:p@odd.example"}]), "give a base URL"),
    (document({"/a": {"get": {}}}, servers=[{"url": "https://{any}.com"}]), "give a base URL"),
    (document({"/a": {"get": {}}}, info={}), "give a slug"),
    (document({"/a": {"$ref": "https://evil.example/paths.json"}}), "leads out of the document"),
    (document({"/a": {"$ref": "file:///etc/passwd"}}), "leads out of the document"),
    (document({"/a": {"$ref": "other.yaml#/a"}}), "leads out of the document"),
    (document({"/a": {"$ref": "#/paths/~1a"}}), "round in a circle"),
    (document({"/a": {"$ref": "#/nowhere"}}), "leads nowhere"),
    (document({"/a": {"post": {"requestBody": {"content": {"multipart/mixed": {}}}}}}), "is not written here"),
])  # fmt: skip
def test_what_cannot_be_used_at_all_is_refused_and_says_why(root: Json, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compile_openapi(root)
    assert words in caught.value.message
    assert len(caught.value.message) < 600


@pytest.mark.parametrize("value", [None, 3, "x", [], [[]], {"get": 3}, True])
def test_lies_about_what_things_are_cost_no_more_than_themselves(value: Any) -> None:
    fine = {"summary": "Fine", "responses": {}}
    odd = {
        "/fine": {"get": fine},
        "/value": value,
        "/parts": {"get": {**dict.fromkeys(("parameters", "tags", "responses", "security", "summary"), value)}},
        "/body": {"post": {"requestBody": value}},
        "/schema": {"get": {"parameters": [{"name": "a", "in": "query", "schema": value}]}},
        "/media": {"post": {"requestBody": {"content": {"application/json": value}}}},
        "/answer": {"get": {"responses": {"200": value}}},
        3: {"get": fine},
        "no/slash": {"get": fine},
    }
    compiled = compile_openapi(document(odd, components=value if isinstance(value, dict) else {"schemas": value}))
    assert "ODD_FINE" in [one.tool.slug for one in compiled.tools]
    assert size_of(compiled)


def test_a_schema_that_has_itself_as_a_part_is_written_once() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}}}
    compiled = posting({"$ref": "#/components/schemas/Node"}, {"Node": node})
    [one] = compiled.tools
    assert one.tool.input_schema["properties"]["next"] == {"type": "object", "description": "(as above)"}


def test_a_schema_that_is_only_itself_takes_anything() -> None:
    itself: Json = {"$ref": "#/components/schemas/A"}
    for schemas in ({"A": itself}, {"A": {"allOf": [itself]}}):
        compiled = posting({"$ref": "#/components/schemas/A"}, schemas)
        assert size_of(compiled) < 500


def test_schemas_that_would_be_endless_when_written_out_are_cut() -> None:
    wide = {
        f"S{number}": {
            "type": "object",
            "properties": {f"p{one}": {"$ref": f"#/components/schemas/S{number + 1}"} for one in range(20)},
        }
        for number in range(30)
    }
    wide["S30"] = {"type": "string"}
    began = time.monotonic()
    compiled = posting({"$ref": "#/components/schemas/S0"}, wide)
    assert size_of(compiled) < 100_000
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("name", ["allOf", "anyOf", "oneOf"])
def test_nor_do_choices_of_choices(name: str) -> None:
    schemas: Json = {f"S{one}": {name: [{"$ref": f"#/components/schemas/S{one + 1}"}] * 30} for one in range(30)}
    schemas["S30"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    began = time.monotonic()
    assert size_of(posting({"$ref": "#/components/schemas/S0"}, schemas)) < 100_000
    assert time.monotonic() - began < 5


def test_nesting_without_references_is_cut_as_well() -> None:
    deep: Json = {"type": "string"}
    for _ in range(900):
        deep = {"type": "array", "items": deep}
    assert size_of(posting(deep)) < 2000


def test_a_long_chain_of_references_ends() -> None:
    schemas = {f"S{one}": {"$ref": f"#/components/schemas/S{one + 1}"} for one in range(10_000)}
    assert size_of(posting({"$ref": "#/components/schemas/S0"}, schemas)) < 500


def test_words_choices_and_defaults_are_of_a_bounded_length() -> None:
    schema = {
        "type": "object",
        "description": "x" * 10**6,
        "properties": {
            "a": {"type": "string", "enum": [f"v{one}" for one in range(10**5)], "default": "y" * 10**6},
            "b": {"type": "string", "description": "z" * 10**6, "pattern": "(" * 10**5},
        },
    }
    assert size_of(posting(schema)) < 10_000


def test_a_pattern_is_told_in_words_and_run_by_nobody() -> None:
    [one] = posting({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}).tools
    assert one.tool.input_schema["properties"]["a"] == {"type": "string", "description": "Of the form ^(a+)+$"}


def test_more_operations_than_anybody_needs_are_left_out_and_named() -> None:
    many = {f"/p{one}": {"get": {"summary": f"Get {one}", "responses": {}}} for one in range(MOST_TOOLS + 5)}
    compiled = compile_openapi(document(many))
    assert len(compiled.tools) == MOST_TOOLS
    assert "only the first" in compiled.warnings[-1]


def test_what_is_left_out_is_named() -> None:
    paths = {"/a": {"get": {"summary": "Get a"}}, "/b": {"get": {"parameters": [{"$ref": "#/no"}]}}}
    compiled = compile_openapi(document(paths))
    assert compiled.warnings == ("GET /b is left out: '#/no' leads nowhere",)


def test_hosts_are_those_that_were_given_whatever_the_document_says() -> None:
    paths = {
        "/a": {"get": {"summary": "Good"}},
        "/b": {"get": {"summary": "Bad", "servers": [{"url": "https://evil.example"}]}},
    }
    compiled = compile_openapi(document(paths), Wanted(hosts=("odd.example",)))
    assert [one.tool.slug for one in compiled.tools] == ["ODD_GOOD"]
    assert "evil.example" in compiled.warnings[0]
    assert compiled.toolkit.hosts == ("odd.example",)


def test_parameters_that_would_forge_the_connection_are_no_arguments() -> None:
    names = ("Authorization", "HOST", "Content-Length", "Cookie", "Transfer-Encoding", "accept", "X-Fine")
    parameters = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in names]
    [one] = compile_openapi(document({"/a": {"get": {"summary": "A", "parameters": parameters}}})).tools
    assert list(one.tool.input_schema["properties"]) == ["X-Fine"]


@pytest.mark.parametrize(("content", "words"), [
    (b"[]", "no object"), (b'"x"', "no object"), (b"{", "not JSON"), (b"[" * 100_000, "nested too deeply"),
    (b"\xff\xfe\x00", "neither JSON nor YAML"), (b"a: [b", "neither JSON nor YAML"),
    (b"a: &a [x, x]\nb: [*a, *a]", "aliases"), (b"- 1", "no object"),
    (b"!!python/object/apply:os.system [id]", "neither JSON nor YAML"),
])  # fmt: skip
def test_a_file_that_is_no_document_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        parsed(content)


def test_yaml_is_read_as_json_would_be() -> None:
    text = b"openapi: 3.0.0\ninfo: {title: T, version: 2020-01-01}\npaths:\n  /a:\n    get: {responses: {200: {}}}\n"
    assert parsed(text)["paths"]["/a"]["get"]["responses"] == {"200": {}}


def test_thousands_of_operations_of_one_name_do_not_take_long() -> None:
    methods = ("get", "put", "post", "delete", "patch", "head")
    paths = {f"/p{n}": {method: {"summary": "Same", "operationId": "same"} for method in methods} for n in range(830)}
    document = {"openapi": "3.0.0", "info": {"title": "x"}, "servers": [{"url": "https://x.test"}], "paths": paths}
    began = time.process_time()
    made = compile_openapi(document)
    assert len({one.tool.slug for one in made.tools}) == 830 * 6
    assert time.process_time() - began < 5


def test_a_document_of_millions_of_values_or_of_much_yaml_is_refused_before_it_is_read() -> None:
    began = time.process_time()
    with pytest.raises(InvalidRequest, match="more than 4,000,000 values"):
        parsed(b'{"a": [' + b"[]," * 5_000_000 + b"[]]}")
    with pytest.raises(InvalidRequest, match="turn it into JSON"):
        parsed(b"a: b\n" * 1_000_000)
    assert time.process_time() - began < 2
