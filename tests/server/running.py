"""Real servers in processes of their own, on loopback, with the real host of a data folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2

from workbench.core import requests
from workbench.model.access import Caller, NewKey, Scope
from workbench.model.ids import ProjectId
from workbench.server.serve import run_server
from workbench.settings import Settings
from workbench.wiring import Service, open_service

ROOT = Path(__file__).resolve().parents[2]
STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server, and how it is asked."""

    settings: Settings
    process: subprocess.Popen[bytes]
    url: str
    key: str = field(repr=False)
    log: Path

    def client(self, key: str | None = None, **more: Any) -> httpx2.Client:
        """With the first key, another, or (with an empty one) none."""
        chosen = self.key if key is None else key
        headers = {"authorization": f"Bearer {chosen}"} if chosen else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60.0, trust_env=False, **more)

    def events(self) -> list[dict[str, Any]]:
        """What it has logged."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(STOP_S)


@contextlib.contextmanager
def running(
    settings: Settings, *, with_key: bool = True, inside: Sequence[str] = (), port: int = 0
) -> Iterator[Running]:
    """Started, and stopped at the end if it still runs. Without a key for a store that cannot keep one.

    `inside` is what puts a command into a network of the test's own.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    log = settings.data_dir.parent / "server.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*inside, sys.executable, "-c", f"from tests.server.running import main; main({with_key})"],
            cwd=ROOT,
            env={**os.environ, **replace(settings, listen_port=port).to_env()},
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    # A server that never says anything is ended, and the read with it.
    guard = threading.Timer(60.0, process.kill)
    guard.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        guard.cancel()
        assert line, log.read_text(encoding="utf-8")
        told = json.loads(line)
        kept = settings.data_dir / "first-key"
        if told["key"]:
            kept.write_text(told["key"], encoding="ascii")
        key = kept.read_text(encoding="ascii") if with_key else ""
        yield Running(settings=settings, process=process, url=told["url"], key=key, log=log)
    finally:
        guard.cancel()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_S)
        if process.stdout is not None:
            process.stdout.close()


def main(with_key: bool) -> None:
    """The child: as the command does it, but with its address and key in JSON."""
    settings = Settings.from_env(os.environ)
    made: list[NewKey] = []

    @contextlib.asynccontextmanager
    async def opened() -> AsyncIterator[Service]:
        async with open_service(settings, os.environ) as service:
            if with_key and (key := await service.access.first_key()):
                made.append(key)
            yield service

    def started(url: str) -> None:
        print(json.dumps({"url": url, "key": made[0].presented if made else ""}), flush=True)

    run_server(opened, settings, started=started)


def make_key(settings: Settings, *scopes: Scope, project: str = "default", lifetime_s: int | None = None) -> NewKey:
    """As the owner of the data folder makes it."""

    async def made() -> NewKey:
        async with open_service(settings, os.environ) as service:
            request = requests.CreateKey(
                by=Caller(), project=ProjectId(project), scopes=frozenset(scopes), lifetime_s=lifetime_s
            )
            return await service.access.create_key(request)

    return asyncio.run(made())


def problem_of(answer: httpx2.Response) -> dict[str, Any]:
    """The error of an answer that is none else, in the shape that all have."""
    told = answer.json()
    assert set(told) == {"error"}, told
    assert set(told["error"]) == {"code", "message", "context", "retryable", "request_id"}
    assert answer.headers["x-request-id"] == told["error"]["request_id"]
    assert answer.headers["content-type"] == "application/json"
    error: dict[str, Any] = told["error"]
    return error


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    name: str
    id: str
    data: dict[str, Any]


def events_of(lines: Iterator[str]) -> Iterator[Event]:
    """Of a stream, as they come."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "event" in fields:
                yield Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
