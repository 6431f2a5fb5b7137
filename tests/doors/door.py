"""What every door offers, in values that can be compared: the same whatever it travelled through."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

# Longer than anything here takes on a machine without a free core.
LIMIT_S = 60.0
_ADVICE = re.compile(r"; `workbench [^`]+`[^;]*$")


class Refused(Exception):
    """A door's error, of whatever class it came: nothing ran."""

    def __init__(self, code: str | None, message: str, *, to_agents: bool = False) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        """None for the command line, which has an exit code for all of them, and for MCP: these have words"""
        self.message = message
        self.to_agents = to_agents
        """who have no use for advice to type a command on the host, so that it is left out"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What goes along with a piece of work."""

    limit_s: float = LIMIT_S
    thought: str = ""
    step: str = ""
    metric: str = ""
    idempotency_key: str = ""


PLAIN = Said()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How something that began came to its end."""

    cell: str
    outcome: str
    stdout: str
    stderr: str
    results: str = ""
    stdout_file: str | None = None
    error: str | None = None
    """the name of what was raised"""
    exit_code: int | None = None
    explanation: str
    displays: tuple[tuple[tuple[str, str], ...], ...] = ()
    """each as mime types with their data"""
    epoch: int
    state: str
    reason: str
    added: tuple[str, ...]
    rebound: tuple[str, ...]
    untold: frozenset[str] = frozenset()
    """fields that the door had no word of, in this answer"""

    def comparable(self) -> Ran:
        """Without the one thing that differs between two that are alike: its id."""
        file = self.stdout_file and self.stdout_file.replace(self.cell, "CELL")
        return replace(self, cell="CELL", stdout_file=file, stdout=self.stdout.replace(self.cell, "CELL"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A session as it is."""

    state: str
    epoch: int
    size: str
    runtime: str
    parent: str | None
    running: bool
    """a cell runs in it"""
    step: str
    metric: str
    untold: frozenset[str] = frozenset()
    """as above"""


def as_told_in(seen: object, whole: object) -> object:
    """What `whole` would be if it had come through the door of `seen`, which may tell less."""
    if isinstance(seen, Ran | Described) and isinstance(whole, Ran | Described):
        known = {name: getattr(seen, name) for name in seen.untold}
        return replace(whole, **known, untold=seen.untold)
    if isinstance(seen, Refused) and isinstance(whole, Refused) and seen.to_agents:
        return Refused(whole.code, _ADVICE.sub("", whole.message), to_agents=True)
    return whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One of a session's history."""

    kind: str
    code: str
    thought: str
    status: str
    outcome: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A variable."""

    name: str
    type: str
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lying:
    """A file in a session's mount."""

    path: str
    size: int


class Door(Protocol):
    """One way to a workbench. Every method raises `Refused` if nothing was done. Calls may be made from any thread."""

    name: str
    makes_what_it_runs_in: bool
    """a session that is not there is made by running something in it"""

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        """A cell, to its end."""
        ...

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        """A command, to its end."""
        ...

    def variables(self, session: str) -> tuple[Named, ...]:
        """Of its memory."""
        ...

    def interrupt(self, session: str) -> None:
        """What runs."""
        ...

    def restart(self, session: str) -> Described:
        """A new memory."""
        ...

    def undo(self, session: str, cells: int = 1) -> Described:
        """The memory of before."""
        ...

    def branch(self, session: str, name: str) -> Described:
        """A second one with the same memory."""
        ...

    def delete(self, session: str) -> None:
        """End it, and drop it."""
        ...


class WholeDoor(Door, Protocol):
    """One that has every operation, and takes all of `Said` with cells and commands alike.

    MCP's tools are fewer, on purpose. They have no word for what is here, or other words; they take no idempotency key,
    no limit for a command, for a cell none above 300 s, and nothing along with a command.
    """

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        """A new session, of that name; MCP's tool chooses the name."""
        ...

    def describe(self, session: str) -> Described:
        """How it is."""
        ...

    def resize(self, session: str, size: str) -> Described:
        """Another tier."""
        ...

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        """A further kernel."""
        ...

    def contexts(self, session: str) -> tuple[str, ...]:
        """Names of its further kernels."""
        ...

    def restart_context(self, session: str, name: str) -> Described:
        """A new memory for one of them."""
        ...

    def remove_context(self, session: str, name: str) -> None:
        """End one of them."""
        ...

    def history(self, session: str) -> tuple[Past, ...]:
        """What was run in it, oldest first."""
        ...

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        """Into its mount."""
        ...

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        """In its mount."""
        ...

    def get_file(self, session: str, path: str) -> bytes:
        """Out of its mount."""
        ...

    def delete_file(self, session: str, path: str) -> int:
        """A file or a folder; how many files there were."""
        ...


def refusal(call: Callable[[], object]) -> Refused:
    """What a call is refused with."""
    try:
        got = call()
    except Refused as refused:
        return refused
    raise AssertionError(f"not refused: {got}")


def displays_of(displays: list[dict[str, Any]]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """From JSON."""
    return tuple(tuple(sorted(one["data"].items())) for one in displays)
