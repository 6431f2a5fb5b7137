"""A real server in a process of its own, with toolkits whose accounts are connected in every way there is."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
from tests.connections.kits import KitSource

from workbench.model.access import NewKey
from workbench.server.serve import run_server
from workbench.settings import Settings
from workbench.wiring import Service, open_service

ROOT = Path(__file__).resolve().parents[2]
_STOP_S = 30.0


@dataclass(frozen=True)
class Serving:
    """One that runs."""

    settings: Settings
    url: str
    key: str
    log: Path

    def client(self) -> httpx2.Client:
        """With the key of everything."""
        headers = {"x-api-key": self.key}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30.0, trust_env=False)

    def browser(self) -> httpx2.Client:
        """With a jar for cookies, and no key."""
        return httpx2.Client(base_url=self.url, timeout=30.0, trust_env=False, follow_redirects=False)


@contextlib.contextmanager
def serving(settings: Settings, authorisation_url: str) -> Iterator[Serving]:
    """Started, and stopped at the end."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    log = settings.data_dir.parent / "server.log"
    told = f"from tests.connections.serving import main; main({authorisation_url!r})"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", told],
            cwd=ROOT,
            env={**os.environ, **replace(settings, listen_port=0).to_env()},
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    guard = threading.Timer(60.0, process.kill)
    guard.start()
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        guard.cancel()
        assert line, log.read_text(encoding="utf-8")
        said = json.loads(line)
        yield Serving(settings, said["url"], said["key"], log)
    finally:
        guard.cancel()
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)
        process.stdout.close()


def main(authorisation_url: str) -> None:
    """The child."""
    settings = Settings.from_env(os.environ)
    made: list[NewKey] = []

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings, os.environ, sources=[KitSource(authorisation_url)]) as service:
            if key := await service.access.first_key():
                made.append(key)
            yield service

    def started(url: str) -> None:
        print(json.dumps({"url": url, "key": made[0].presented}), flush=True)

    run_server(opened, settings, started=started)
