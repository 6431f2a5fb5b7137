"""What tests of files by links share."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

TUS = {"tus-resumable": "1.0.0", "content-type": "application/offset+octet-stream"}


class Mount:
    """The files of one session through REST and links; the client of links has no key."""

    def __init__(self, client: httpx2.Client, session: str, anyone: httpx2.Client, mount: str = "files") -> None:
        self.client = client
        self.anyone = anyone
        self.base = f"/v1/sessions/{session}/mounts/{mount}"

    def ask(self, call: str, **body: object) -> httpx2.Response:
        return self.client.post(f"{self.base}/{call}", json=body)

    def upload_url(self, path: str, **more: object) -> str:
        return self._url("upload_url", path, more)

    def download_url(self, path: str, **more: object) -> str:
        return self._url("download_url", path, more)

    def _url(self, call: str, path: str, more: dict[str, object]) -> str:
        answer = self.ask(call, path=path, **more)
        assert answer.status_code == 200, answer.text
        url: str = answer.json()["url"]
        return url

    def put(self, path: str, data: bytes, **headers: str) -> httpx2.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.anyone.put(self.upload_url(path), content=data, headers=names)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.anyone.get(self.download_url(path), headers=names)

    def items(self, **query: str | int) -> dict[str, Any]:
        answer = self.client.get(f"{self.base}/items", params={name: str(value) for name, value in query.items()})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def paths(self) -> list[str]:
        return [one["path"] for one in self.items(limit=500)["items"]]

    def run(self, code: str) -> str:
        """In the session's kernel; what it printed."""
        answer = self.client.post(self.base.rpartition("/mounts/")[0] + "/cells", json={"code": code})
        told = answer.json()["result"]
        assert told["outcome"] == "ok", told
        text: str = told["stdout"]["text"]
        return text


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    """A bare connection to where a link leads."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as connection:
        yield connection


def head(method: str, url: str, **headers: str) -> bytes:
    """Of a request, by hand."""
    where = urlsplit(url)
    lines = [f"{method} {where.path}?{where.query} HTTP/1.1", f"host: {where.netloc}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def answered(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The next answer, and nothing of what follows it: status, headers, body."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        some = connection.recv(1)
        assert some, head
        head += some
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    body, length = b"", int(headers.get("content-length", "0"))
    while len(body) < length:
        some = connection.recv(length - len(body))
        assert some, "the answer broke off"
        body += some
    return int(lines[0].split()[1]), headers, body


def received(connection: socket.socket) -> bytes:
    """Until it is closed, or broken."""
    got = b""
    try:
        while some := connection.recv(1 << 20):
            got += some
    except ConnectionResetError:
        pass
    return got
