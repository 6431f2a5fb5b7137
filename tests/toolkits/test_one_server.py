"""MCP servers that are asked by HTTP: real ones, with a key that goes to them and nowhere else."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from tests.toolkits.service import Asked, serving
from tests.toolkits.worlds import PLAIN, added, call, free_port, from_npm, listening, source_of
from tests.unit.core.router.sources import session

from workbench.egress.guard import Guard, GuardedBackend, SystemResolver
from workbench.egress.policy import AddressPolicy
from workbench.errors import Denied, InvalidRequest, UpstreamUnavailable
from workbench.model.session import Session
from workbench.testing.tools_contract import ToolSourceContract, Works
from workbench.toolkits.one_server import OneServer, client_for
from workbench.toolkits.opening import AddedSource

_KEY = "canary-key-5b1d77"


@dataclass(frozen=True)
class Server:
    url: str
    port: int
    seen: Path

    def authorizations(self) -> set[str]:
        return {line.split(" ", 1)[1] for line in self.seen.read_text(encoding="utf-8").splitlines()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port, seen = free_port(), tmp_path_factory.mktemp("http") / "seen"
    with listening([*PLAIN, str(port), _KEY, str(seen)], port):
        yield Server(f"http://127.0.0.1:{port}/mcp", port, seen)


class TestHttpServer(ToolSourceContract):
    @pytest.fixture
    async def source(self, tmp_path: Path, server: Server) -> AsyncIterator[AddedSource]:
        async with source_of(tmp_path, added("far", url=server.url, bearer=_KEY)) as source:
            yield source

    @pytest.fixture
    def session(self) -> Session:
        return session()

    @pytest.fixture
    def works(self) -> Works:
        return "FAR_ADD", {"a": 2, "b": 3}


async def test_its_key_goes_along_and_comes_back_in_nothing(tmp_path: Path, server: Server) -> None:
    headers = {"Authorization": f"Bearer {_KEY}", "X-More": "yes"}
    async with source_of(tmp_path, added("far", url=server.url, headers=headers)) as source:
        assert (await source.run(call("FAR_ADD", a=2, b=3))).data == {"result": 5}
        failed = await source.run(call("FAR_FAILS", secret=_KEY))
        assert "it failed" in failed.error
        assert _KEY not in failed.error + json.dumps(failed.data)


async def test_a_wrong_key_is_told(tmp_path: Path, server: Server) -> None:
    async with source_of(tmp_path, added("far", url=server.url, bearer="wrong-key")) as source:
        with pytest.raises(UpstreamUnavailable, match=r"far \(http://127.0.0.1:\d+/mcp\) cannot be used") as caught:
            await source.tools()
        assert "wrong-key" not in caught.value.message


async def test_nobody_who_listens_is_told(tmp_path: Path) -> None:
    async with source_of(tmp_path, added("far", url=f"http://127.0.0.1:{free_port()}/mcp")) as source:
        with pytest.raises(Exception, match="nobody answers at port"):
            await source.tools()


async def test_an_address_of_this_machine_is_refused_unless_it_is_allowed(tmp_path: Path, server: Server) -> None:
    async with source_of(tmp_path, added("far", url=server.url), allow="") as source:
        with pytest.raises(Denied, match=r"loopback.*WORKBENCH_TOOLKITS_ALLOW"):
            await source.tools()


async def test_a_key_is_not_sent_in_the_clear_to_a_server_that_nobody_named(tmp_path: Path) -> None:
    url = "http://far.example/mcp"
    for toolkit in (
        added("far", url=url, bearer=_KEY),
        added("far", url=url, headers={"X-Key": _KEY}),
        added("far", composio=["gmail"], key=_KEY, address="http://far.example"),
    ):
        async with source_of(tmp_path, toolkit) as source:
            with pytest.raises(Denied, match=r"is not https.*WORKBENCH_TOOLKITS_ALLOW"):
                await source.tools()


async def test_a_redirect_does_not_carry_the_key_to_another_server(tmp_path: Path, server: Server) -> None:
    port, seen = free_port(), tmp_path / "other"
    with listening([*PLAIN, str(port), "other-key", str(seen)], port):
        away = f"http://127.0.0.1:{server.port}/away/{port}"
        async with source_of(tmp_path, added("far", url=away, bearer=_KEY)) as source:
            with pytest.raises((UpstreamUnavailable, Denied)):
                await source.tools()
        assert not seen.exists()
    assert f"Bearer {_KEY}" in server.authorizations()


async def test_an_answer_that_is_too_large_is_told(tmp_path: Path, server: Server) -> None:
    async with source_of(tmp_path, added("far", url=server.url, bearer=_KEY)) as source:
        result = await source.run(call("FAR_LARGE", size=60 * 2**20))
        assert result.error
        assert len(result.error) < 1000
        assert (await source.run(call("FAR_ADD", a=1, b=1))).data == {"result": 2}


async def test_a_server_that_hangs_is_given_up(tmp_path: Path, server: Server) -> None:
    async with source_of(tmp_path, added("far", url=server.url, bearer=_KEY, timeout_s=2)) as source:
        result = await source.run(call("FAR_HANGS", mark=str(tmp_path / "mark")))
        assert "may have been carried out" in result.error


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://user:word@example.com/mcp", "nothing"])
async def test_a_url_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    async with source_of(tmp_path, added("far", url=url)) as source:
        with pytest.raises(InvalidRequest, match="not a URL"):
            await source.tools()


@pytest.mark.long
async def test_the_everything_server_of_the_protocol_by_http(tmp_path: Path) -> None:
    port = free_port()
    command = from_npm("server-everything", "streamableHttp")
    quiet = (tmp_path / "log").open("wb")
    with quiet, listening(command, port, env={**os.environ, "PORT": str(port)}, stdout=quiet, stderr=quiet):
        async with source_of(tmp_path, added("everything", url=f"http://127.0.0.1:{port}/mcp")) as source:
            assert (await source.run(call("EVERYTHING_ECHO", message="hé"))).data == {"text": "Echo: hé"}
            assert (await source.run(call("EVERYTHING_GET_TINY_IMAGE"))).file is not None


async def test_a_server_that_was_restarted_is_reached_again(tmp_path: Path) -> None:
    port, seen = free_port(), tmp_path / "seen"
    command = [*PLAIN, str(port), _KEY, str(seen)]
    assert command[0] == sys.executable
    async with source_of(tmp_path, added("far", url=f"http://127.0.0.1:{port}/mcp", bearer=_KEY)) as source:
        with listening(command, port):
            assert (await source.run(call("FAR_ADD", a=1, b=1))).data == {"result": 2}
        try:
            gone = (await source.run(call("FAR_ADD", a=1, b=1))).error
        except Exception as problem:  # noqa: BLE001
            gone = str(problem)
        assert gone
        with listening(command, port):
            assert (await source.run(call("FAR_ADD", a=2, b=2))).data == {"result": 4}


async def test_a_request_to_another_server_is_not_sent_whoever_asks_for_it(server: Server) -> None:
    resolver = SystemResolver()
    one = OneServer(
        httpx2.URL(server.url), GuardedBackend(Guard(AddressPolicy.parse("127.0.0.0/8"), resolver)), most_bytes=1000
    )
    async with client_for(one, {"Authorization": f"Bearer {_KEY}"}, 5.0) as client:
        for other in (f"http://127.0.0.1:{free_port()}/mcp", f"https://127.0.0.1:{server.port}/mcp"):
            with pytest.raises(Denied, match="not the server that this toolkit was added for"):
                await client.get(other)
    resolver.close()


async def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    async def bomb(asked: Asked) -> None:
        packed = gzip.compress(b" " * 200_000_000, 1)
        await asked.answer(200, packed, {"Content-Type": "application/json", "Content-Encoding": "gzip"})

    resolver = SystemResolver()
    async with serving(bomb) as service:
        one = OneServer(
            httpx2.URL(service.url), GuardedBackend(Guard(AddressPolicy.parse("127.0.0.0/8"), resolver)), 2**20
        )
        async with client_for(one, {}, 5.0) as client:
            with pytest.raises(httpx2.HTTPError, match="packed by 'gzip'"):
                await client.post(service.url)
        assert service.seen[0].header("accept-encoding") == "identity"
        assert "packed" in str(one.problem)
    resolver.close()
