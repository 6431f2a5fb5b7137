"""Bodies are bounded in size and in time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from workbench.errors import InvalidRequest, QuotaExceeded, TooLarge, UnsupportedMedia
from workbench.server import limits
from workbench.server.limits import read_body, values_in

JSON = {"content-type": "application/json; charset=utf-8"}


def sending(*parts: bytes, then_nothing: bool = False, leaving: bool = False) -> Any:
    left = list(parts)

    async def receive() -> dict[str, object]:
        if left:
            part = left.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(left) or then_nothing or leaving}
        if leaving:
            return {"type": "http.disconnect"}
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def test_a_body_is_put_together_of_its_parts() -> None:
    headers = Headers({**JSON, "transfer-encoding": "chunked"})
    assert await read_body(headers, sending(b"{", b"", b"}"), 10) == b"{}"


async def test_without_a_body_nothing_is_waited_for_and_no_type_is_asked() -> None:
    assert await read_body(Headers({}), sending(), 10) == b""
    assert await read_body(Headers({"content-length": "0"}), sending(), 10) == b""


async def test_too_much_is_noticed_while_it_comes() -> None:
    headers = Headers({**JSON, "transfer-encoding": "chunked"})
    with pytest.raises(TooLarge):
        await read_body(headers, sending(b"123456", b"123456", b"1"), 10)


async def test_what_says_that_it_is_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_OVERRUN_S", 0.01)
    with pytest.raises(TooLarge, match="10 bytes"):
        await read_body(Headers({**JSON, "content-length": "11"}), sending(b"1", then_nothing=True), 10)


async def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_BODY_TIMEOUT_S", 0.01)
    with pytest.raises(InvalidRequest, match="did not arrive"):
        await read_body(Headers({**JSON, "content-length": "5"}), sending(b"1", then_nothing=True), 10)


async def test_who_leaves_in_the_middle_is_noticed() -> None:
    with pytest.raises(ClientDisconnect):
        await read_body(Headers({**JSON, "content-length": "5"}), sending(b"1", leaving=True), 10)


@pytest.mark.parametrize("kind", ["", "text/json", "application/json5", "multipart/form-data"])
async def test_another_type_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedMedia, match="application/json"):
        await read_body(Headers({"content-type": kind, "content-length": "2"}), sending(b"{}"), 10)


MIB = 1024 * 1024
CODE = 'print({"a": [1, 2, "\\\\"], "b": "c\\n"})\n'


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":[' + b"{}," * 200_000 + b"{}]}",
        b"[" * 200_000,
        b"[" + b'"",' * 200_000 + b'""]',
        b"{" + b'"a":1,' * 200_000 + b'"b":2}',
        # A string that ends in a backslash ends all the same.
        b'["\\\\",' + b"1," * 200_000 + b"1]",
        b'["\\\\\\"",' + b"1," * 200_000 + b"1]",
        # Half of a character that would be a quote in UTF-8.
        ('["\u2200",' + "{}," * 200_000 + "1]").encode("utf-16-le"),
    ],
)
async def test_more_values_than_anybody_needs_are_refused_before_they_are_made(body: bytes) -> None:
    with pytest.raises(TooLarge, match="100,000 values"):
        await read_body(Headers({**JSON, "content-length": str(len(body))}), sending(body), 8 * MIB)


@pytest.mark.parametrize("code", ["," * 4 * MIB, '",{[' * MIB, "\\" * 2 * MIB + ",{[" * 1000, CODE * 100_000])
def test_code_of_any_kind_is_one_value(code: str) -> None:
    assert values_in(json.dumps({"code": code, "time_limit_s": 5}).encode()) == 2


def test_values_are_counted_and_never_too_few() -> None:
    for value in ([], {}, [1], [[], {}, "a,b"], {"a": {"b": [1, 2, 3]}}, [{"x": i} for i in range(2000)]):
        text = json.dumps(value).encode()
        assert values_in(text) >= _values(value)
    assert values_in(json.dumps([{"x": ","} for _ in range(2000)]).encode()) == 4000


def _values(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (1 if isinstance(value, dict | list) else 0) + sum(max(_values(one), 0) for one in inner)


async def test_what_a_body_takes_up_is_told_as_it_comes_with_the_values_in_it() -> None:
    told: list[int] = []
    headers = Headers({**JSON, "transfer-encoding": "chunked"})
    await read_body(headers, sending(b"[1,", b"2]"), 10, told.append)
    assert told == [3, 2, 400]


async def test_a_body_for_which_there_is_no_room_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_OVERRUN_S", 0.01)

    def full(_: int) -> None:
        raise QuotaExceeded("full")

    with pytest.raises(QuotaExceeded):
        await read_body(Headers({**JSON, "content-length": "5"}), sending(b"1", then_nothing=True), 10, full)
