"""What a document comes to: names, hints, schemas, ways to connect."""

from __future__ import annotations

import json

import jsonschema
import pytest
from tests.toolkits.documents import shop
from tests.unit.toolkits.compiling.test_hostile import document, posting

from workbench.model.toolkit import AuthKind
from workbench.toolkits.compiling.compiler import Wanted, compile_openapi, host_of
from workbench.toolkits.compiling.naming import MOST_SLUG, Slugs, toolkit_slug
from workbench.toolkits.operations import packed, unpacked

SHOP = compile_openapi(shop("https://api.shop.example:8443"), Wanted(slug="shop"))
TOOLS = {one.tool.slug: one for one in SHOP.tools}


def test_a_toolkit_is_named_and_placed() -> None:
    kit = SHOP.toolkit
    assert (kit.slug, kit.name, kit.description) == ("shop", "Corner Shop", "Sells things.")
    assert (kit.base_url, kit.hosts, kit.no_auth) == (
        "https://api.shop.example:8443/v1", ("api.shop.example:8443",), False
    )  # fmt: skip
    assert compile_openapi(shop("https://x.example")).toolkit.slug == "corner_shop"


def test_ways_to_connect_are_those_that_can_be_gone() -> None:
    kinds = [(one.kind, one.place, one.name, one.prefix) for one in SHOP.toolkit.auth]
    assert kinds == [
        (AuthKind.OAUTH2, "header", "Authorization", "Bearer "),
        (AuthKind.API_KEY, "header", "X-Shop-Key", ""),
        (AuthKind.BEARER_TOKEN, "header", "Authorization", "Bearer "),
        (AuthKind.BASIC, "header", "Authorization", "Basic "),
    ]
    oauth = SHOP.toolkit.auth[0].oauth
    assert oauth is not None
    assert (oauth.token_url, oauth.scopes) == ("https://shop.example/token", ("read", "write"))
    assert SHOP.toolkit.auth_schemes == ("OAUTH2", "API_KEY", "BEARER_TOKEN", "BASIC")
    [words] = SHOP.warnings
    assert words.startswith(
        "the security scheme 'cookie' is left out: its key goes into 'cookie', and only headers and"
    )


def test_hints_are_by_method() -> None:
    assert TOOLS["SHOP_GET_AN_ITEM"].tool.tags == ("readOnlyHint", "idempotentHint", "openWorldHint", "items")
    assert TOOLS["SHOP_DELETE_AN_ITEM"].tool.tags == ("destructiveHint", "idempotentHint", "openWorldHint")
    assert TOOLS["SHOP_PAY"].tool.tags == ("openWorldHint",)
    paths = {"/x": {"post": {"summary": "Archive a channel"}}}
    assert "destructiveHint" in compile_openapi(document(paths)).tools[0].tool.tags


def test_what_needs_no_account_says_so() -> None:
    assert [slug for slug, one in TOOLS.items() if one.tool.no_auth] == ["SHOP_SEARCH_EVERYTHING"]


def test_every_schema_is_one_and_every_operation_comes_back_from_json() -> None:
    for one in SHOP.tools:
        for schema in (one.tool.input_schema, one.tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert unpacked(json.loads(json.dumps(packed(one.operation)))) == one.operation


def test_what_only_the_service_fills_in_is_no_argument_and_in_the_answer() -> None:
    assert list(TOOLS["SHOP_REPLACE_AN_ITEM"].tool.input_schema["properties"]) == ["id", "name", "price", "parts"]
    assert TOOLS["SHOP_REPLACE_AN_ITEM"].tool.input_schema["required"] == ["id", "name", "price"]
    assert "made_at" in TOOLS["SHOP_GET_AN_ITEM"].tool.output_schema["properties"]


def test_words_of_openapi_3_0_are_said_in_those_of_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "nullable": True, "minimum": 1, "exclusiveMinimum": True, "example": 3},
            "b": {"type": "string", "xml": {"name": "b"}, "deprecated": True},
        },
        "discriminator": {"propertyName": "b"},
    }
    [one] = posting(schema).tools
    assert one.tool.input_schema["properties"] == {
        "a": {"type": ["integer", "null"], "exclusiveMinimum": 1},
        "b": {"type": "string", "deprecated": True},
    }


def test_a_body_that_is_one_of_several_is_one_argument() -> None:
    [one] = posting({"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "null"}]}).tools
    assert list(one.tool.input_schema["properties"]) == ["body"]
    assert one.operation.body is not None
    assert one.operation.body.whole == "body"


def test_what_parts_of_a_schema_say_of_each_other_counts() -> None:
    needed = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    [one] = posting({"allOf": [needed, {"required": ["b", "unknown"]}]}).tools
    assert one.tool.input_schema["properties"] == needed["properties"]
    [one] = posting({**needed, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}).tools
    assert list(one.tool.input_schema["properties"]) == ["a", "b"]


@pytest.mark.parametrize(("url", "host"), [
    ("https://a.example/v1", "a.example"), ("http://127.0.0.1:80", "127.0.0.1"), ("https://[::1]:9", "[::1]:9"),
    ("https://{sub}.zen.example", "*.zen.example"), ("https://{a}.com", ""), ("https://{host}", ""), ("ftp://a", ""),
    ("//a.example", ""), ("https://A.Example:444", "a.example:444"),
])  # fmt: skip
def test_hosts_are_read_out_of_addresses(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(("summary", "operation_id", "slug"), [
    ("Get a pull request", "pulls/get", "GIT_GET_A_PULL_REQUEST"),
    ("", "pulls/getOne", "GIT_PULLS_GET_ONE"),
    ("", "", "GIT_GET_REPOS_ID_PULLS"),
    ("Git: list the user's GitHub repositories", "x", "GIT_LIST_THE_USERS_GITHUB_REPOSITORIES"),
    ("Café öffnen", "", "GIT_CAFE_OFFNEN"),
    ("日本語", "openCafe", "GIT_OPEN_CAFE"),
    ("Set the retention limit of caches for an organization of an enterprise", "", "GIT_GET_REPOS_ID_PULLS"),
    ("Set the retention limit of caches for an organization of an enterprise", "x" * 80,
     "GIT_SET_THE_RETENTION_LIMIT_OF_CACHES_FOR_AN_ORGANIZATION"),
])  # fmt: skip
def test_slugs_are_made_of_what_there_is(summary: str, operation_id: str, slug: str) -> None:
    assert Slugs("git").slug(summary, operation_id, "get", "/repos/{id}/pulls", ()) == slug


def test_a_slug_that_is_taken_gets_the_tag_and_then_a_number() -> None:
    slugs = Slugs("git")
    made = [
        slugs.slug("List secrets", "", "get", "/x", [tag]) for tag in ("actions", "actions", "dependabot", "actions")
    ]
    assert made == ["GIT_LIST_SECRETS", "GIT_ACTIONS_LIST_SECRETS", "GIT_DEPENDABOT_LIST_SECRETS", "GIT_GET_X"]
    more = [slugs.slug("List secrets", "", "get", "/x", ["actions"]) for _ in range(3)]
    assert more == ["GIT_LIST_SECRETS_2", "GIT_LIST_SECRETS_3", "GIT_LIST_SECRETS_4"]
    long = Slugs("git")
    many = [long.slug("A very long name of something " * 5, "", "get", "/a" * 60, ()) for _ in range(12)]
    assert len(set(many)) == 12
    assert max(map(len, many)) <= MOST_SLUG


def test_toolkits_are_named_in_small_letters() -> None:
    assert toolkit_slug("Corner Shop API (v2)") == "corner_shop_api_v2"
