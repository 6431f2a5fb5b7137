"""One call to a service: it goes where it may go, once, within its bounds, and with the credential in its place."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.toolkits.service import (
    CANARY,
    FORBIDDEN,
    HERE,
    POLICY,
    QUICK,
    Asked,
    basic,
    bearer,
    calling,
    key,
    oauth,
    order,
    serving,
)

from workbench.egress.policy import AddressPolicy
from workbench.errors import Denied, InvalidRequest, UpstreamError
from workbench.model.connection import Credential
from workbench.toolkits.sending import ALLOW_SETTING, ServiceCaller


async def _fine(asked: Asked) -> None:
    await asked.json('{"ok": true}', X_RateLimit_Remaining="41", Set_Cookie="session=1")


async def test_a_call_is_answered_with_its_data_and_the_headers_that_say_something() -> None:
    async with serving(_fine) as service, calling() as caller:
        answer = await caller.call(order(service, "/a?b=c", headers=(("X-Mine", "1"),)))
    assert (answer.status, answer.data, answer.problem) == (200, {"ok": True}, "")
    assert answer.headers == {
        "content-length": "12", "content-type": "application/json", "x-ratelimit-remaining": "41"
    }  # fmt: skip
    [asked] = service.seen
    assert (asked.method, asked.target, asked.header("x-mine")) == ("GET", "/a?b=c", "1")
    assert asked.header("authorization") == ""


@pytest.mark.parametrize(
    ("credential", "header", "value"),
    [
        (bearer(), "authorization", f"Bearer {CANARY}"),
        (oauth(), "authorization", f"Bearer {CANARY}"),
        (key(), "authorization", CANARY),
        (key(name="X-Api-Key"), "x-api-key", CANARY),
        (key(prefix="Token "), "authorization", f"Token {CANARY}"),
        (basic(password="open sesame"), "authorization", "Basic YW5uQGV4YW1wbGUuY29tOm9wZW4gc2VzYW1l"),
    ],
)
async def test_a_credential_goes_where_its_scheme_says(credential: Credential, header: str, value: str) -> None:
    async with serving(_fine) as service, calling() as caller:
        await caller.call(order(service, credential=credential, headers=(("authorization", "of the caller's"),)))
    seen = [one for name, one in service.seen[0].headers if name.lower() == header]
    assert value in seen
    assert seen == [value] or header != "authorization"


async def test_a_key_of_the_query_is_added_to_what_is_there() -> None:
    async with serving(_fine) as service, calling() as caller:
        await caller.call(order(service, "/a?b=c%2Fd", credential=key(place="query", name="api_key")))
    assert service.seen[0].query == [("b", "c/d"), ("api_key", CANARY)]


async def test_no_other_host_than_the_toolkits_is_asked() -> None:
    async with serving(_fine) as service, calling() as caller:
        for hosts in ((), ("example.com",), (HERE,), ("*.0.0.2",), (f"{HERE}:1",)):
            with pytest.raises(Denied, match="host of this toolkit"):
                await caller.call(order(service, hosts=hosts, credential=bearer()))
    assert service.seen == []


async def test_private_addresses_are_refused_unless_they_are_named() -> None:
    async with serving(_fine, FORBIDDEN) as service, calling() as caller:
        with pytest.raises(Denied, match=ALLOW_SETTING):
            await caller.call(order(service))
    assert service.seen == []


async def test_a_host_that_is_named_may_be_anywhere() -> None:
    async with serving(_fine, "127.0.0.1") as service, calling(AddressPolicy.parse("localhost")) as caller:
        port = service.host.rpartition(":")[2]
        here = replace(order(service), url=f"http://localhost:{port}/", hosts=(f"localhost:{port}",))
        assert (await caller.call(replace(here, credential=bearer()))).status == 200


async def test_a_credential_is_not_sent_in_the_clear_to_a_host_that_nobody_named() -> None:
    async with calling() as caller:
        for url in ("http://example.com/", "http://93.184.216.34/"):
            ask = replace(
                order(serving_nowhere := _Nowhere(), credential=bearer()),  # type: ignore[arg-type]
                url=url,
                hosts=("example.com", "93.184.216.34"),
            )
            assert serving_nowhere.host
            with pytest.raises(Denied, match="not https"):
                await caller.call(ask)


class _Nowhere:
    host, url = "example.com", "http://example.com"


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "a b", "x\ny"])
async def test_headers_of_the_connection_are_not_the_callers(name: str) -> None:
    async with serving(_fine) as service, calling() as caller:
        with pytest.raises(InvalidRequest, match="header"):
            await caller.call(order(service, headers=((name, "1"),)))
        with pytest.raises(InvalidRequest, match="header"):
            await caller.call(order(service, headers=(("x", "1\r\nHost: evil"),)))
    assert service.seen == []


async def test_what_is_sent_arrives_whole_and_once() -> None:
    body = json.dumps({"text": "ü" * 100_000}).encode()
    async with serving(_fine) as service, calling() as caller:
        await caller.call(order(service, method="POST", body=body, headers=(("Content-Type", "application/json"),)))
        await caller.call(order(service, method="POST"))
    assert [one.body for one in service.seen] == [body, b""]
    assert service.seen[1].header("content-length") == "0"


@pytest.mark.parametrize(("method", "status", "times"), [
    ("POST", 429, 3), ("GET", 429, 3), ("GET", 503, 3), ("DELETE", 503, 3), ("POST", 503, 1), ("PATCH", 503, 1),
    ("GET", 500, 1), ("GET", 502, 1),
])  # fmt: skip
async def test_only_a_refusal_that_did_nothing_is_tried_again(method: str, status: int, times: int) -> None:
    async def refuse(asked: Asked) -> None:
        await asked.json('{"error": {"message": "slowly"}}', status, Retry_After="0")

    async with serving(refuse) as service, calling() as caller:
        answer = await caller.call(order(service, method=method, body=b"1" if method == "POST" else None))
    assert answer.status == status
    assert len(service.seen) == times


async def test_after_a_pause_it_goes_on_where_it_is_let() -> None:
    async def second(asked: Asked) -> None:
        if len(service.seen) == 1:
            await asked.json("{}", 429, Retry_After="1")
        else:
            await asked.json('{"done": 1}')

    async with serving(second) as service, calling() as caller:
        began = asyncio.get_running_loop().time()
        answer = await caller.call(order(service, method="POST"))
        assert asyncio.get_running_loop().time() - began >= 1
    assert answer.data == {"done": 1}


@pytest.mark.parametrize("wait", ["3600", "Wed, 21 Oct 2065 07:28:00 GMT", "soon", ""])
async def test_a_long_pause_is_told_and_not_waited_for(wait: str) -> None:
    async def refuse(asked: Asked) -> None:
        await asked.json("{}", 429, Retry_After=wait)

    async with serving(refuse) as service, calling() as caller:
        answer = await caller.call(order(service))
    assert len(service.seen) == 1
    assert answer.headers.get("retry-after", "") == wait


async def test_a_key_that_makes_it_harmless_lets_a_post_be_sent_again() -> None:
    async def refuse(asked: Asked) -> None:
        await asked.json("{}", 503, Retry_After="0")

    async with serving(refuse) as service, calling() as caller:
        await caller.call(order(service, method="POST", may_repeat=True))
    assert len(service.seen) == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_service_that_hangs_is_given_up_and_asked_once(method: str) -> None:
    async def hang(asked: Asked) -> None:
        await asyncio.sleep(60)

    async with serving(hang) as service, calling() as caller:
        answer = await caller.call(order(service, method=method))
    assert answer.status is None
    assert f"said nothing for {QUICK.idle_s:g} s" in answer.problem
    assert ("may have been carried out" in answer.problem) == (method == "POST")
    assert len(service.seen) == 1


async def test_one_that_sends_a_byte_now_and_then_has_the_whole_time_and_no_more() -> None:
    async def drip(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await asked.send(b"x")
            await asyncio.sleep(0.2)

    async with serving(drip) as service, calling(patience=replace(QUICK, whole_s=1.5)) as caller:
        answer = await caller.call(order(service))
    assert "no whole answer within 1.5 s" in answer.problem


@pytest.mark.parametrize("raw", [
    b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
])  # fmt: skip
async def test_an_answer_that_breaks_off_is_told_as_one_that_nobody_knows(raw: bytes) -> None:
    async def break_off(asked: Asked) -> None:
        await asked.send(raw)

    async with serving(break_off) as service, calling() as caller:
        answer = await caller.call(order(service, method="POST"))
    assert "may have been carried out" in answer.problem
    assert len(service.seen) == 1


async def test_nobody_there_is_an_error_as_nothing_was_sent() -> None:
    async with serving(_fine) as service:
        pass
    async with calling() as caller:
        with pytest.raises(UpstreamError, match="nobody answers"):
            await caller.call(order(service, method="POST"))


@pytest.mark.parametrize("is_told", [True, False])
async def test_more_than_may_come_is_not_read(is_told: bool) -> None:
    sent = 0

    async def flood(asked: Asked) -> None:
        nonlocal sent
        size = b"Content-Length: 52428800\r\n" if is_told else b""
        await asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + size + b"\r\n")
        for _ in range(800):
            await asked.send(b"x" * 65536)
            sent += 65536

    async with serving(flood) as service, calling() as caller:
        answer = await caller.call(order(service))
    assert "more than 1,048,576 bytes" in answer.problem
    assert "was carried out" in answer.problem
    assert answer.status == 200
    assert sent < 20 * 2**20


async def test_fifty_megabytes_are_a_file() -> None:
    async def large(asked: Asked) -> None:
        await asked.answer(200, b"[" + b"1," * 25_000_000 + b"1]", {"Content-Type": "application/json"})

    async with serving(large) as service, calling(most_bytes=64 * 2**20, patience=replace(QUICK, whole_s=60)) as caller:
        answer = await caller.call(order(service, "/rows"))
    assert answer.data is None
    assert answer.file is not None
    assert (answer.file.name, len(answer.file.content)) == ("rows.json", 50_000_003)


async def test_what_is_packed_is_unpacked_and_no_further_than_it_may() -> None:
    async def packed(asked: Asked) -> None:
        plain = b'{"a": 1}' if asked.path != "/bomb" else b" " * 200_000_000
        body = zlib.compress(plain) if asked.path == "/deflate" else gzip.compress(plain, 1)
        name = {"/deflate": "deflate", "/odd": "br"}.get(asked.path, "gzip")
        await asked.answer(200, body, {"Content-Type": "application/json", "Content-Encoding": name})

    async with serving(packed) as service, calling() as caller:
        assert (await caller.call(order(service))).data == {"a": 1}
        assert (await caller.call(order(service, "/deflate"))).data == {"a": 1}
        assert "more than 1,048,576 bytes" in (await caller.call(order(service, "/bomb"))).problem
        assert "packed by 'br'" in (await caller.call(order(service, "/odd"))).problem


@pytest.mark.parametrize(("kind", "body", "data"), [
    ("application/json", b"[1, 2]", [1, 2]),
    ("application/vnd.api+json; charset=utf-8", b'{"a": "\xc3\xbc"}', {"a": "ü"}),
    ("text/plain; charset=utf-8", "grün".encode(), "grün"),
    ("application/json", b'{"n": NaN}', {"n": "NaN"}),
    ("application/json", b'{"half": "\\ud800"}', {"half": "?"}),
    ("", b'{"a": 1}', {"a": 1}),
    ("application/json", b"", None),
])  # fmt: skip
async def test_data_is_read_by_its_type(kind: str, body: bytes, data: object) -> None:
    async def tell(asked: Asked) -> None:
        await asked.answer(200, body, {"Content-Type": kind} if kind else {})

    async with serving(tell) as service, calling() as caller:
        answer = await caller.call(order(service))
    assert (answer.data, answer.problem, answer.file) == (data, "", None)


async def test_json_that_is_none_is_said_to_be_none() -> None:
    async def lie(asked: Asked) -> None:
        await asked.json("<html>Log in</html>" if asked.path == "/a" else "[" * 100_000)

    async with serving(lie) as service, calling() as caller:
        assert "it is not: <html>Log in</html>" in (await caller.call(order(service, "/a"))).problem
        assert "it is not" in (await caller.call(order(service, "/b"))).problem


async def test_other_things_are_files_with_plain_names() -> None:
    async def give(asked: Asked) -> None:
        said = {"/named": 'attachment; filename="../../etc/pass wd.pdf"'}.get(asked.path, "")
        await asked.answer(200, b"\x00\x01", {"Content-Type": "application/pdf", "Content-Disposition": said})

    async with serving(give) as service, calling() as caller:
        files = [(await caller.call(order(service, path))).file for path in ("/named", "/a/report", "/")]
    assert [one.name for one in files if one] == ["pass_wd.pdf", "report.pdf", "answer.pdf"]
    assert files[0]
    assert (files[0].content, files[0].content_type) == (b"\x00\x01", "application/pdf")


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def echo(asked: Asked) -> None:
        await asked.json(json.dumps({"path": asked.path}))

    async with serving(echo) as service, calling() as caller:
        answers = await asyncio.gather(*(caller.call(order(service, f"/{number}")) for number in range(100)))
    assert [one.data["path"] for one in answers] == [f"/{number}" for number in range(100)]


async def test_closing_twice_is_as_good_as_once() -> None:
    async with calling() as caller:
        await caller.aclose()


async def test_answers_that_are_still_to_be_understood_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async def large(asked: Asked) -> None:
        await asked.answer(200, b"x" * 400_000, {"Content-Type": "text/plain"})

    gate = asyncio.Event()

    async def late(work: Callable[[], object]) -> object:
        await gate.wait()
        return work()

    monkeypatch.setattr(asyncio, "to_thread", late)
    caller = ServiceCaller(POLICY, patience=QUICK, most_bytes=500_000, most_held=1_000_000)
    async with serving(large) as service:
        first = [asyncio.create_task(caller.call(order(service))) for _ in range(2)]
        while len(service.seen) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert "too many large answers" in (await caller.call(order(service))).problem
        gate.set()
        assert [(await one).status for one in first] == [200, 200]
        assert (await caller.call(order(service))).status == 200
    await caller.aclose()


async def test_json_that_is_nested_too_deeply_is_a_file() -> None:
    async def deep(asked: Asked) -> None:
        depth = int(asked.path[1:])
        await asked.json("[" * depth + "]" * depth)

    async with serving(deep) as service, calling() as caller:
        assert (await caller.call(order(service, "/90"))).data
        for depth in (150, 500, 900):
            answer = await caller.call(order(service, f"/{depth}"))
            assert answer.data is None
            assert answer.file is not None


async def test_json_of_very_many_parts_is_a_file() -> None:
    async def many(asked: Asked) -> None:
        await asked.json("[" + "{}," * 600_000 + "{}]")

    async with serving(many) as service, calling(most_bytes=8 * 2**20) as caller:
        answer = await caller.call(order(service))
    assert (answer.data, answer.problem) == (None, "")
    assert answer.file is not None
