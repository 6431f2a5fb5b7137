"""A host's own record of what it made and what ended, for whoever comes after it. One line of JSON an event."""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import dataclass
from pathlib import Path

from workbench.engines import proc
from workbench.model.ids import SandboxId


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A sandbox that had not ended when the record stops."""

    sandbox: SandboxId
    pid: int | None
    started: int | None
    """the kernel's start time of that pid, without which a pid means nothing later"""


class Journal:
    """Append-only; owned by the host."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def made(self, sandbox: SandboxId, pid: int | None) -> None:
        """Before it is used."""
        self._write(
            {"event": "made", "sandbox": sandbox, "pid": pid, "started": None if pid is None else proc.start_time(pid)}
        )

    def ended(self, sandbox: SandboxId, reason: str) -> None:
        """After it is gone."""
        self._write({"event": "ended", "sandbox": sandbox, "reason": reason})

    def _write(self, event: dict[str, str | int | None]) -> None:
        # One write a line: a host killed in the middle leaves at most one torn line, which reading skips.
        os.write(self._descriptor, json.dumps(event).encode() + b"\n")

    def close(self) -> None:
        """May be called once."""
        os.close(self._descriptor)


def unfinished(path: Path) -> list[Made]:
    """What the record says was alive at its end."""
    alive: dict[str, Made] = {}
    for event in _events(path):
        if event.get("event") == "made":
            sandbox = SandboxId(str(event["sandbox"]))
            alive[sandbox] = Made(sandbox=sandbox, pid=_number(event, "pid"), started=_number(event, "started"))
        else:
            alive.pop(str(event.get("sandbox")), None)
    return list(alive.values())


def _number(event: dict[str, str | int | None], name: str) -> int | None:
    value = event.get(name)
    return value if isinstance(value, int) else None


def _events(path: Path) -> list[dict[str, str | int | None]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def now() -> str:
    """For people."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
