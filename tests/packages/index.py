"""A package index on loopback, as PEP 691 has it, with wheels that are made here: good ones and bad ones."""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LONG_AGO = "2024-01-01T00:00:00Z"


def wheel(name: str, version: str, files: Mapping[str, str | bytes], *, needs: tuple[str, ...] = ()) -> bytes:
    """A wheel for every Python."""
    stem = f"{name.replace('-', '_')}-{version}"
    told = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {one}" for one in needs)]
    everything: dict[str, bytes] = {
        **{path: text.encode() if isinstance(text, str) else text for path, text in files.items()},
        f"{stem}.dist-info/METADATA": ("\n".join(told) + "\n").encode(),
        f"{stem}.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in everything.items()]
    everything[f"{stem}.dist-info/RECORD"] = ("\n".join([*rows, f"{stem}.dist-info/RECORD,,"]) + "\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in everything.items():
            archive.writestr(path, data)
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


@dataclass(slots=True)
class Index:
    """What is on it, and what was asked of it."""

    url: str = ""
    files: dict[str, dict[str, tuple[bytes, str]]] = field(default_factory=dict)
    """by project: files by name, each with when it was uploaded"""
    asked: list[str] = field(default_factory=list)
    is_down: bool = False
    hangs_s: float = 0.0

    def add(
        self,
        name: str,
        files: Mapping[str, str | bytes],
        *,
        version: str = "1.0",
        needs: tuple[str, ...] = (),
        at: str = LONG_AGO,
    ) -> None:
        """One release as a wheel."""
        data = wheel(name, version, files, needs=needs)
        self.put(name, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", data, at=at)

    def put(self, name: str, file: str, data: bytes, *, at: str = LONG_AGO) -> None:
        """A file of whatever kind."""
        self.files.setdefault(name, {})[file] = (data, at)

    def page(self, project: str) -> bytes:
        """All files of a project."""
        files = [
            {
                "filename": name,
                "url": f"{self.url}/files/{project}/{name}",
                "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                "size": len(data),
                "upload-time": at,
            }
            for name, (data, at) in self.files[project].items()
        ]
        versions = sorted({name.split("-")[1] for name in self.files[project]})
        told = {"meta": {"api-version": "1.1"}, "name": project, "versions": versions, "files": files}
        return json.dumps(told).encode()


def yesterday() -> str:
    """For a release that is too new."""
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextlib.contextmanager
def serving() -> Iterator[Index]:
    """Until the end of the block."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            index.asked.append(self.path)
            time.sleep(index.hangs_s)
            parts = self.path.strip("/").split("/")
            found: bytes | None = None
            kind = "application/octet-stream"
            if index.is_down:
                self.connection.close()
                return
            if parts[0] == "simple" and len(parts) == 2 and parts[1] in index.files:
                found, kind = index.page(parts[1]), "application/vnd.pypi.simple.v1+json"
            elif parts[0] == "files" and len(parts) == 3 and parts[2] in index.files.get(parts[1], {}):
                found = index.files[parts[1]][parts[2]][0]
            self.send_response(200 if found is not None else 404)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(found or b"")))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found or b"")

        def log_message(self, *_: object) -> None:
            """Not on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, name="package index")
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
