"""Work that a test holds in the middle: it says where it is, and goes on, by files of its session."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.host.support import eventually

from workbench.settings import Settings

LINES = 1000
_CELL = f"""
import pathlib, time
with open('/mnt/files/effects', 'a') as file: file.write('.')
for number in range({LINES}): print(f'line {{number}}')
pathlib.Path('/mnt/files/waiting').touch()
while not pathlib.Path('/mnt/files/go').exists(): time.sleep(0.02)
for number in range({LINES}, 2 * {LINES}): print(f'line {{number}}')
end = 'of the cell'
"""
_COMMAND = (
    "echo -n . >> /mnt/files/effects; "
    f"seq -f 'line %g' 0 {LINES - 1}; "
    "touch /mnt/files/waiting; while [ ! -e /mnt/files/go ]; do sleep 0.02; done; "
    f"seq -f 'line %g' {LINES} {2 * LINES - 1}"
)
WHOLE = "".join(f"line {number}\n" for number in range(2 * LINES))
KINDS = ("cells", "commands")


def body_of(kind: str, mode: str = "await") -> dict[str, str]:
    """A request for work that stops half-way."""
    return {"mode": mode, "code": _CELL} if kind == "cells" else {"mode": mode, "command": _COMMAND}


@dataclass(frozen=True, slots=True)
class Place:
    """A session, and its files as they are on this machine."""

    settings: Settings
    session: str

    @property
    def files(self) -> Path:
        """What is /mnt/files inside."""
        return self.settings.data_dir / "files" / self.session

    def until_half_way(self) -> None:
        """The work has said half of what it says, and waits."""
        eventually((self.files / "waiting").exists, "it is half-way")

    def let_go(self) -> None:
        """Whoever runs, or does not."""
        (self.files / "go").touch()

    def effects(self) -> str:
        """A dot for each time that it began."""
        return (self.files / "effects").read_text(encoding="ascii")

    def path(self, rest: str) -> str:
        """Of the API."""
        return f"/v1/sessions/{self.session}/{rest}"


def new_session(client: httpx2.Client, settings: Settings, **sandbox: object) -> Place:
    """With its sandbox made."""
    name = f"t-{secrets.token_hex(4)}"
    asked(client, "POST", "/v1/sessions", {"id": name, "sandbox": sandbox, "eager": True})
    return Place(settings, name)


def asked(
    client: httpx2.Client, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Any:
    """The answer, which must be a success."""
    answer = client.request(method, path, json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def run(client: httpx2.Client, place: Place, code: str) -> dict[str, Any]:
    """A cell, and its result."""
    result: dict[str, Any] = asked(client, "POST", place.path("cells"), {"code": code})["result"]
    return result


def ended(client: httpx2.Client, place: Place, kind: str, cell: str) -> dict[str, Any]:
    """How it came to its end."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found: dict[str, Any] = asked(client, "GET", place.path(f"{kind}/{cell}?wait_s=10"))
        if found["status"] != "pending":
            return found
    raise AssertionError(f"{cell} never ended")


def written(client: httpx2.Client, place: Place) -> list[tuple[str, str | None]]:
    """Its history as it is written down, which asks no host: status and outcome, oldest first."""
    items = asked(client, "GET", place.path("history"))["items"]
    return [(one["status"], one["result"] and one["result"]["outcome"]) for one in items]


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Name, id and data of server-sent events, as they come."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "event" in fields:
                yield fields["event"], fields.get("id", ""), fields["data"]
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def over_losses(attempt: Callable[[], bool], seconds: float = 60.0) -> None:
    """Try again for as long as the server is away."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if attempt():
                return
        except httpx2.TransportError:
            pass
        assert time.monotonic() < deadline, "the server never came back"
        time.sleep(0.05)
