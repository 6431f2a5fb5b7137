"""An agent of the Claude Agent SDK that computes in Open Workbench.

    python examples/claude_agent.py "How many primes are there below a million?"    # needs ANTHROPIC_API_KEY
    python examples/claude_agent.py --check                                         # needs no model

It starts `workbench mcp` itself; with OPEN_WORKBENCH_URL and OPEN_WORKBENCH_API_KEY set it uses that server instead.

The SDK has no object for a tool of a server: the `claude` program that it brings along connects, and calls what the
model asks for. So --check connects by it and lists the tools that it has found, which is as far as it goes without a
model.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, TextBlock, query
from claude_agent_sdk.types import McpServerConfig, McpServerStatus

SERVER = "workbench"
CONNECT_S = 60


def server() -> McpServerConfig:
    """How to reach the workbench."""
    url = os.environ.get("OPEN_WORKBENCH_URL")
    if url:
        headers = {"Authorization": f"Bearer {os.environ['OPEN_WORKBENCH_API_KEY']}"}
        return {"type": "http", "url": f"{url}/mcp", "headers": headers}
    command = os.environ.get("OPEN_WORKBENCH_COMMAND", "workbench")
    return {"type": "stdio", "command": command, "args": ["mcp"], "env": dict(os.environ)}


def options() -> ClaudeAgentOptions:
    """Our tools, none of those that work on this machine, and no settings of whoever runs this."""
    return ClaudeAgentOptions(
        tools=[],
        allowed_tools=[f"mcp__{SERVER}"],
        mcp_servers={SERVER: server()},
        strict_mcp_config=True,
        setting_sources=[],
        system_prompt="Compute with the workbench instead of guessing. If a result carries `next`, make that call.",
    )


async def ask(task: str) -> None:
    """A whole run, with a model."""
    async for message in query(prompt=task, options=options()):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(block.text)


async def check() -> None:
    """Everything but the model: the tools that Claude's own program has found at the server."""
    async with ClaudeSDKClient(options()) as client, asyncio.timeout(CONNECT_S):
        found = await _status(client)
        while found["status"] == "pending":
            await asyncio.sleep(0.2)
            found = await _status(client)
        if found["status"] != "connected":
            raise SystemExit(f"{SERVER} is {found['status']}: {found.get('error', '')}")
        print(f"connected to {found['serverInfo']['name']} {found['serverInfo']['version']}")
        for tool in found["tools"]:
            print(f"mcp__{SERVER}__{tool['name']}")


async def _status(client: ClaudeSDKClient) -> McpServerStatus:
    known = await client.get_mcp_status()
    return next(one for one in known["mcpServers"] if one["name"] == SERVER)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="How many primes are there below a million?")
    parser.add_argument("--check", action="store_true", help="without a model")
    given = parser.parse_args()
    asyncio.run(check() if given.check else ask(given.task))
