"""Tools of a document, called: what arrives is read by another library, by the same document, and is what was meant."""

from __future__ import annotations

import email
import email.policy
import importlib
import importlib.util
import json
import re
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest
from tests.toolkits.documents import shop
from tests.toolkits.service import CANARY, Asked, Service, basic, bearer, calling, key, oauth, serving
from tests.unit.core.router.sources import session

from workbench.contracts.tools import ToolSource
from workbench.errors import Denied, InvalidRequest, NotFound
from workbench.model.connection import Credential
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, Json, ToolCall, ToolResult
from workbench.testing.tools_contract import ToolSourceContract
from workbench.toolkits.compiling.compiler import Wanted, compile_openapi
from workbench.toolkits.openapi import OpenApiTools

KEY = key(name="X-Shop-Key")


class Shop:
    """The service, its document, and its tools."""

    def __init__(self, service: Service, tools: OpenApiTools, document: Json) -> None:
        self.service = service
        self.tools = tools
        self.document = document

    async def run(self, slug: str, credential: Credential | None = KEY, **arguments: Any) -> ToolResult:
        call = ToolCall(
            slug=slug,
            arguments=arguments,
            session=session(),
            credential=credential,
            idempotency_key="once-1",
            files={"m/a.png": b"\x89PNG\r\n\0--boundary"},
        )
        tool = next(one for one in await self.tools.tools() if one.slug == slug)
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.validate(arguments, tool.input_schema)
        return await self.tools.run(call)

    def reads(self, pattern: str, body: Any = None, **places: Json) -> None:
        """The last request, read by another library by the document, says this; where that is installed."""
        if importlib.util.find_spec("openapi_core") is None:
            return
        core = importlib.import_module("openapi_core")
        requests = importlib.import_module("openapi_core.testing.requests")
        paths = importlib.import_module("jsonschema_path")
        asked = self.service.seen[-1]
        cookies = dict(part.split("=", 1) for part in asked.header("cookie").split("; ") if part)
        request = requests.MockRequest(
            self.service.url,
            asked.method.lower(),
            asked.path,
            path_pattern=pattern,
            view_args=_matched(pattern, asked.target),
            args=asked.query,
            headers=dict(asked.headers),
            cookies=cookies,
            data=asked.body,
            content_type=asked.header("content-type"),
        )
        read = core.unmarshal_request(request, paths.SchemaPath.from_dict(self.document))
        for place, values in places.items():
            found = getattr(read.parameters, place)
            assert {name: found.get(name) for name in values} == values
        if body is not None:
            assert read.body == body


def _matched(pattern: str, target: str) -> dict[str, str]:
    """What a framework would take out of the path."""
    found = re.fullmatch("/[^/]+" + re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", pattern), target.partition("?")[0])
    assert found
    return {name: urllib.parse.unquote(value) for name, value in found.groupdict().items()}


@pytest.fixture
async def here() -> AsyncIterator[Shop]:
    async def answer(asked: Asked) -> None:
        await asked.json('{"name": "soap", "price": 2.5, "made_at": "today"}')

    async with serving(answer) as service, calling() as caller:
        document = shop(service.url)
        yield Shop(service, OpenApiTools([compile_openapi(document, Wanted(slug="shop"))], caller), document)


async def test_an_item_is_asked_for_with_the_key_in_its_header(here: Shop) -> None:
    result = await here.run("SHOP_GET_AN_ITEM", id=7, verbose=True)
    assert (result.error, result.http_status) == ("", 200)
    assert result.data == {"name": "soap", "price": 2.5, "made_at": "today"}
    [asked] = here.service.seen
    assert (asked.method, asked.target, asked.header("x-shop-key")) == ("GET", "/v1/items/7?verbose=true", CANARY)
    here.reads("/items/{id}", path={"id": 7}, query={"verbose": True})


@pytest.mark.parametrize(("slug", "path", "target"), [
    ("SHOP_LABEL", "/label/{ids}", "/v1/label/.3,4,5"),
    ("SHOP_LABEL_EXPLODED", "/labels/{ids}", "/v1/labels/.3.4.5"),
    ("SHOP_MATRIX", "/matrix/{ids}", "/v1/matrix/;ids=3,4,5"),
    ("SHOP_SIMPLE", "/simple/{ids}", "/v1/simple/3,4,5"),
])  # fmt: skip
async def test_lists_in_a_path_are_written_in_its_style(here: Shop, slug: str, path: str, target: str) -> None:
    await here.run(slug, ids=[3, 4, 5])
    assert here.service.seen[-1].target == target
    if path == "/simple/{ids}":
        here.reads(path, path={"ids": [3, 4, 5]})


async def test_a_query_a_header_and_a_cookie_say_what_was_given(here: Shop) -> None:
    given = {
        "each": ["a b", "c&d", "ü"],
        "joined": ["x", "y,z"],
        "spaced": ["p", "q"],
        "piped": ["r", "s"],
        "where": {"x": 1, "y": -2},
        "flag": False,
        "limit": 2.5,
        "X-Names": ["one", "two"],
        "taste": "sweet",
        "filter": {"x": 5},
    }
    await here.run("SHOP_SEARCH_EVERYTHING", credential=None, **given)
    asked = here.service.seen[-1]
    assert asked.target.partition("?")[2] == (
        "each=a%20b&each=c%26d&each=%C3%BC&joined=x,y%2Cz&spaced=p%20q&piped=r%7Cs&where[x]=1&where[y]=-2&flag=false"
        "&limit=2.5&filter=%7B%22x%22%3A5%7D"
    )
    assert not asked.header("authorization")
    # That it takes `%20` apart only if it is written twice over is the library's.
    told = {name: given[name] for name in ("each", "piped", "where", "flag", "limit", "filter")}
    here.reads("/query", query=told, header={"X-Names": ["one", "two"]}, cookie={"taste": "sweet"})


async def test_arguments_of_one_name_in_several_places_are_told_apart(here: Shop) -> None:
    await here.run("SHOP_SAME_NAMES", name="in the/path", query_name="in the query", body_name="in the body", other=1)
    asked = here.service.seen[-1]
    assert asked.target == "/v1/same/in%20the%2Fpath?name=in%20the%20query"
    assert json.loads(asked.body) == {"name": "in the body", "other": 1}
    here.reads("/same/{name}", path={"name": "in the/path"}, query={"name": "in the query"})


async def test_a_body_of_json_is_what_the_document_takes(here: Shop) -> None:
    await here.run("SHOP_REPLACE_AN_ITEM", id=1, name="ü", price=None, parts=[{"name": "bit"}])
    schema = here.document["components"]["schemas"]["Named"]
    body = json.loads(here.service.seen[-1].body)
    jsonschema.validate(body, schema)
    assert body == {"name": "ü", "parts": [{"name": "bit"}]}
    await here.run("SHOP_SEND_A_LIST", body=[{"x": 1}, {"y": 2}])
    assert json.loads(here.service.seen[-1].body) == [{"x": 1}, {"y": 2}]
    here.reads("/list", [{"x": 1}, {"y": 2}])
    await here.run("SHOP_PATCH_LOOSELY", body={"any": {"thing": [1]}})
    assert here.service.seen[-1].header("content-type") == "application/merge-patch+json"
    await here.run("SHOP_PATCH_LOOSELY")
    assert (here.service.seen[-1].body, here.service.seen[-1].header("content-type")) == (b"", "")


async def test_a_form_is_read_as_what_was_filled_in(here: Shop) -> None:
    await here.run("SHOP_SEND_A_FORM", name="a=b&c", tags=["x", "y"], count=3)
    asked = here.service.seen[-1]
    assert urllib.parse.parse_qsl(asked.body.decode()) == [
        ("name", "a=b&c"),
        ("tags", "x"),
        ("tags", "y"),
        ("count", "3"),
    ]
    here.reads("/form", {"name": "a=b&c", "tags": ["x", "y"], "count": 3})


async def test_a_file_is_sent_as_a_part_of_its_own(here: Shop) -> None:
    file = {"s3key": "m/a.png", "name": 'my "best"\r\npicture.png', "mimetype": "image/png"}
    await here.run("SHOP_UPLOAD_A_PICTURE", title="Ü", picture=file, at={"x": 1})
    asked = here.service.seen[-1]
    head = f"Content-Type: {asked.header('content-type')}\r\n\r\n".encode()
    parts = list(email.message_from_bytes(head + asked.body, policy=email.policy.HTTP).iter_parts())
    names = [one["content-disposition"].params for one in parts]
    assert [one["name"] for one in names] == ["title", "picture", "at"]
    assert names[1]["filename"] == "my %22best%22%0D%0Apicture.png"
    assert parts[0].get_payload(decode=True) == "Ü".encode()
    assert parts[1].get_content_type() == "image/png"
    assert parts[1].get_payload(decode=True) == b"\x89PNG\r\n\0--boundary"
    assert (parts[2].get_content_type(), json.loads(parts[2].get_content())) == (
        "application/json",
        {"x": 1},
    )


async def test_bytes_and_texts_are_sent_as_they_are(here: Shop) -> None:
    await here.run("SHOP_PUT_BYTES", body={"base64": "AAEC", "name": "x.bin"})
    assert (here.service.seen[-1].body, here.service.seen[-1].header("content-type")) == (
        b"\x00\x01\x02", "application/octet-stream"
    )  # fmt: skip
    await here.run("SHOP_PUT_TEXT", body="grün")
    assert here.service.seen[-1].body == "grün".encode()
    here.reads("/note", "grün")


async def test_a_key_that_makes_a_call_harmless_is_filled_in_and_no_argument(here: Shop) -> None:
    tool = next(one for one in await here.tools.tools() if one.slug == "SHOP_PAY")
    assert list(tool.input_schema["properties"]) == ["amount"]
    await here.run("SHOP_PAY", amount=5)
    assert here.service.seen[-1].header("idempotency-key") == "once-1"


async def test_an_operation_with_an_address_of_its_own_is_asked_there(here: Shop) -> None:
    await here.run("SHOP_ELSEWHERE")
    assert here.service.seen[-1].target == "/other/elsewhere"


@pytest.mark.parametrize("credential", [KEY, bearer(), oauth(), basic()], ids=lambda one: str(one.kind))
async def test_every_kind_of_account_is_proved(here: Shop, credential: Credential) -> None:
    assert not (await here.run("SHOP_DELETE_AN_ITEM", credential, id=1)).error
    asked = here.service.seen[-1]
    assert asked.method == "DELETE"
    proof = asked.header("x-shop-key") or asked.header("authorization")
    assert proof.startswith(
        {AuthKind.API_KEY: CANARY, AuthKind.BASIC: "Basic "}.get(credential.kind, f"Bearer {CANARY}")
    )


async def test_without_an_account_nothing_is_sent_where_one_is_needed(here: Shop) -> None:
    with pytest.raises(Denied, match="needs a connected account of shop"):
        await here.run("SHOP_GET_AN_ITEM", credential=None, id=1)
    assert here.service.seen == []


async def test_what_is_missing_or_cannot_be_sent_is_named(here: Shop) -> None:
    for slug, arguments, words in (
        ("SHOP_GET_AN_ITEM", {}, "`id` is missing"),
        ("SHOP_GET_AN_ITEM", {"id": None}, "`id` is missing"),
        ("SHOP_GET_AN_ITEM", {"id": ".."}, "`id` is part of an address"),
        ("SHOP_SEND_A_LIST", {}, "`body` is missing"),
        ("SHOP_UPLOAD_A_PICTURE", {"title": "x", "picture": {"s3key": "other/a"}}, "names no file of this session"),
        ("SHOP_UPLOAD_A_PICTURE", {"title": "x", "picture": {"base64": "?"}}, "is not base64"),
        ("SHOP_SEARCH_EVERYTHING", {"X-Names": ["a\r\nHost: evil"]}, "`X-Names` goes into a header"),
        ("SHOP_SEARCH_EVERYTHING", {"each": ["\ud800"]}, "half a character"),
    ):
        call = ToolCall(slug=slug, arguments=arguments, session=session(), credential=KEY)
        with pytest.raises(InvalidRequest, match=words):
            await here.tools.run(call)
    with pytest.raises(NotFound):
        await here.tools.run(ToolCall(slug="SHOP_NO", arguments={}, session=session()))
    assert here.service.seen == []


@pytest.mark.parametrize(("status", "words"), [
    (400, "answered with the status 400: too many soaps"),
    (401, "connect the account again"),
    (403, "may need another scope"),
    (404, "there is no such thing"),
    (429, "rate limit"),
    (500, "it may work later"),
])  # fmt: skip
async def test_a_refusal_is_a_result_with_the_services_own_words(status: int, words: str) -> None:
    async def refuse(asked: Asked) -> None:
        await asked.json('{"errors": [{"code": 1, "message": "too many soaps"}]}', status)

    async with serving(refuse) as service, calling() as caller:
        tools = OpenApiTools([compile_openapi(shop(service.url), Wanted(slug="shop"))], caller)
        result = await Shop(service, tools, {}).run("SHOP_GET_AN_ITEM", id=1)
    assert words in result.error
    assert "too many soaps" in result.error
    assert (result.http_status, result.data["errors"][0]["code"]) == (status, 1)


@pytest.mark.parametrize(("body", "data"), [
    ("[1, 2]", {"items": [1, 2]}), ('"text"', {"value": "text"}), ("null", {}), ('{"other": {}}', {"other": {}}),
])  # fmt: skip
async def test_an_answer_that_breaks_its_schema_is_told_as_it_is(body: str, data: Json) -> None:
    async def answer(asked: Asked) -> None:
        await asked.json(body)

    async with serving(answer) as service, calling() as caller:
        tools = OpenApiTools([compile_openapi(shop(service.url), Wanted(slug="shop"))], caller)
        result = await Shop(service, tools, {}).run("SHOP_GET_AN_ITEM", id=1)
    assert (result.data, result.error) == (data, "")


async def test_a_toolkit_that_was_given_other_hosts_is_not_called_where_its_document_says(here: Shop) -> None:
    with pytest.raises(InvalidRequest, match="none of the hosts of this toolkit"):
        compile_openapi(here.document, Wanted(slug="shop", hosts=("api.shop.example",)))


class TestOpenApiTools(ToolSourceContract):
    """The suite of every source."""

    @pytest.fixture
    async def source(self) -> AsyncIterator[ToolSource]:
        async def answer(asked: Asked) -> None:
            await asked.json("{}")

        async with serving(answer) as service, calling() as caller:
            yield OpenApiTools([compile_openapi(shop(service.url))], caller)

    @pytest.fixture
    def session(self) -> Session:
        return session()

    @pytest.fixture
    def works(self) -> tuple[str, Json]:
        return "CORNER_SHOP_SEARCH_EVERYTHING", {"flag": True}
