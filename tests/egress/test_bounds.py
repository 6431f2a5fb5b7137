"""What comes is bounded in size and in time, whole or an error, and is what the server sent."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from tests.egress.serving import Visitor, fetching, serving, whole

from workbench.egress.fetch import MOST_AT_ONCE, Fetcher, Times
from workbench.errors import QuotaExceeded, TooLarge, UpstreamFailed

BODY = bytes(range(256)) * 1000


async def refused(
    handler_of: bytes, error: type[Exception], words: str, most_bytes: int = 10_000, hang: bool = False
) -> Exception:
    """Send exactly these bytes; the connection ends with them unless it hangs."""

    async def raw(visitor: Visitor) -> None:
        await visitor.send(handler_of)
        if hang:
            await asyncio.Event().wait()

    async with serving(raw) as server, fetching() as fetcher:
        with pytest.raises(error, match=words) as caught:
            await whole(fetcher, f"http://a.example:{server.port}/f", most_bytes)
        await server.all_gone()
    return caught.value


async def test_an_answer_comes_as_it_is_with_all_that_is_known_of_it() -> None:
    async def send(visitor: Visitor) -> None:
        await visitor.answer(
            "200 OK",
            BODY,
            Content_Type="Text/CSV; charset=utf-8",
            Content_Disposition='attachment; filename="../a.csv"',
        )

    async with serving(send) as server, fetching() as fetcher:
        async with fetcher.fetch(f"http://a.example:{server.port}/x/y?z#t", most_bytes=len(BODY)) as fetched:
            assert (fetched.name, fetched.content_type, fetched.size) == ("a.csv", "text/csv", len(BODY))
            assert fetched.url == f"http://a.example:{server.port}/x/y?z"
            assert b"".join([chunk async for chunk in fetched.chunks()]) == BODY
        await server.all_gone()
    assert server.seen[0].path == "/x/y?z"


async def test_an_empty_file_is_a_file() -> None:
    async def send(visitor: Visitor) -> None:
        await visitor.answer("200 OK")

    async with serving(send) as server, fetching() as fetcher:
        assert await whole(fetcher, f"http://a.example:{server.port}/", most_bytes=0) == b""


async def test_a_packed_answer_is_not_unpacked_and_none_is_asked_for() -> None:
    packed = gzip.compress(b"\0" * 1_000_000)

    async def send(visitor: Visitor) -> None:
        await visitor.answer("200 OK", packed, Content_Encoding="gzip")

    async with serving(send) as server, fetching() as fetcher:
        assert await whole(fetcher, f"http://a.example:{server.port}/", most_bytes=len(packed)) == packed
    assert server.seen[0].header("Accept-Encoding") == "identity"


async def test_a_chunked_answer_is_put_together_and_its_size_is_not_known() -> None:
    async def send(visitor: Visitor) -> None:
        # With both headers, the chunks are what counts.
        await visitor.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n")
        for part in (b"ab", b"cde"):
            await visitor.send(b"%x\r\n%b\r\n" % (len(part), part))
        await visitor.send(b"0\r\n\r\n")

    async with (
        serving(send) as server,
        fetching() as fetcher,
        fetcher.fetch(f"http://a.example:{server.port}/", most_bytes=5) as fetched,
    ):
        assert fetched.size is None
        assert b"".join([chunk async for chunk in fetched.chunks()]) == b"abcde"


async def test_an_answer_that_ends_with_its_connection_is_whole() -> None:
    async def send(visitor: Visitor) -> None:
        await visitor.send(b"HTTP/1.0 200 OK\r\n\r\nabc")

    async with serving(send) as server, fetching() as fetcher:
        assert await whole(fetcher, f"http://a.example:{server.port}/") == b"abc"


async def test_a_declared_size_that_is_too_large_is_refused_before_a_byte_is_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\n"
    problem = await refused(head, TooLarge, "has 10,001 bytes, and 10,000 may come", hang=True)
    assert isinstance(problem, TooLarge)
    assert problem.context["most_bytes"] == "10000"


@pytest.mark.parametrize("head", [b"", b"Transfer-Encoding: chunked\r\n"])
async def test_more_than_may_come_is_refused_though_no_size_was_declared(head: bytes) -> None:
    chunk = b"x" * 1000
    framed = b"%x\r\n%b\r\n" % (len(chunk), chunk) if head else chunk
    raw = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + framed * 11
    await refused(raw, TooLarge, "has more than 10,000 bytes", hang=True)


async def flood(visitor: Visitor) -> None:
    await visitor.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await visitor.send(b"x" * 65_536)


async def test_of_what_is_too_large_no_more_is_handed_on_than_may_come() -> None:
    got: list[int] = []

    async def read() -> None:
        async with fetcher.fetch(f"http://a.example:{server.port}/", most_bytes=1_000_000) as fetched:
            async for chunk in fetched.chunks():
                got.append(len(chunk))  # noqa: PERF401 - what came before the error is what is asked

    async with serving(flood) as server, fetching() as fetcher:
        with pytest.raises(TooLarge):
            await read()
        await server.all_gone()
    assert 0 < sum(got) <= 1_000_000


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"",
    ],
)
async def test_an_answer_that_is_cut_is_an_error(raw: bytes) -> None:
    problem = await refused(raw, UpstreamFailed, "broke off")
    assert isinstance(problem, UpstreamFailed)
    assert problem.retryable


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
    ],
)
async def test_what_is_no_http_is_an_error(raw: bytes) -> None:
    await refused(raw, UpstreamFailed, "makes no sense")


@pytest.mark.parametrize(
    ("status", "again"), [(404, False), (401, False), (500, True), (503, True), (429, True), (204, False), (206, False)]
)
async def test_another_status_than_that_of_a_file_is_told(status: int, again: bool) -> None:
    raw = b"HTTP/1.1 %d Odd\r\nContent-Length: 0\r\n\r\n" % status
    problem = await refused(raw, UpstreamFailed, f"answered with the status {status}")
    assert isinstance(problem, UpstreamFailed)
    assert (problem.retryable, problem.context["status"]) == (again, str(status))


async def test_switching_protocols_is_no_answer() -> None:
    await refused(b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", UpstreamFailed, "101|makes no sense")


async def send_nothing(visitor: Visitor) -> None:
    await asyncio.Event().wait()


async def drip_the_head(visitor: Visitor) -> None:
    await visitor.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await visitor.send(b"X: y\r\n")
        await asyncio.sleep(0.05)


async def stop_half_way(visitor: Visitor) -> None:
    await visitor.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
    await asyncio.Event().wait()


async def drip_the_body(visitor: Visitor) -> None:
    await visitor.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await visitor.send(b"x")
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (send_nothing, "said nothing for 0.3 s"),
        (drip_the_head, "too slow"),
        (stop_half_way, "said nothing for 0.3 s"),
        (drip_the_body, "too slow: .* 1.5 s to be whole"),
    ],
)
async def test_who_hangs_or_drips_is_given_up(handler: object, words: str) -> None:
    times = Times(connect_s=0.2, idle_s=0.3, whole_s=1.5)
    async with serving(handler) as server, fetching(times=times) as fetcher:  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            with pytest.raises(UpstreamFailed, match=words):
                await whole(fetcher, f"http://a.example:{server.port}/")
        await server.all_gone()


async def test_redirects_do_not_start_the_time_anew() -> None:
    async def slowly_on(visitor: Visitor) -> None:
        await asyncio.sleep(0.3)
        await visitor.answer("302 Go", Location="/again")

    times = Times(connect_s=1, idle_s=1, whole_s=0.5)
    async with serving(slowly_on) as server, fetching(times=times) as fetcher:
        with pytest.raises(UpstreamFailed, match="too slow"):
            await whole(fetcher, f"http://a.example:{server.port}/")
    assert len(server.seen) == 2


async def endless(visitor: Visitor) -> None:
    await visitor.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await visitor.send(b"x" * 1000)
        await asyncio.sleep(0.01)


async def test_leaving_half_way_ends_the_connection() -> None:
    async def fail() -> None:
        async with fetcher.fetch(url, most_bytes=10**9) as fetched:
            async for _ in fetched.chunks():
                raise RuntimeError("the reader's own")

    async with serving(endless) as server, fetching() as fetcher:
        url = f"http://a.example:{server.port}/"
        async with fetcher.fetch(url, most_bytes=10**9) as fetched:
            async for _ in fetched.chunks():
                break
        await server.all_gone()
        async with fetcher.fetch(url, most_bytes=10**9):
            pass
        await server.all_gone()
        with pytest.raises(RuntimeError, match="reader's own"):
            await fail()
        await server.all_gone()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await whole(fetcher, url)
        await server.all_gone()
    assert server.connections == 4


async def test_many_are_fetched_at_once_each_by_a_connection_of_its_own() -> None:
    async def send(visitor: Visitor) -> None:
        await visitor.answer("200 OK", visitor.path.encode())

    async with serving(send) as server, fetching() as fetcher:
        url = f"http://a.example:{server.port}"
        got = await asyncio.gather(*(whole(fetcher, f"{url}/{n}") for n in range(100)))
        await server.all_gone()
    assert got == [f"/{n}".encode() for n in range(100)]
    assert server.connections == 100


async def test_who_comes_when_too_many_are_fetched_is_told_to_come_again() -> None:
    times = Times(connect_s=20, idle_s=30, whole_s=60)
    async with serving(send_nothing) as server, fetching(times=times) as fetcher:
        url = f"http://a.example:{server.port}/"
        many = [asyncio.ensure_future(whole(fetcher, url)) for _ in range(MOST_AT_ONCE)]
        async with asyncio.timeout(30):
            while len(server.seen) < MOST_AT_ONCE:
                await asyncio.sleep(0.01)
        with pytest.raises(QuotaExceeded, match=f"{MOST_AT_ONCE} URLs are being fetched") as caught:
            await whole(fetcher, url)
        assert caught.value.retryable
        for one in many:
            one.cancel()
        await asyncio.gather(*many, return_exceptions=True)
        await server.all_gone()


async def test_a_fetcher_that_was_closed_can_be_closed_again() -> None:
    async with fetching() as fetcher:
        assert isinstance(fetcher, Fetcher)
        await fetcher.aclose()
