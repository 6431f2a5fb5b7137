"""Three clients that others wrote do one whole task, each over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.conformance.suite import node_parts
from tests.mcp.whole_task import task
from tests.restart.server import Server, own_settings, served

from workbench.core.router.offered import offered
from workbench.mcp.tools import ALL_TOOLS, ROUTER_TOOLS
from workbench.model.configuration import SessionConfig
from workbench.settings import Settings

# The inspector starts a process, and over standard input and output a second one, for each of a dozen calls.
pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]
_ROOT = Path(__file__).parents[3]
_EXAMPLES_PYTHON = _ROOT / ".venv-examples" / "bin" / "python"
_TASK_S = 100.0
_CALL_S = 60.0


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    """With data of its own: a server shows its key only once."""
    with own_settings() as settings:
        yield settings


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[Server]:
    """Of the data folder that the others use, too: both doors lead to one host."""
    with served(settings) as server:
        yield server


@pytest.fixture
def own_env(settings: Settings, tmp_path: Path) -> dict[str, str]:
    """With settings of ours, and a home that clients may write to."""
    return {**os.environ, **settings.to_env(), "HOME": str(tmp_path)}


def _program(*options: str) -> tuple[str, list[str]]:
    return sys.executable, ["-m", "workbench", "mcp", *options]


def _address(server: Server) -> str:
    """With a default session of its own: what one client has left is not there for the next."""
    return f"{server.url}/mcp?session=task-{secrets.token_hex(4)}"


async def _by_the_official_client(client: Client) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {task.CODE, task.SHELL}

    async def ask(tool: str, arguments: dict[str, Any]) -> task.Said:
        message = await client.call_tool(tool, arguments)
        return task.Said.of(message.model_dump(mode="json", by_alias=True, exclude_none=True))

    await task.perform(ask)


@asynccontextmanager
async def _over_http(url: str, key: str, mode: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_CALL_S, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_does_the_task_over_stdio(own_env: dict[str, str], mode: str) -> None:
    command, arguments = _program()
    program = StdioServerParameters(command=command, args=arguments, env=own_env)
    async with Client(program, mode=mode) as client:
        await _by_the_official_client(client)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_does_the_task_over_http(server: Server, mode: str) -> None:
    async with _over_http(_address(server), server.key, mode) as client:
        await _by_the_official_client(client)


def _by_fastmcp(way: dict[str, Any], env: dict[str, str]) -> None:
    assert (_EXAMPLES_PYTHON.parents[1] / ".ready").exists(), "run scripts/install-example-parts first"
    ran = subprocess.run(
        [str(_EXAMPLES_PYTHON), "-m", "tests.mcp.whole_task.fastmcp_client", json.dumps(way)],
        cwd=_ROOT, capture_output=True, text=True, timeout=_TASK_S, env=env, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert ran.stdout.strip() == "finished"


def test_fastmcps_client_does_the_task_over_stdio(own_env: dict[str, str]) -> None:
    command, arguments = _program()
    _by_fastmcp({"command": command, "args": arguments, "env": own_env}, own_env)


def test_fastmcps_client_does_the_task_over_http(server: Server, own_env: dict[str, str]) -> None:
    way = {"url": _address(server), "headers": {"Authorization": f"Bearer {server.key}"}}
    _by_fastmcp(way, own_env)


class _Inspector:
    """One process a question; `target` comes first, or its options are taken for the inspector's."""

    def __init__(self, target: list[str], more: list[str], env: dict[str, str]) -> None:
        self._target, self._more, self._env = target, more, env

    def question(self, *words: str) -> Any:
        tools = node_parts() / ".bin"
        program = [str(tools / "node"), str(tools / "mcp-inspector"), "--cli"]
        ran = subprocess.run(
            [*program, *self._target, *self._more, "--format", "json", "--quiet", *words],
            capture_output=True, text=True, timeout=_CALL_S, env=self._env, check=False,
        )  # fmt: skip
        # 5: the answer of the tool is an error, which is ours to look at.
        assert ran.returncode in (0, 5), f"exit code {ran.returncode}: {ran.stderr[-5000:]}"
        return json.loads(ran.stdout)["result"]

    async def ask(self, tool: str, arguments: dict[str, Any]) -> task.Said:
        words = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return task.Said.of(await asyncio.to_thread(self.question, *words))


async def test_the_inspector_does_the_task_over_stdio(settings: Settings, own_env: dict[str, str]) -> None:
    command, arguments = _program("--session", f"task-{secrets.token_hex(4)}")
    # It gives a program hardly anything of its own environment.
    told = [word for name, value in settings.to_env().items() if value for word in ("-e", f"{name}={value}")]
    await task.perform(_Inspector([command, *arguments], told, own_env).ask)


async def test_the_inspector_does_the_task_over_http(server: Server, own_env: dict[str, str]) -> None:
    header = ["--header", f"Authorization: Bearer {server.key}"]
    await task.perform(_Inspector([_address(server)], header, own_env).ask)


def test_the_inspector_finds_nothing_wrong_with_the_schemas_of_our_tools(
    server: Server, own_env: dict[str, str]
) -> None:
    header = ["--header", f"Authorization: Bearer {server.key}"]
    inspector = _Inspector([f"{server.url}/mcp?tools=all"], header, own_env)
    # It exits with 6 and says what it found.
    listed = inspector.question("--method", "tools/list", "--strict")
    found_by_router = [tool for tool in ROUTER_TOOLS if tool.name in offered(SessionConfig())]
    assert len(listed["tools"]) == len(ALL_TOOLS) + len(found_by_router)
