"""Redirects are followed by hand, each checked like the first."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from tests.egress.serving import BAD, GOOD, Names, Visitor, fetching, serving, whole

from workbench.errors import Denied, InvalidRequest, UpstreamFailed


async def by_path(visitor: Visitor) -> None:
    """`/to/<status>/<location>` redirects; `/n/<number>` counts down; all else is a file."""
    _, kind, *rest = visitor.path.split("/", 3)
    if kind == "to":
        await visitor.answer(f"{rest[0]} Go", b"moved", Location=rest[1].replace("~", "/"), Set_Cookie="id=1")
    elif kind == "n" and rest[0] != "0":
        await visitor.answer("302 Go", Location=f"/n/{int(rest[0]) - 1}")
    else:
        await visitor.answer("200 OK", b"here")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_with_nothing_of_the_request_before(status: int) -> None:
    async with serving(by_path) as server, fetching() as fetcher:
        url = f"http://a.example:{server.port}/to/{status}/http:~~b.example:{server.port}~file.bin?x=1"
        async with fetcher.fetch(url, most_bytes=100) as fetched:
            assert fetched.url == f"http://b.example:{server.port}/file.bin?x=1"
            assert [chunk async for chunk in fetched.chunks()] == [b"here"]
        await server.all_gone()
    second = server.seen[1]
    assert second.header("Host") == f"b.example:{server.port}"
    assert {line.partition(":")[0].lower() for line in second.head.split("\r\n")[1:]} == {
        "host", "user-agent", "accept", "accept-encoding", "connection",
    }  # fmt: skip


@pytest.mark.parametrize("host", ["bad.example", BAD, "127.0.0.1", "[::1]", "169.254.169.254"])
async def test_a_redirect_to_a_forbidden_address_is_refused_before_it_is_connected_to(host: str) -> None:
    async with serving(by_path) as good, serving(by_path, BAD, good.port) as bad, fetching() as fetcher:
        with pytest.raises(Denied, match=rf"^http://a\.example:{good.port}/to/.* redirects: .*WORKBENCH_FETCH_ALLOW"):
            await whole(fetcher, f"http://a.example:{good.port}/to/302/http:~~{host}:{good.port}~")
        await good.all_gone()
    assert (good.connections, bad.connections) == (1, 0)


async def test_a_name_that_turns_private_between_two_redirects_is_refused() -> None:
    names = Names(a_example=[[GOOD], [BAD]])
    async with serving(by_path) as good, serving(by_path, BAD, good.port) as bad, fetching(names) as fetcher:
        with pytest.raises(Denied, match=rf"a\.example is at {BAD}"):
            await whole(fetcher, f"http://a.example:{good.port}/n/1")
    assert (good.connections, bad.connections) == (1, 0)


@pytest.mark.parametrize(
    "where", ["file:~~~etc~passwd", "ftp:~~a.example~", "http:~~u:p@a.example~", "http:~~a.example:0~"]
)
async def test_a_redirect_to_what_is_not_fetched_is_refused(where: str) -> None:
    async with serving(by_path) as server, fetching() as fetcher:
        with pytest.raises(InvalidRequest, match=r"redirects: not a URL that can be fetched"):
            await whole(fetcher, f"http://a.example:{server.port}/to/302/{where}")


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    async with serving(by_path) as server, fetching() as fetcher:
        assert await whole(fetcher, f"http://a.example:{server.port}/n/5") == b"here"
        for path in ("/n/6", "/to/302/~to~302~x"):
            with pytest.raises(UpstreamFailed, match="redirects more than 5 times"):
                await whole(fetcher, f"http://a.example:{server.port}{path}".replace("~x", f"~{path[1:]}"))
        await server.all_gone()


async def test_a_redirect_that_does_not_say_where_is_an_answer_without_a_file() -> None:
    async def nowhere(visitor: Visitor) -> None:
        await visitor.answer("302 Found")

    async with serving(nowhere) as server, fetching() as fetcher:
        with pytest.raises(UpstreamFailed, match="status 302"):
            await whole(fetcher, f"http://a.example:{server.port}/")


async def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    at_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    at_server.load_cert_chain(cert, key)
    trusting = ssl.create_default_context(cafile=str(cert))
    async with serving(by_path, tls=at_server) as secure, serving(by_path) as plain, fetching(tls=trusting) as fetcher:
        with pytest.raises(Denied, match=r"from https to http://a\.example"):
            await whole(fetcher, f"https://a.example:{secure.port}/to/302/http:~~a.example:{plain.port}~")
        # The other way is for the better.
        up = f"http://a.example:{plain.port}/to/302/https:~~a.example:{secure.port}~x"
        assert await whole(fetcher, up) == b"here"
    assert plain.connections == 1
