"""A tool of every shipped toolkit is called, by every way in. What arrives is judged by the provider's own description,
read by another library, and for Google by what its own client sends; never by what built it.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import jsonschema_rs
import openapi_core
import pytest
from openapi_core.datatypes import RequestParameters
from tests.toolkits.service import Asked
from tests.toolkits.shipped.samples import GOOGLE, OTHERS, Sample
from tests.toolkits.shipped.world import VALUES, answering, shipped
from werkzeug.datastructures import Headers, ImmutableMultiDict

from workbench.model.toolkit import AuthKind
from workbench.toolkits.shipped.services import SERVICES

HERE = Path(__file__).parent
WAYS = [(one.slug, number) for one in SERVICES for number in range(len(one.auth))]
# How a service wants a key is its own; how it describes that is not to be asked of the caller.
KEYS = {
    "stripe": ("Authorization", f"Bearer {VALUES['api_key']}"),
    "sendgrid": ("Authorization", f"Bearer {VALUES['api_key']}"),
    "figma": ("X-Figma-Token", VALUES["api_key"]),
    "trello": (
        "Authorization",
        f'OAuth oauth_consumer_key="{VALUES["api_key"]}", oauth_token="{VALUES["token"]}"',
    ),
}
UNSENT = {"slack": {"token"}, "trello": {"key", "token"}}


def sample_of(toolkit: str) -> Sample:
    return GOOGLE.get(toolkit) or OTHERS[toolkit]


@pytest.mark.parametrize(("toolkit", "way"), WAYS, ids=[f"{slug}-{way}" for slug, way in WAYS])
async def test_a_tool_of_every_toolkit_reaches_the_service_with_the_credential(toolkit: str, way: int) -> None:
    """By every kind of account that it can be connected with."""
    sample = sample_of(toolkit)
    async with shipped(answering({"ok": True, "id": "made-1"})) as world:
        result = await world.run(sample.slug, sample.arguments, way=way)
        scheme = next(one for one in await world.tools.toolkits() if one.slug == toolkit).auth[way]
        assert (result.error, result.http_status, result.data) == ("", 200, {"ok": True, "id": "made-1"})
        [asked] = world.service.seen
    basic = base64.b64encode(f"{VALUES['username']}:{VALUES['password']}".encode()).decode()
    name, value = {
        AuthKind.OAUTH2: ("Authorization", f"Bearer {VALUES['access_token']}"),
        AuthKind.BEARER_TOKEN: ("Authorization", f"Bearer {VALUES['token']}"),
        AuthKind.BASIC: ("Authorization", f"Basic {basic}"),
        AuthKind.API_KEY: KEYS.get(toolkit, ("", "")),
    }[scheme.kind]
    assert asked.header(name) == value


@pytest.mark.parametrize("toolkit", GOOGLE)
async def test_what_is_sent_to_google_is_what_its_own_client_sends(toolkit: str) -> None:
    """Method, address and body; recorded by `excerpts.py`."""
    theirs = json.loads((HERE / "google_requests.json").read_text(encoding="utf-8"))[toolkit]
    sample = GOOGLE[toolkit]
    async with shipped(answering({})) as world:
        await world.run(sample.slug, sample.arguments)
        asked = world.last
    uri = urllib.parse.urlsplit(theirs["uri"])
    query = [pair for pair in urllib.parse.parse_qsl(uri.query) if pair != ("alt", "json")]
    assert asked.method == theirs["method"]
    # A client may quote more than it has to.
    assert asked.path == f"/{toolkit}{urllib.parse.unquote(uri.path)}"
    assert asked.target.partition("?")[0].count("/") == uri.path.count("/") + 1
    assert sorted(asked.query) == sorted(query)
    assert (json.loads(asked.body) if asked.body else None) == theirs["body"]


@pytest.mark.filterwarnings("ignore:Use of allowEmptyValue:DeprecationWarning")
@pytest.mark.parametrize("toolkit", sorted(OTHERS.keys() - {"stripe"}))
async def test_what_is_sent_is_what_the_description_of_the_provider_asks_for(toolkit: str) -> None:
    """Path, query, headers and body, as openapi-core reads them by that description."""
    description = _described(toolkit)
    sample = OTHERS[toolkit]
    async with shipped(answering({"ok": True})) as world:
        await world.run(sample.slug, sample.arguments)
        asked = world.last
        description["servers"] = [{"url": f"{world.service.url}/{toolkit}"}]
        request = _request(asked, world.service.url, toolkit, sample.path)
    reader = openapi_core.OpenAPI.from_dict(description, config=openapi_core.Config(spec_validator_cls=None))
    read = reader.unmarshal_request(request)
    assert not read.errors
    places = (read.parameters.path, read.parameters.query, read.parameters.header, _plain(read.body))
    arrived = {name: _plain(one) for place in places for name, one in dict(place or {}).items()}
    for name, given in sample.arguments.items():
        assert arrived[name] == given or str(arrived[name]) == str(given), name


async def test_a_form_with_parts_in_parts_reads_as_it_was_meant() -> None:
    """Stripe's, which openapi-core cannot read: names as `address[city]`, lists as `expand[]`."""
    given = {
        "email": "ada@example.com",
        "address": {"city": "London", "line1": "1 & 2, St. James's"},
        "expand": ["tax", "sources"],
        "metadata": {"a b": "c=d", "e": ""},
        "balance": -5,
    }
    async with shipped(answering({"id": "cus_1"})) as world:
        result = await world.run("STRIPE_CREATE_CUSTOMER", given)
        asked = world.last
    assert (result.error, asked.method, asked.path) == ("", "POST", "/stripe/v1/customers")
    assert (asked.header("content-type"), asked.header("idempotency-key")) == (
        "application/x-www-form-urlencoded",
        "once-1",
    )
    read: dict[str, Any] = {}
    for name, value in urllib.parse.parse_qsl(asked.body.decode(), keep_blank_values=True):
        head, _, inner = name.rstrip("]").partition("[")
        if "[" not in name:
            read[head] = int(value) if head == "balance" else value
        elif not inner or inner.isdigit():
            read.setdefault(head, []).append(value)
        else:
            read.setdefault(head, {})[inner] = value
    assert read == given
    operation = _described("stripe")["paths"]["/v1/customers"]["post"]
    jsonschema_rs.validate(operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"], read)


@pytest.mark.parametrize("toolkit", [*GOOGLE, *OTHERS])
async def test_the_samples_are_what_their_tools_say_they_take(toolkit: str) -> None:
    """A model that keeps to the schema gets through; one that leaves out what is needed does not."""
    sample = sample_of(toolkit)
    async with shipped(answering({})) as world:
        tool = next(one for one in await world.tools.tools() if one.slug == sample.slug)
    judge = jsonschema_rs.validator_for(tool.input_schema)
    assert judge.is_valid(sample.arguments)
    for name in tool.input_schema.get("required", ()):
        assert not judge.is_valid({key: one for key, one in sample.arguments.items() if key != name})


def test_there_is_a_sample_of_every_toolkit() -> None:
    assert {one.slug for one in SERVICES} == GOOGLE.keys() | OTHERS.keys()


def _described(toolkit: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "descriptions" / f"{toolkit}.json").read_text(encoding="utf-8"))
    for item in found["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and "parameters" in operation:
                operation["parameters"] = [
                    one for one in operation["parameters"] if one.get("name") not in UNSENT.get(toolkit, ())
                ]
    return found


class _Request:
    """As openapi-core wants it."""

    def __init__(self, host: str, asked: Asked, parameters: Any, path: str) -> None:
        self.host_url = host
        self.path = path
        self.method = asked.method.lower()
        self.body = asked.body or None
        self.content_type = asked.header("content-type")
        self.parameters = parameters


def _request(asked: Asked, host: str, toolkit: str, pattern: str) -> _Request:
    path = asked.target.partition("?")[0]
    wanted = f"/{toolkit}" + re.sub(r"\\{[^{}]+\\}", "[^/]+", re.escape(pattern))
    assert re.fullmatch(wanted, path)
    parameters = RequestParameters(query=ImmutableMultiDict(asked.query), header=Headers(asked.headers))
    return _Request(host, asked, parameters, path)


def _plain(value: Any) -> Any:
    """What was read, as plain data; other libraries make objects of it."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {
            name: _plain(getattr(value, name))
            for name in value.__dataclass_fields__
            if getattr(value, name) is not None
        }
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value
