"""An agent of LangGraph that computes in Open Workbench, by langchain-mcp-adapters.

    python examples/langgraph_agent.py "How many primes are there below a million?"    # needs ANTHROPIC_API_KEY
    python examples/langgraph_agent.py --check                                         # needs no model

It starts `workbench mcp` itself; with OPEN_WORKBENCH_URL and OPEN_WORKBENCH_API_KEY set it uses that server instead.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.sessions import Connection
from langchain_mcp_adapters.tools import load_mcp_tools

MODEL = os.environ.get("MODEL", "anthropic:claude-sonnet-4-5")


def connection() -> Connection:
    """How to reach the workbench."""
    url = os.environ.get("OPEN_WORKBENCH_URL")
    if url:
        headers = {"Authorization": f"Bearer {os.environ['OPEN_WORKBENCH_API_KEY']}"}
        return {"transport": "streamable_http", "url": f"{url}/mcp", "headers": headers}
    command = os.environ.get("OPEN_WORKBENCH_COMMAND", "workbench")
    return {"transport": "stdio", "command": command, "args": ["mcp"], "env": dict(os.environ)}


async def ask(task: str) -> None:
    """A whole run, with a model."""
    client = MultiServerMCPClient({"workbench": connection()})
    # One connection for the whole run: without it the adapters make a new one for each call, whose memory is empty.
    async with client.session("workbench") as session:
        agent = create_agent(
            MODEL,
            await load_mcp_tools(session),
            system_prompt="Compute with the workbench instead of guessing. If a result carries `next`, make that call.",
        )
        told = await agent.ainvoke({"messages": [{"role": "user", "content": task}]})
        print(told["messages"][-1].content)


async def check() -> None:
    """Everything but the model: LangChain's own tools are listed, and one is called as a graph would call it."""
    client = MultiServerMCPClient({"workbench": connection()})
    async with client.session("workbench") as session:
        tools = await load_mcp_tools(session)
        for tool in tools:
            print(f"{type(tool).__name__} {tool.name}")
        tool = next(one for one in tools if one.name == "COMPOSIO_REMOTE_WORKBENCH")
        for code in ("x = 41", "x + 1"):
            print(await tool.ainvoke({"code_to_execute": code}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="How many primes are there below a million?")
    parser.add_argument("--check", action="store_true", help="without a model")
    given = parser.parse_args()
    asyncio.run(check() if given.check else ask(given.task))
