"""Servers of ours and official SDKs beside each other, in a network of their own.

Two servers of one data folder: one at loopback only, whose links lead there too, for the SDKs that follow every link;
and one whose links lead to an address that looks public, for those that refuse others.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.composio_sdks.own_network import PUBLIC_LOOKING, OwnNetwork, own_network
from tests.restart.server import own_settings
from tests.server.running import ROOT, Running, make_key, running

from workbench.model.access import Scope

HERE = Path(__file__).resolve().parent
_TYPESCRIPT = HERE / "typescript"
NODE_MODULES = _TYPESCRIPT / "node_modules"
NODE = NODE_MODULES / ".bin/node"
_NEWEST_MODULES = _TYPESCRIPT / "newest/node_modules"
_CORES = {
    "0.8": NODE_MODULES / "composio-core-0-8",
    "0.16": NODE_MODULES / "composio-core-0-16",
    "0.19": NODE_MODULES / "composio-core-0-19",
    "0.21": _NEWEST_MODULES / "@composio/core",
}
# Newer ones refuse links into private networks.
FOLLOWS_EVERY_LINK = frozenset({"python 0.13", "python 0.19", "typescript 0.8", "typescript 0.16"})
_PORT = 8788
# Of everything that one script does.
SCRIPT_S = 150.0
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class World:
    """What an SDK finds."""

    network: OwnNetwork
    plain: Running
    """at loopback, with its links"""
    guarded: Running
    """the same sessions; links lead to an address that looks public"""
    narrow_key: str = field(repr=False)
    """for sessions, and not for calls on behalf of connections"""

    def environment(self, server: Running, home: Path) -> dict[str, str]:
        """All that an SDK's process has: where the server is, a key, and that nobody else is to be told anything."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "COMPOSIO_API_KEY": server.key,
            "COMPOSIO_BASE_URL": server.url,
            "RUN_KEY": self.narrow_key,
            "TELEMETRY_DISABLED": "true",
            "COMPOSIO_DISABLE_TELEMETRY": "true",
            "FACTS": str(home / "facts.json"),
            "PYTHONPATH": str(ROOT),
        }

    def python(self, line: str, server: Running, *arguments: str, **more: str) -> Done:
        """Run by the interpreter that has that line of the Python SDK, in a folder of its own."""
        program = ROOT / f".venv-composio-{line}/bin/python"
        with _home() as home:
            return self._ran([str(program), *arguments], server, home, more)

    def node(
        self, line: str, server: Running, script: str, files: Mapping[str, str] | None = None, **more: str
    ) -> Done:
        """Run by Node, where `@composio/core` is that line of the TypeScript SDK, with these files beside it."""
        with _home() as home:
            _furnish(home, line)
            for name, text in (files or {}).items():
                (home / name).write_text(text, encoding="utf-8")
            return self._ran([str(NODE), script], server, home, more)

    def alone(self, files: Mapping[str, str], script: str, env: Mapping[str, str]) -> Done:
        """Run by a Python that has nothing but these files and these variables."""
        with _home() as home:
            for name, text in files.items():
                (home / name).write_text(text, encoding="utf-8")
            return _ended(self.network.within(sys.executable, "-B", script), home, {"PATH": "/usr/bin:/bin", **env})

    def server_of(self, sdk: str) -> Running:
        """The one whose links it follows."""
        return self.plain if sdk in FOLLOWS_EVERY_LINK else self.guarded

    def ask(self, *asked: Asked) -> list[Answer]:
        """Without any SDK."""
        done = subprocess.run(
            self.network.within(sys.executable, "-m", "tests.composio_sdks.python.raw"),
            cwd=ROOT,
            input=json.dumps([one.to_json(self.plain.url) for one in asked]),
            stdout=subprocess.PIPE,
            text=True,
            timeout=SCRIPT_S,
            check=True,
        )
        return [Answer(one["status"], one["json"]) for one in json.loads(done.stdout)]

    def session(self, session: str) -> dict[str, Any]:
        """As the sessions API describes it."""
        (answer,) = self.ask(Asked("GET", f"/api/v3.1/tool_router/session/{session}", {"x-api-key": self.plain.key}))
        assert answer.status == 200, answer
        told: dict[str, Any] = answer.json
        return told

    def requests(self) -> list[dict[str, Any]]:
        """What both servers were asked until now, by their log."""
        return [event for event in self.plain.events() if event["event"] == "request"]

    def _ran(self, command: list[str], server: Running, home: Path, more: Mapping[str, str]) -> Done:
        return _ended(self.network.within(*command), home, {**self.environment(server, home), **more})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    json: object = None

    def to_json(self, base: str) -> dict[str, object]:
        """As the process takes it that sends it."""
        sent: dict[str, object] = {"method": self.method, "url": base + self.path, "headers": self.headers}
        return sent if self.json is None else {**sent, "json": self.json}


@dataclass(frozen=True, slots=True)
class Answer:
    """To one request."""

    status: int
    json: Any


@dataclass(frozen=True, slots=True)
class Done:
    """How a script ended."""

    code: int
    stdout: str
    stderr: str
    facts: dict[str, Any]
    files: dict[str, bytes]
    """in the folder in which it ran"""


def _ended(command: list[str], home: Path, env: Mapping[str, str]) -> Done:
    done = subprocess.run(
        command,
        cwd=home,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SCRIPT_S,
        check=False,
    )
    facts = home / "facts.json"
    known = json.loads(facts.read_text(encoding="utf-8")) if facts.exists() else {}
    left = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    return Done(done.returncode, done.stdout, done.stderr, known, left)


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wb-sdk-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _furnish(home: Path, line: str) -> None:
    """With packages by the names by which users import them: the SDK, and ours in the place of one of its own."""
    packages = home / "node_modules"
    for name, content in _ours().items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(content)
    (packages / "@composio/core").symlink_to(_CORES[line])
    (packages / "zod").symlink_to(NODE_MODULES / "zod")
    for module in _TYPESCRIPT.glob("*.mjs"):
        shutil.copy(module, home)


@functools.cache
def _ours() -> dict[str, bytes]:
    """What npm makes of our package where it is installed, which is the same in every folder."""
    ours = f"@composio/experimental@file:{ROOT / 'npm/workbench'}"
    quietly = ("--offline", "--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund")
    with _home() as folder:
        subprocess.run(
            ["npm", "install", "--install-links", "--loglevel=error", *quietly, ours],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            timeout=SCRIPT_S,
            check=True,
        )
        packages = folder / "node_modules"
        return {str(path.relative_to(packages)): path.read_bytes() for path in packages.rglob("*") if path.is_file()}


@contextlib.contextmanager
def listening(network: OwnNetwork, module: str) -> Iterator[str]:
    """A server that stands in for a service which we do not own; its address."""
    with subprocess.Popen(
        network.within(sys.executable, "-m", module), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().decode().strip()
            assert port.isdigit(), f"{module} did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(_STOP_S)


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Everything of it ends with it."""
    for part in (
        NODE_MODULES,
        _NEWEST_MODULES,
        *(ROOT / f".venv-composio-{line}" for line in ("0.13", "0.19", "0.30")),
    ):
        assert (part / ".ready").exists(), "the SDKs are not installed: run scripts/install-sdk-parts"
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(own_network())
        models = stack.enter_context(listening(network, "tests.services.model_server"))
        searches = stack.enter_context(listening(network, "tests.services.search_server"))
        settings = stack.enter_context(
            own_settings(
                # Everything that is brought along, as users have it.
                toolkits_shipped="all",
                llm_provider="openai",
                llm_url=f"{models}/v1",
                llm_key="sk-test",
                llm_model="small",
                search_engine="brave",
                search_url=searches,
                search_key="BSA-test",
            )
        )
        inside = tuple(network.within())
        plain = stack.enter_context(running(settings, inside=inside))
        public = replace(
            settings,
            listen_host="0.0.0.0",
            listen_port=_PORT,
            allow_plain_http=True,
            links_url=f"http://{PUBLIC_LOOKING}:{_PORT}",
        )
        guarded = stack.enter_context(running(public, inside=inside, port=_PORT))
        narrow = make_key(settings, Scope.SESSIONS)
        yield World(network, plain, guarded, narrow.presented)
