"""An MCP server that is written by hand, so that it can be as wrong as a test wants: `python lying.py HOW`."""

from __future__ import annotations

import json
import sys
from typing import Any

HOW = sys.argv[1]
GOOD = {"name": "good", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
BROKEN: dict[str, list[dict[str, Any]]] = {
    "one-broken": [
        GOOD,
        {"name": "no-schema", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}},
        {"name": "abroad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/a.json"}}}},
        {"name": "???", "inputSchema": {"type": "object"}},
    ],
    "all-broken": [{"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}],
    "not-even-that": [GOOD, {"name": "bad", "inputSchema": {"type": "object", "properties": ["a"]}}],
    "breaks-its-promise": [{**GOOD, "outputSchema": {"type": "object", "required": ["n"], "properties": {"n": {}}}}],
    "long-line": [GOOD],
    "changes": [GOOD],
    "alike": [{**GOOD, "name": "get-it"}, {**GOOD, "name": "get_it"}],
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(asked: dict[str, Any]) -> None:
    match asked.get("method"):
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "lying", "version": "1"}
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities,
                "serverInfo": info,
            }
        case "tools/list":
            result = {"tools": BROKEN[HOW]}
        case "tools/call" if HOW == "long-line":
            sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": "' + "x" * (80 * 2**20))
            sys.stdout.flush()
            return
        case "tools/call" if HOW == "changes":
            BROKEN[HOW].append({**GOOD, "name": "newer"})
            result = {"content": [{"type": "text", "text": "[1, 2]"}]}
            say({"method": "notifications/tools/list_changed"})
        case "tools/call":
            result = {"content": [], "structuredContent": {"m": 1}}
        case "ping":
            result = {}
        case _:
            say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
            return
    say({"id": asked["id"], "result": result})


if HOW == "not-mcp":
    print("Hello! I am a friendly program.")
    sys.stdin.read()
for line in sys.stdin:
    one = json.loads(line)
    if "id" in one:
        answer(one)
