"""A service that was added by its document, connected and called directly: from outside, as a tool, and from inside."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.composio.tools.calling import Calling, configured
from tests.host.support import eventually
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running
from tests.toolkits.service import CANARY, HERE
from tests.toolkits.standing_service import PICTURE, Standing, standing


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Running, Standing]]:
    """One server for all tests here, with the shop as a toolkit."""
    with (
        standing() as service,
        own_settings(toolkits_allow=HERE, fetch_allow=HERE) as settings,
        running(settings) as server,
    ):
        with server.client("") as client:
            client.headers["x-api-key"] = server.key
            added = client.post("/v1/toolkits", json={"slug": "shop", "openapi": f"{service.url}/openapi.json"})
            assert added.status_code == 201, added.text
        yield server, service


@pytest.fixture
def shop(world: tuple[Running, Standing]) -> Standing:
    world[1].seen.clear()
    return world[1]


@pytest.fixture
def client(world: tuple[Running, Standing]) -> Iterator[httpx2.Client]:
    server, _ = world
    with server.client("") as client:
        client.headers["x-api-key"] = server.key
        yield client


@pytest.fixture
def made(client: httpx2.Client) -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    for name in names:
        client.delete(f"/v1/sessions/{name}")


@pytest.fixture
def calling(client: httpx2.Client, made: list[str]) -> Calling:
    """A session whose user is connected with the shop."""
    calling = configured(client, made, proxy_execute={"enable": True})
    connect(calling)
    return calling


def connect(calling: Calling) -> None:
    begun = calling.post("link", {"toolkit": "shop"})
    assert begun.status_code == 201, begun.text
    page = urlsplit(begun.json()["redirect_url"]).path
    with httpx2.Client(base_url=calling.client.base_url, trust_env=False) as browser:
        assert browser.post(page, data={"kind": "API_KEY", "field.api_key": CANARY}).status_code == 303


def raw(calling: Calling, endpoint: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    answer = calling.post("proxy_execute", {"toolkit_slug": "shop", "endpoint": endpoint, "method": method, **more})
    assert answer.status_code == 200, answer.text
    assert CANARY not in answer.text
    told: dict[str, Any] = answer.json()
    assert told["result_type"] == "completed"
    assert None not in (told.get("headers", {}), told.get("binary_data", {}))
    return told


def test_a_tool_of_the_document_is_called_with_the_account(calling: Calling, shop: Standing) -> None:
    told = calling.run("SHOP_GET_AN_ITEM", {"id": 7})
    assert told["error"] is None
    assert told["data"]["target"] == "/v1/items/7"
    assert told["data"]["headers"]["x-shop-key"] == "***"
    assert shop.of("/v1/items/7")[0]["headers"]["x-shop-key"] == CANARY
    assert "`id` " in calling.run("SHOP_GET_AN_ITEM", {})["error"]


def test_a_relative_and_an_absolute_address_lead_to_the_service(calling: Calling, shop: Standing) -> None:
    parameters = [
        {"name": "q", "value": "a b", "type": "query"}, {"name": "q", "value": "c", "type": "query"},
        {"name": "X-Mine", "value": "1", "type": "header"},
    ]  # fmt: skip
    told = raw(calling, "/things?x=1", "POST", body={"a": [None]}, parameters=parameters)
    assert (told["status"], told["headers"]["content-type"]) == (200, "application/json")
    [asked] = shop.of("/v1/things")
    assert (asked["method"], asked["target"]) == ("POST", "/v1/things?x=1&q=a+b&q=c")
    assert (asked["body"], asked["headers"]["content-type"]) == ('{"a": [null]}', "application/json")
    assert (asked["headers"]["x-mine"], asked["headers"]["x-shop-key"]) == ("1", CANARY)
    assert raw(calling, f"{shop.url}/elsewhere")["data"]["target"] == "/elsewhere"
    assert raw(calling, "/v", "HEAD")["status"] == 200


@pytest.mark.parametrize("endpoint", [
    "http://127.0.0.9/x", "https://example.com/", "http://127.0.0.2:1/", "file:///etc/passwd", "http://a@127.0.0.2/",
    "//127.0.0.9/x\r\nHost: y",
])  # fmt: skip
def test_no_other_address_is_asked(calling: Calling, shop: Standing, endpoint: str) -> None:
    ask = {"toolkit_slug": "shop", "endpoint": endpoint, "method": "GET"}
    answer = calling.post("proxy_execute", ask)
    assert answer.status_code in (400, 403), answer.text
    assert CANARY not in answer.text
    assert [one for one in shop.seen if one["target"] != "/openapi.json"] == []


def test_nor_by_a_redirect(calling: Calling) -> None:
    told = raw(calling, "/away")
    assert told["status"] == 504
    assert "127.0.0.9" in told["data"]["error"]


@pytest.mark.parametrize("header", ["Authorization", "Cookie", "Host", "Content-Length"])
def test_headers_of_the_account_and_the_connection_are_not_the_callers(calling: Calling, header: str) -> None:
    ask = {"toolkit_slug": "shop", "endpoint": "/x", "method": "GET"}
    answer = calling.post("proxy_execute", {**ask, "parameters": [{"name": header, "value": "1", "type": "header"}]})
    assert answer.status_code == 400
    assert header in answer.text


def test_what_the_service_refuses_is_its_status_and_what_breaks_off_is_not_sent_again(
    calling: Calling, shop: Standing
) -> None:
    assert raw(calling, "/teapot")["status"] == 418
    told = raw(calling, "/broken", "POST", body={})
    assert told["status"] == 504
    assert "may have been carried out" in told["data"]["error"]
    assert len(shop.of("/v1/broken")) == 1


def test_the_same_call_in_flight_is_made_once(calling: Calling, shop: Standing) -> None:
    ask = {"toolkit_slug": "shop", "endpoint": "/slow", "method": "POST", "body": {"pay": 5}}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(calling.post, "proxy_execute", ask) for _ in range(2)]
        eventually(lambda: bool(shop.of("/v1/slow")), "it has begun")
        # Long enough for both to be there, and to be answered by white space first.
        time.sleep(2)
        shop.go.set()
        answers = [one.result() for one in both]
    shop.go.clear()
    assert [one.json()["status"] for one in answers] == [200, 200]
    assert len(shop.of("/v1/slow")) == 1


def test_a_file_comes_through_the_mount_and_by_a_link(calling: Calling) -> None:
    told = raw(calling, "/picture")
    file = told["binary_data"]
    assert (told["status"], file["content_type"], file["size"]) == (200, "image/png", len(PICTURE))
    assert "data" not in told
    assert httpx2.get(file["url"], trust_env=False).content == PICTURE
    code = f"open('/mnt/files/{file['mount_relative_path']}', 'rb').read(4)"
    assert calling.python(code) == repr(PICTURE[:4])


def test_a_file_is_sent_as_bytes_by_its_place_in_the_mount_or_from_a_url(calling: Calling, shop: Standing) -> None:
    calling.python("open('/mnt/files/a.bin', 'wb').write(bytes(range(256)))")
    content = bytes(range(256))
    kinds = [
        {"base64": base64.b64encode(content).decode(), "content_type": "image/x-odd"},
        {"url": "/mnt/files/a.bin"},
    ]
    for binary in kinds:
        assert raw(calling, "/put", "PUT", binary_body=binary)["status"] == 200
    assert [one["body"].encode("latin-1") for one in shop.of("/v1/put")] == [content, content]
    assert [one["headers"]["content-type"] for one in shop.of("/v1/put")] == ["image/x-odd", "application/octet-stream"]
    raw(calling, "/put", "PUT", binary_body={"url": f"{shop.url}/v1/picture"})
    assert shop.of("/v1/put")[-1]["body"].encode("latin-1") == PICTURE
    for binary in ({}, {"url": "a", "base64": "AA=="}, {"base64": "?"}, {"url": "/etc/passwd"}, {"url": "other/a"}):
        ask = {"toolkit_slug": "shop", "endpoint": "/put", "method": "PUT", "binary_body": binary}
        assert calling.post("proxy_execute", ask).status_code == 400


def test_code_inside_calls_the_service_without_its_key(calling: Calling, shop: Standing) -> None:
    told = calling.python("proxy_execute('POST', '/inside', 'shop', {'q': 1}, {'a': 1}, {'X-Mine': 'x'})")
    assert CANARY not in told
    assert "'target': '/v1/inside?q=1'" in told
    assert shop.of("/v1/inside")[0]["headers"]["x-shop-key"] == CANARY
    assert "API returned status 418" in calling.python("proxy_execute('GET', '/teapot', 'shop')[1]")
    code = "data, error = proxy_execute('GET', '/picture', 'shop')\nlen(open(data['file_path'], 'rb').read())"
    assert calling.python(code) == str(len(PICTURE))
    assert "not at a host" in calling.python("proxy_execute('GET', 'http://127.0.0.9/', 'shop')[1]")


def test_the_tool_for_raw_calls_tells_the_same(calling: Calling) -> None:
    arguments = {"toolkit": "shop", "endpoint": "/a", "method": "GET", "query_params": {"x": 1}}
    told = calling.data("COMPOSIO_PROXY_EXECUTE", arguments)
    assert (told["status"], told["data"]["target"]) == (200, "/v1/a?x=1")


def test_where_they_are_switched_off_none_is_made(client: httpx2.Client, made: list[str], shop: Standing) -> None:
    off = configured(client, made, workbench={"enable": True, "enable_proxy_execution": False})
    ask = {"toolkit_slug": "shop", "endpoint": "/x", "method": "GET"}
    answer = off.post("proxy_execute", ask)
    assert answer.status_code == 400
    assert "switched off" in answer.text
    assert "switched off" in off.python("proxy_execute('GET', '/x', 'shop')[1]")
    other = configured(client, made, toolkits={"enable": ["github"]})
    assert other.post("proxy_execute", ask).status_code == 403
    assert shop.of("/v1/x") == []


def test_who_has_no_account_is_told_to_connect_one(client: httpx2.Client, made: list[str]) -> None:
    answer = client.post("/api/v3.1/tool_router/session", json={"user_id": "stranger"})
    made.append(answer.json()["session_id"])
    ask = {"toolkit_slug": "shop", "endpoint": "/x", "method": "GET"}
    refused = Calling(client, made[-1]).post("proxy_execute", ask)
    assert refused.status_code == 400
    assert refused.json()["error"]["slug"] == "ToolRouterV2_NoActiveConnection"
    assert "connect" in refused.text


def test_a_place_that_refuses_everybody_takes_no_account_away(calling: Calling) -> None:
    assert raw(calling, "/forbidden")["status"] == 401
    assert raw(calling, "/things")["status"] == 200
