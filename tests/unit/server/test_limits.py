"""Bodies are bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from workbench.errors import InvalidRequest, TooLarge, UnsupportedMedia
from workbench.server import limits
from workbench.server.limits import read_body

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
