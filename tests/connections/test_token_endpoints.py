"""Authorisation servers are asked once, bounded, never in the clear, and nowhere else."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from workbench.contracts.connections import TokenRequest
from workbench.egress.policy import AddressPolicy
from workbench.errors import Denied, UpstreamBadAnswer, UpstreamError, UpstreamUnavailable
from workbench.model.connection import Secret
from workbench.toolkits.sending import Patience
from workbench.toolkits.token_endpoints import GuardedTokenEndpoints

_ALLOWED = AddressPolicy.parse("127.0.0.1", "WORKBENCH_TOOLKITS_ALLOW")
_QUICK = Patience(connect_s=1.0, idle_s=0.5, whole_s=2.0, longest_pause_s=0.1)
Answering = Callable[[BaseHTTPRequestHandler, bytes], None]


@contextmanager
def _server(answering: Answering) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answering(self, self.rfile.read(int(self.headers.get("content-length", 0))))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _said(content: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> Answering:
    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(content)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


async def _asked(url: str, policy: AddressPolicy = _ALLOWED, **more: object) -> object:
    endpoints = GuardedTokenEndpoints(policy, patience=_QUICK)
    try:
        request = TokenRequest(url=url, form={"code": Secret("CANARY&="), "x": "y"}, **more)  # type: ignore[arg-type]
        answer = await endpoints.ask(request)
        return answer.status, dict(answer.fields)
    finally:
        await endpoints.aclose()


async def test_a_form_is_sent_with_the_client_in_its_header() -> None:
    seen: list[tuple[str, str, bytes]] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append((handler.headers["authorization"], handler.headers["accept"], body))
        _said(b'{"access_token": "t"}')(handler, body)

    with _server(answer) as url:
        assert await _asked(f"{url}/token", client=("me:", Secret("a b"))) == (200, {"access_token": "t"})
    ((authorization, accept, body),) = seen
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me%3A:a+b"
    assert (accept, body) == ("application/json", b"code=CANARY%26%3D&x=y")


@pytest.mark.parametrize(
    ("content", "kind", "fields"),
    [
        (b"access_token=t&scope=a%20b", "application/x-www-form-urlencoded", {"access_token": "t", "scope": "a b"}),
        (b"[1]", "application/json", {}),
        (b"", "application/json", {}),
    ],
)
async def test_answers_are_read_in_the_forms_that_servers_give_them(
    content: bytes, kind: str, fields: dict[str, str]
) -> None:
    with _server(_said(content, kind)) as url:
        assert await _asked(url) == (200, fields)


async def test_an_error_keeps_its_status_and_its_words() -> None:
    with _server(_said(b'{"error": "invalid_grant"}', status=400)) as url:
        assert await _asked(url) == (400, {"error": "invalid_grant"})


async def test_secrets_do_not_follow_a_redirect_to_anybody_else() -> None:
    seen: list[bytes] = []

    def elsewhere(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append(body)
        _said(b"{}")(handler, body)

    with (
        _server(elsewhere) as other,
        _server(_said(b"", status=307, location=f"{other}/token")) as url,
        pytest.raises(UpstreamError) as problem,
    ):
        await _asked(url)
    assert seen == []
    assert "CANARY" not in str(problem.value)


async def test_private_addresses_and_plain_http_are_not_asked() -> None:
    with _server(_said(b"{}")) as url:
        with pytest.raises(Denied, match="WORKBENCH_TOOLKITS_ALLOW"):
            await _asked(url.replace("http:", "https:"), AddressPolicy.parse("", "WORKBENCH_TOOLKITS_ALLOW"))
        with pytest.raises(Denied, match="not https"):
            await _asked(url, AddressPolicy.parse("", "WORKBENCH_TOOLKITS_ALLOW"))
    with pytest.raises(Denied, match="not https"):
        await _asked("http://service.example/token")


def _hangs(handler: BaseHTTPRequestHandler, _: bytes) -> None:
    handler.connection.settimeout(10)
    handler.rfile.read(1)


async def test_a_server_that_hangs_breaks_off_or_is_not_there_is_told_in_time() -> None:
    def breaks(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")

    with _server(_hangs) as url, pytest.raises(UpstreamUnavailable) as problem:
        await _asked(url)
    assert "CANARY" not in str(problem.value)
    with _server(breaks) as url, pytest.raises(UpstreamError):
        await _asked(url)
    with pytest.raises(UpstreamError, match="nobody answers"):
        await _asked("http://127.0.0.1:9/token")


async def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    large = json.dumps({"access_token": "x" * 2_000_000}).encode()
    with _server(_said(large)) as url, pytest.raises(UpstreamBadAnswer):
        await _asked(url)
