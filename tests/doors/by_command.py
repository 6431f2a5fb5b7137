"""The command line, as scripts use it: a process for every call, JSON on its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.doors.door import PLAIN, Described, Lying, Named, Past, Ran, Refused, Said, displays_of
from tests.doors.over_rest import past_of

from workbench.cli.outcome import EXIT_OURS
from workbench.settings import Settings

_CALL_S = 120.0
# The script that installing puts beside the interpreter.
_WORKBENCH = Path(sys.executable).with_name("workbench")


class CommandDoor:
    """`workbench ...`"""

    name = "CLI"
    makes_what_it_runs_in = True

    def __init__(self, settings: Settings) -> None:
        self._env = {**os.environ, **settings.to_env()}

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        return _described(self._told("sessions", "create", session, "--tier", size, "--runtime", runtime))

    def describe(self, session: str) -> Described:
        return _described(self._told("sessions", "show", session))

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        return _ran(self._told("exec", "-s", session, *_options(said), code))

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        return _ran(self._told("bash", "-s", session, *_options(said), command))

    def variables(self, session: str) -> tuple[Named, ...]:
        found = self._told("sessions", "vars", session)
        return tuple(Named(name=one["name"], type=one["type"], preview=one["preview"]) for one in found)

    def interrupt(self, session: str) -> None:
        self._run("sessions", "interrupt", session)

    def restart(self, session: str) -> Described:
        return _described(self._told("sessions", "restart", session))

    def undo(self, session: str, cells: int = 1) -> Described:
        return _described(self._told("sessions", "undo", session, str(cells)))

    def branch(self, session: str, name: str) -> Described:
        return _described(self._told("sessions", "branch", session, name))

    def resize(self, session: str, size: str) -> Described:
        self._run("sessions", "tier", session, size)
        return self.describe(session)

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        given = {"--runtime": runtime, "--cwd": folder}
        options = (word for option, value in given.items() if value for word in (option, value))
        return _described(self._told("contexts", "add", session, name, *options))

    def contexts(self, session: str) -> tuple[str, ...]:
        return tuple(one["session"] for one in self._told("contexts", "ls", session))

    def restart_context(self, session: str, name: str) -> Described:
        return _described(self._told("contexts", "restart", session, name))

    def remove_context(self, session: str, name: str) -> None:
        self._run("contexts", "rm", session, name)

    def history(self, session: str) -> tuple[Past, ...]:
        return tuple(past_of(one) for one in self._told("sessions", "history", session))

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        (made,) = json.loads(self._run("files", "put", "-s", session, "-", "--to", path, "--json", given=data))
        return Lying(path=made["path"], size=made["size"])

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        found = self._told("files", "ls", "-s", session, prefix)["items"]
        return tuple(Lying(path=one["path"], size=one["size"]) for one in found)

    def get_file(self, session: str, path: str) -> bytes:
        return self._run("files", "get", "-s", session, path, "-")

    def delete_file(self, session: str, path: str) -> int:
        (gone,) = self._told("files", "rm", "-s", session, path)
        files: int = gone["files"]
        return files

    def delete(self, session: str) -> None:
        self._run("sessions", "rm", session)

    def _told(self, *arguments: str) -> Any:
        return json.loads(self._run(*arguments, "--json"))

    def _run(self, *arguments: str, given: bytes = b"") -> bytes:
        done = subprocess.run(
            [_WORKBENCH, *arguments], env=self._env, capture_output=True, timeout=_CALL_S, input=given
        )
        if done.returncode == EXIT_OURS:
            raise Refused(None, done.stderr.decode().removeprefix("error: ").rstrip("\n"))
        assert done.returncode != 2, done.stderr.decode()
        return done.stdout


def _options(said: Said) -> tuple[str, ...]:
    given = {
        "--timeout": str(said.limit_s),
        "--thought": said.thought,
        "--step": said.step,
        "--metric": said.metric,
        "--idempotency-key": said.idempotency_key,
    }
    return tuple(word for option, value in given.items() if value for word in (option, value))


def _described(told: dict[str, Any]) -> Described:
    return Described(
        state=told["state"],
        epoch=told["epoch"],
        size=told["tier"],
        runtime=told["runtime"],
        parent=told["parent"],
        running=any(one["running"] for one in told["queue"]),
        step=told["progress"]["current_step"],
        metric=told["progress"]["current_step_metric"],
    )


def _ran(told: dict[str, Any]) -> Ran:
    receipt, error = told["receipt"], told.get("error")
    return Ran(
        cell=told["cell"] if "cell" in told else told["command"],
        outcome=told["outcome"],
        stdout=told["stdout"],
        stderr=told["stderr"],
        results=told.get("results", ""),
        stdout_file=told["stdout_file_path"],
        error=error["name"] if error else None,
        exit_code=told.get("exit_code"),
        explanation=told["explanation"],
        displays=displays_of(told.get("displays", [])),
        epoch=receipt["epoch"],
        state=receipt["state"],
        reason=receipt["reason"],
        added=tuple(receipt["added"]),
        rebound=tuple(receipt["rebound"]),
    )
