"""The whole task by fastmcp's client, which is in an environment of its own: run with that one's interpreter.

python -m tests.mcp.whole_task.fastmcp_client WAY

WAY is JSON: {"url": ..., "headers": {...}}, or {"command": ..., "args": [...], "env": {...}}
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found]
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport  # type: ignore[import-not-found]
from tests.mcp.whole_task import task


async def main(way: dict[str, Any]) -> None:
    """To the end, or an error."""
    transport = StreamableHttpTransport(**way) if "url" in way else StdioTransport(**way)
    async with Client(transport) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {task.CODE, task.SHELL} <= names, names

        async def ask(tool: str, arguments: dict[str, Any]) -> task.Said:
            message = await client.call_tool_mcp(tool, arguments)
            return task.Said.of(message.model_dump(mode="json", by_alias=True, exclude_none=True))

        await task.perform(ask)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
    print("finished")
