"""Cells by MCP over HTTP: by requests that cost next to nothing, in both eras of it, and by its own client."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client import Client as OfficialClient
from mcp.client.streamable_http import streamable_http_client

from bench.serving import Answer, Client, Serving

TOOL = "COMPOSIO_REMOTE_WORKBENCH"
_CONNECTED, _WITHOUT_CONNECTION = "2025-11-25", "2026-07-28"
_ACCEPT = {"accept": "application/json, text/event-stream"}
_PREFIX = "io.modelcontextprotocol"
_ME = {"name": "bench", "version": "1"}
_ANSWER_S = 60.0


class Calls:
    """Of the tool, in one session, on a connection of one's own."""

    def __init__(self, client: Client, session: str) -> None:
        self._client = client
        self._session = session
        self._numbers = itertools.count(1)
        self._connection: dict[str, str] = {}

    async def connect(self) -> None:
        """As clients of the older era do first."""
        hello = {"protocolVersion": _CONNECTED, "capabilities": {}, "clientInfo": _ME}
        answer = await self._send("initialize", hello, _ACCEPT)
        if answer.status != 200:
            raise AssertionError(f"no connection: {answer}")
        self._connection = {
            **_ACCEPT,
            "mcp-protocol-version": _CONNECTED,
            "mcp-session-id": answer.headers["mcp-session-id"],
        }
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._client.ask("POST", "/mcp", body, self._connection)

    async def on_a_connection(self, code: str) -> str:
        """In the era before 2026-07-28."""
        return _value(await self._send("tools/call", self._params(code), self._connection))

    async def without_a_connection(self, code: str) -> str:
        """In the era since 2026-07-28: every request says all."""
        meta = {
            f"{_PREFIX}/protocolVersion": _WITHOUT_CONNECTION,
            f"{_PREFIX}/clientInfo": _ME,
            f"{_PREFIX}/clientCapabilities": {},
        }
        headers = {
            **_ACCEPT,
            "mcp-protocol-version": _WITHOUT_CONNECTION,
            "mcp-method": "tools/call",
            "mcp-name": TOOL,
        }
        return _value(await self._send("tools/call", {**self._params(code), "_meta": meta}, headers))

    def _params(self, code: str) -> dict[str, Any]:
        return {"name": TOOL, "arguments": {"code_to_execute": code, "session_id": self._session}}

    async def _send(self, method: str, params: dict[str, Any], headers: dict[str, str]) -> Answer:
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        return await self._client.ask("POST", "/mcp", body, headers)


def _value(answer: Answer) -> str:
    """Of the last message, whether it came alone or in a stream of events."""
    text = answer.body.decode()
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    if answer.status != 200:
        raise AssertionError(f"a call failed: {answer}")
    results: str = json.loads(text)["result"]["structuredContent"]["data"]["results"]
    return results


@asynccontextmanager
async def official(server: Serving) -> AsyncIterator[OfficialClient]:
    """The protocol's own client."""
    headers = {"authorization": f"Bearer {server.key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_ANSWER_S, trust_env=False) as http,
        OfficialClient(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def by_official(client: OfficialClient, session: str, code: str) -> str:
    """A cell by it."""
    answer = await client.call_tool(TOOL, {"code_to_execute": code, "session_id": session})
    assert answer.structured_content is not None
    results: str = answer.structured_content["data"]["results"]
    return results
