"""Arguments as parts of a request: what may be where, and that nothing gets out of its place."""

from __future__ import annotations

import email
import email.policy
import json
from typing import Any

import pytest

from workbench.errors import InvalidRequest
from workbench.model.connection import Credential, Secret
from workbench.model.toolkit import AuthKind, AuthScheme
from workbench.toolkits.building import built, filled
from workbench.toolkits.operations import Body, BodyField, BodyKind, Media, Operation, Parameter


def operation(*parameters: Parameter, path: str = "/a", **more: Any) -> Operation:
    return Operation(method="POST", base_url="https://x.example/", path=path, parameters=parameters, **more)


def path_of(value: Any, style: Any = "simple", explode: bool = False) -> str:
    one = Parameter(name="id", place="path", style=style, explode=explode, required=True)
    return built(operation(one, path="/a/{id}/b"), {"id": value}).url.removeprefix("https://x.example")


@pytest.mark.parametrize(("style", "explode", "value", "path"), [
    ("simple", False, 5, "/a/5/b"), ("simple", False, "a/b?c#d%", "/a/a%2Fb%3Fc%23d%25/b"),
    ("simple", False, True, "/a/true/b"), ("simple", False, {"x": 1, "y": 2}, "/a/x,1,y,2/b"),
    ("simple", True, {"x": 1, "y": 2}, "/a/x=1,y=2/b"), ("label", False, "blue", "/a/.blue/b"),
    ("label", True, ["a", "b"], "/a/.a.b/b"), ("matrix", False, "blue", "/a/;id=blue/b"),
    ("matrix", True, ["a", "b"], "/a/;id=a;id=b/b"), ("matrix", True, {"x": 1}, "/a/;x=1/b"),
    ("matrix", False, {"x": 1}, "/a/;id=x,1/b"), ("reserved", False, "projects/p 1/x", "/a/projects/p%201/x/b"),
    ("simple", False, "{id}", "/a/%7Bid%7D/b"), ("simple", False, "...", "/a/.../b"),
])  # fmt: skip
def test_paths(style: str, explode: bool, value: Any, path: str) -> None:
    assert path_of(value, style, explode) == path


@pytest.mark.parametrize(("value", "style"), [
    ("", "simple"), (".", "simple"), ("..", "simple"), ([], "simple"), ("a/../b", "reserved"), ("..", "reserved"),
    ("./x", "reserved"),
])  # fmt: skip
def test_no_value_leads_to_another_path(value: Any, style: str) -> None:
    with pytest.raises(InvalidRequest, match="`id` is part of an address"):
        path_of(value, style)


def test_an_address_has_no_query_or_fragment_of_the_callers() -> None:
    assert path_of("x?y=1#z", "reserved") == "/a/x%3Fy=1%23z/b"
    assert path_of("x\r\nHost: evil") == "/a/x%0D%0AHost%3A%20evil/b"


@pytest.mark.parametrize("value", ["evil.example/", "a.b", "", "a@b", "x#", "x\ny", "-a", "é"])
def test_an_account_fills_in_a_part_of_a_host_and_no_more(value: str) -> None:
    scheme = AuthScheme(kind=AuthKind.API_KEY)
    made = Credential(kind=scheme.kind, scheme=scheme, values={"sub": Secret(value)}, account="ca_1")
    with pytest.raises(InvalidRequest, match="connect it again"):
        filled("https://{sub}.zen.example/v2", made)
    with pytest.raises(InvalidRequest, match="connect it again"):
        filled("https://{sub}.zen.example/v2", None)
    good = Credential(kind=scheme.kind, scheme=scheme, values={"sub": Secret("acme-1")}, account="ca_1")
    assert filled("https://{sub}.zen.example/v2", good) == "https://acme-1.zen.example/v2"


@pytest.mark.parametrize("value", ["a\r\nX: 1", "a\nb", "\0", "ü", "x" * 9000])
def test_headers_have_one_line(value: str) -> None:
    with pytest.raises(InvalidRequest, match="`h` goes into a header"):
        built(operation(Parameter(name="h", place="header")), {"h": value})


def test_what_is_fixed_is_sent_whatever_is_given() -> None:
    version = Parameter(name="Notion-Version", place="header", fixed="2022-06-28")
    made = built(operation(version), {"Notion-Version": "mine"})
    assert ("Notion-Version", "2022-06-28") in made.headers


def test_what_is_null_was_not_given_and_an_empty_list_is_left_out() -> None:
    one = Parameter(name="q", place="query", style="form")
    empty: list[Any] = [None, []]
    for value in empty:
        assert built(operation(one), {"q": value}).url == "https://x.example/a"


@pytest.mark.parametrize(("style", "value", "query"), [
    ("brackets", ["a", "b"], "q[]=a&q[]=b"), ("deepObject", {"a": {"b": [1, {"c": 2}]}}, "q[a][b][]=1&q[a][b][1][c]=2"),
    ("json", {"a": [1]}, "q=%7B%22a%22%3A%5B1%5D%7D"), ("form", {"a": 1, "b": None}, "a=1"),
])  # fmt: skip
def test_queries(style: Any, value: Any, query: str) -> None:
    one = Parameter(name="q", place="query", style=style, explode=True)
    assert built(operation(one), {"q": value}).url.partition("?")[2] == query


def test_a_file_with_its_description_goes_to_the_address_for_files() -> None:
    made = built(
        operation(
            Parameter(name="fields", place="query", style="form"),
            body=Body(kind=BodyKind.JSON, fields=(BodyField(name="name"),)),
            media=Media(path="/upload/a", argument="file"),
        ),
        {"name": "ü", "fields": "id", "file": {"s3key": "m/x.csv", "mimetype": "text/csv"}},
        files={"m/x.csv": b"a,b\r\n"},
    )
    assert made.url == "https://x.example/upload/a?uploadType=multipart&fields=id"
    kind = dict(made.headers)["Content-Type"]
    assert made.body is not None
    message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + made.body, policy=email.policy.HTTP)
    first, second = message.iter_parts()
    assert message.get_content_type() == "multipart/related"
    assert json.loads(first.get_content()) == {"name": "ü"}
    assert (second.get_content_type(), second.get_payload(decode=True)) == ("text/csv", b"a,b\r\n")


def test_without_the_file_it_goes_where_it_always_goes() -> None:
    body = Body(kind=BodyKind.JSON, fields=(BodyField(name="name"),))
    made = built(operation(body=body, media=Media(path="/upload/a", argument="file")), {"name": "x"})
    assert (made.url, made.body) == ("https://x.example/a", b'{"name": "x"}')


@pytest.mark.parametrize("value", [3, [], {"s3key": "m/other"}, {"name": "x"}, {"base64": "a"},
                                   {"base64": "AAAA", "mimetype": "a\r\nb"}])  # fmt: skip
def test_what_is_no_file_is_refused_by_name(value: Any) -> None:
    body = Body(kind=BodyKind.RAW, whole="data", is_file=True)
    with pytest.raises(InvalidRequest, match="`data"):
        built(operation(body=body), {"data": value}, files={"m/x": b""})


def test_nothing_of_a_request_prints() -> None:
    made = built(operation(Parameter(name="q", place="query")), {"q": "canary"})
    assert "canary" not in repr(made)


@pytest.mark.parametrize("value", [{"\ud800": 1}, {"a": "\ud800"}, ["\ud800"], {"a": {"b": ["\ud800"]}}])
def test_half_a_character_within_an_argument_is_told(value: object) -> None:
    for style in ("form", "deepObject"):
        operation = Operation(
            method="GET",
            base_url="https://x.test",
            path="/",
            parameters=(Parameter(name="q", place="query", style=style),),
        )
        with pytest.raises(InvalidRequest, match="half a character"):
            built(operation, {"q": value})
