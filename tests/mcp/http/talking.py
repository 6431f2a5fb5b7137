"""Clients of the official library at a real server, and the protocol by hand where theirs hides too much."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from tests.host.support import eventually, host_pids, run_folders

from workbench.guest_trees import remove_tree
from workbench.settings import Settings

TOOL, BASH = "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"
OLDER, NEWER = "legacy", "2026-07-28"
OLDER_VERSION = "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}


@contextlib.contextmanager
def own_settings(**more: Any) -> Iterator[Settings]:
    """A data folder of its own; its host ends with it. Toolkits are those that a test adds, unless it wants others."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    chosen = {"pool_size": 2, "toolkits_shipped": "none", **more}
    settings = replace(Settings.from_env(os.environ), data_dir=folder / "data", **chosen)
    try:
        yield settings
        for pid in host_pids(settings):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        eventually(lambda: not run_folders(settings), "the host has left")
    finally:
        assert remove_tree(folder)


@contextlib.asynccontextmanager
async def client_at(url: str, key: str, mode: str, **more: Any) -> AsyncIterator[Client]:
    """Connected."""
    headers = {"authorization": f"Bearer {key}"}
    timeout = httpx2.Timeout(60.0, read=120.0)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **more) as client,
    ):
        yield client


async def run(client: Client, code: str, **more: Any) -> CallToolResult:
    """A cell in the session of this connection, or another."""
    progress = more.pop("progress_callback", None)
    answer = await client.call_tool(TOOL, {"code_to_execute": code, **more}, progress_callback=progress)
    assert isinstance(answer, CallToolResult)
    return answer


def data_of(answer: CallToolResult) -> dict[str, Any]:
    """Of what began."""
    told = answer.structured_content
    assert isinstance(told, dict)
    assert not answer.is_error, told
    data: dict[str, Any] = told["data"]
    return data


class Raw:
    """The older protocol by hand."""

    def __init__(self, http: httpx2.Client, path: str = "/mcp", connection: str = "") -> None:
        self.http = http
        self.path = path
        self.connection = connection
        self._number = 0

    def headers(self) -> dict[str, str]:
        """Of every request."""
        own = {"mcp-session-id": self.connection} if self.connection else {}
        return {**ACCEPT, "mcp-protocol-version": OLDER_VERSION, **own}

    def post(self, message: dict[str, Any], **more: Any) -> httpx2.Response:
        """A message as it is."""
        return self.http.post(self.path, json={"jsonrpc": "2.0", **message}, headers=self.headers(), **more)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> httpx2.Response:
        """A request."""
        self._number += 1
        return self.post({"id": self._number, "method": method, "params": params or {}})

    def call(self, code: str, tool: str = TOOL) -> httpx2.Response:
        """Of a tool."""
        name = "command" if tool == BASH else "code_to_execute"
        return self.ask("tools/call", {"name": tool, "arguments": {name: code}})

    def connect(self) -> Raw:
        """With the handshake."""
        info = {"name": "by hand", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": OLDER_VERSION, "capabilities": {}, "clientInfo": info})
        assert answer.status_code == 200, answer.text
        self.connection = answer.headers["mcp-session-id"]
        assert self.post({"method": "notifications/initialized"}).status_code == 202
        return self


def told_in(answer: httpx2.Response) -> dict[str, Any]:
    """The message of a stream with one answer."""
    assert answer.status_code == 200, answer.text
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def structured_in(answer: httpx2.Response) -> dict[str, Any]:
    """What a tool answered."""
    told = told_in(answer)
    assert "result" in told, told
    structured: dict[str, Any] = told["result"]["structuredContent"]
    return structured
