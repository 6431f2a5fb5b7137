"""The connection really goes to the address that was checked, and to no other."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path

import httpcore2
import pytest
from tests.egress.serving import BAD, GOOD, POLICY, QUICK, Names, Visitor, fetching, serving, whole

from workbench.contracts.fetching import Fetching
from workbench.egress.fetch import Fetcher, Times
from workbench.egress.on_demand import FetcherOnDemand
from workbench.errors import Denied, InvalidRequest, UpstreamFailed


async def say_where(visitor: Visitor) -> None:
    await visitor.answer("200 OK", (visitor.header("Host") or "").encode())


async def test_a_name_that_turns_private_after_the_check_is_connected_to_where_it_was_checked() -> None:
    """The name is looked up once: what a second lookup would say is never learnt."""
    async with serving(say_where) as good, serving(say_where, BAD, good.port) as bad:
        names = Names(a_example=[[GOOD], [BAD]])
        async with fetching(names) as fetcher:
            url = f"http://a.example:{good.port}/"
            assert await whole(fetcher, url) == f"a.example:{good.port}".encode()
            assert names.asked == ["a.example"]
            with pytest.raises(Denied, match=rf"a\.example is at {BAD}"):
                await whole(fetcher, url)
    assert (good.connections, bad.connections) == (1, 0)


@pytest.mark.parametrize("answer", [[BAD], [GOOD, BAD], [BAD, GOOD]])
async def test_a_name_with_a_forbidden_address_is_not_connected_to_at_all(answer: list[str]) -> None:
    names = Names(a_example=[answer])
    async with serving(say_where) as good, serving(say_where, BAD, good.port) as bad, fetching(names) as fetcher:
        with pytest.raises(Denied):
            await whole(fetcher, f"http://a.example:{good.port}/")
    assert (good.connections, bad.connections) == (0, 0)


@pytest.mark.parametrize("host", [BAD, "127.0.0.1", "[::1]", f"[::ffff:{GOOD}]", f"[::ffff:{BAD}]", "[::]"])
async def test_a_forbidden_address_written_out_is_not_connected_to(host: str) -> None:
    async with serving(say_where, BAD) as bad, fetching() as fetcher:
        with pytest.raises(Denied):
            await whole(fetcher, f"http://{host}:{bad.port}/")
    assert bad.connections == 0


async def test_an_allowed_address_written_out_is_fetched_from() -> None:
    async with serving(say_where) as good, fetching() as fetcher:
        assert await whole(fetcher, f"http://{GOOD}:{good.port}/") == f"{GOOD}:{good.port}".encode()


async def test_the_environment_leads_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(say_where) as good, serving(say_where, BAD) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{BAD}:{proxy.port}")
        async with fetching() as fetcher:
            await whole(fetcher, f"http://a.example:{good.port}/")
    assert (good.connections, proxy.connections) == (1, 0)


async def test_an_address_that_refuses_gives_way_to_the_next() -> None:
    async with serving(say_where, "127.0.0.5") as good:
        fetcher = Fetcher(
            POLICY.parse("127.0.0.4/31"), resolver=Names(a_example=[["127.0.0.4", "127.0.0.5"]]), times=QUICK
        )
        assert await whole(fetcher, f"http://a.example:{good.port}/")
        await fetcher.aclose()


async def test_an_address_that_never_answers_leaves_time_for_the_next() -> None:
    with socket.socket() as silent:
        # Its queue is full, so that the next handshake gets no answer.
        silent.bind(("127.0.0.4", 0))
        silent.listen(0)
        port = silent.getsockname()[1]
        with socket.create_connection(("127.0.0.4", port)):
            async with serving(say_where, "127.0.0.5", port):
                fetcher = Fetcher(
                    POLICY.parse("127.0.0.4/31"),
                    resolver=Names(a_example=[["127.0.0.4", "127.0.0.5"]], b_example=[["127.0.0.4"]]),
                    times=Times(connect_s=1, idle_s=5, whole_s=10),
                )
                assert await whole(fetcher, f"http://a.example:{port}/")
                with pytest.raises(UpstreamFailed, match=r"nobody answers.*127\.0\.0\.4\): no answer in time"):
                    await whole(fetcher, f"http://b.example:{port}/")
                await fetcher.aclose()


async def test_a_port_where_nobody_listens_is_told() -> None:
    async with serving(say_where) as gone:
        port = gone.port
    async with fetching() as fetcher:
        with pytest.raises(UpstreamFailed, match=rf"port {port} of a\.example \({GOOD}\): .*refused") as caught:
            await whole(fetcher, f"http://a.example:{port}/")
        assert caught.value.retryable
        with pytest.raises(UpstreamFailed, match=r"nowhere\.example could not be looked up"):
            await whole(fetcher, "http://nowhere.example/")


async def test_the_usual_fetcher_refuses_this_machine_and_takes_the_setting() -> None:
    async with serving(say_where) as good:
        url = f"http://{GOOD}:{good.port}/"
        closed, opened = FetcherOnDemand(POLICY.parse("")), FetcherOnDemand(POLICY)
        users: list[Fetching] = [closed, opened]
        with pytest.raises(Denied, match="loopback"):
            async with users[0].fetch(url, most_bytes=100):
                pass
        with pytest.raises(Denied, match=r"localhost is at"):
            async with users[0].fetch(f"http://localhost:{good.port}/", most_bytes=100):
                pass
        async with users[1].fetch(url, most_bytes=100) as fetched:
            assert [chunk async for chunk in fetched.chunks()]
        for user in users:
            await user.aclose()
            await user.aclose()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For a.example and nobody else, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


async def test_tls_goes_by_the_name_and_not_by_the_address(certificate: tuple[Path, Path]) -> None:
    told: list[str | None] = []
    at_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    at_server.load_cert_chain(*certificate)
    at_server.sni_callback = lambda _socket, name, _context: told.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    async with serving(say_where, tls=at_server) as good:
        async with fetching(tls=trusting) as fetcher:
            assert await whole(fetcher, f"https://a.example:{good.port}/")
            assert told == ["a.example"]
            for host in ("b.example", GOOD):
                with pytest.raises(UpstreamFailed, match=r"no TLS with .*mismatch") as caught:
                    await whole(fetcher, f"https://{host}:{good.port}/")
                assert not caught.value.retryable
        async with fetching() as fetcher:
            with pytest.raises(UpstreamFailed, match=r"no TLS with .*self.signed"):
                await whole(fetcher, f"https://a.example:{good.port}/")
    assert [one.path for one in good.seen] == ["/"]


async def test_a_server_that_never_agrees_on_tls_is_given_up_and_let_go() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)

    connected: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(silent, GOOD, 0)
    url = f"https://a.example:{server.sockets[0].getsockname()[1]}/"
    async with server, fetching(times=Times(connect_s=0.3, idle_s=5, whole_s=10)) as fetcher:
        with pytest.raises(UpstreamFailed, match=r"no TLS within 0\.3 s"):
            await whole(fetcher, url)
        # Given up by who asked, half way.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await whole(fetcher, url)
        assert len(connected) == 2
        for writer in connected:
            writer.close()


async def test_an_unusable_url_is_refused_before_anything_is_looked_up() -> None:
    names = Names()
    async with fetching(names) as fetcher:
        with pytest.raises(InvalidRequest, match="user or a password"):
            await whole(fetcher, "https://me:hunter2@a.example/")
    assert not names.asked


def test_the_library_still_takes_a_network_of_ours() -> None:
    """Were it to forget the argument, everything would be connected to unseen."""
    backend = httpcore2.AsyncNetworkBackend()
    pool = httpcore2.AsyncConnectionPool(network_backend=backend)
    made = pool.create_connection(httpcore2.Origin(b"http", b"a.example", 80))
    assert made._network_backend is backend  # type: ignore[attr-defined]
