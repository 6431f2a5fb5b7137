"""A registry of npm with a few packages of our own, as a real server."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OLD, NEW = "2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"


@dataclass
class Registry:
    """Add packages, then ask for them at `url`."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    packages: dict[str, dict[str, Any]] = field(default_factory=dict)
    tarballs: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, version: str, *, made: str = OLD, size: int = 0, **more: Any) -> None:
        """With whatever else its package.json says."""
        described = {"name": name, "version": version, **more}
        files = {"package.json": json.dumps(described).encode(), "index.js": f"module.exports = '{version}'".encode()}
        if size:
            files["large.bin"] = b"x" * size
        packed = _packed(files)
        path = f"/{name}/-/{name}-{version}.tgz"
        self.tarballs[path] = packed
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
        packument = self.packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}, "time": {}})
        scripts = {"hasInstallScript": True} if "scripts" in more else {}
        dist = {"tarball": self.url + path, "integrity": integrity}
        packument["versions"][version] = {**described, **scripts, "dist": dist}
        packument["dist-tags"]["latest"] = version
        packument["time"][version] = made


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@contextlib.contextmanager
def serving() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            known = registry.packages.get(self.path.strip("/"))
            body = registry.tarballs.get(self.path) or (json.dumps(known).encode() if known else b"{}")
            self.send_response(200 if body != b"{}" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as its parent calls it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
