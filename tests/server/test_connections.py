"""What a connection may cost before anybody has shown a key, and answers to what is not HTTP."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.server.running import Running

ENOUGH = 64 * 1024


@pytest.fixture
def connection(server: Running) -> Iterator[socket.socket]:
    address = urlsplit(server.url)
    assert address.hostname
    with socket.create_connection((address.hostname, address.port or 0), timeout=30) as connection:
        yield connection


def answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """All that comes until it is closed: status, headers, body."""
    got = b""
    while True:
        try:
            part = connection.recv(65_536)
        except ConnectionResetError:
            break
        if not part:
            break
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split(" ")[1]), dict(line.lower().split(": ", 1) for line in lines), body


def refused(connection: socket.socket, status: int, code: str, *words: str) -> None:
    told, headers, body = answer(connection)
    problem = json.loads(body)["error"]
    assert (told, problem["code"]) == (status, code)
    assert set(problem) == {"code", "message", "context", "retryable", "request_id"}
    assert headers["x-request-id"] == problem["request_id"]
    assert (headers["content-type"], headers["connection"]) == ("application/json", "close")
    for word in words:
        assert word in problem["message"]


@pytest.mark.parametrize(
    "before", [b"GET /", b"GET / HTTP/1.1\r\nhost: x\r\nx-one: ", b"GET / HTTP/1.1\r\nhost: x\r\n", b"\r\n"]
)
def test_a_head_that_never_ends_is_refused_at_the_limit(connection: socket.socket, before: bytes) -> None:
    more = {b"G": b"x", b"\r": b"\r\n"}[before[:1]] if not before.endswith(b"x\r\n") else b"x-a: b\r\n"
    sent = before + more * (ENOUGH // len(more) + 1)
    connection.sendall(sent[:ENOUGH])
    refused(connection, 431, "too_large", "65,536 bytes", "in the body")


def test_a_large_head_that_is_complete_is_refused_as_well(server: Running, connection: socket.socket) -> None:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-one: " + b"x" * ENOUGH + b"\r\n\r\n")
    # Who still sends when the answer comes may lose it, but gets no other.
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(64)[:13] in {b"", b"HTTP/1.1 431 "}
    with server.client("") as client:
        assert client.get("/healthz", headers={"x-one": "x" * 60_000}).status_code == 200


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        (b"SECRETLY / HTTP/1.1\r\nhost: x\r\n\r\n", "no such method"),
        (b"GET /\x01 HTTP/1.1\r\nhost: x\r\n\r\n", "a bad"),
        (b"GET / HTTP/9.9\r\nhost: x\r\n\r\n", "a bad"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "no such method"),
        (b"POST /v1/sessions HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}", "length"),
        (b"POST /v1/sessions HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", "length"),
    ],
)
def test_what_is_not_http_has_an_answer_like_any_other(connection: socket.socket, sent: bytes, word: str) -> None:
    connection.sendall(sent)
    refused(connection, 400, "invalid_request", "HTTP/1.1", word, "/docs")


def test_a_wish_to_upgrade_is_answered_as_a_request(connection: socket.socket) -> None:
    head = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n"
    connection.sendall(head)
    assert connection.recv(64).startswith(b"HTTP/1.1 200 ")


def test_outside_of_the_guarded_addresses_no_body_is_taken(connection: socket.socket) -> None:
    connection.sendall(b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 900000000\r\n\r\n")
    began = time.monotonic()
    refused(connection, 413, "too_large", "takes a body")
    assert time.monotonic() - began < 3


def test_who_has_no_key_is_not_listened_to_for_long(connection: socket.socket) -> None:
    connection.sendall(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 900000000\r\n\r\nx")
    began = time.monotonic()
    assert answer(connection)[0] == 401
    assert 3 < time.monotonic() - began < 15


def test_a_get_with_a_body_is_answered_without_it(server: Running) -> None:
    with server.client() as client:
        for size in (10, 300_000):
            answer = client.request("GET", "/v1/sessions", content=b"x" * size)
            assert answer.status_code == 200
        assert client.get("/v1/sessions").status_code == 200
