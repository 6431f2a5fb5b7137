"""An agent of the OpenAI Agents SDK that computes in Open Workbench.

    python examples/openai_agents.py "How many primes are there below a million?"    # needs OPENAI_API_KEY
    python examples/openai_agents.py --check                                         # needs no model

It starts `workbench mcp` itself; with OPEN_WORKBENCH_URL and OPEN_WORKBENCH_API_KEY set it uses that server instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os

from agents import Agent, FunctionTool, RunContextWrapper, Runner
from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext

# A cell may take 180 s; the SDK waits for 5 unless told.
WAIT_S = 240


def connect() -> MCPServerStdio | MCPServerStreamableHttp:
    """The workbench, as a server of the SDK's: to be entered with `async with`."""
    url = os.environ.get("OPEN_WORKBENCH_URL")
    if url:
        headers = {"Authorization": f"Bearer {os.environ['OPEN_WORKBENCH_API_KEY']}"}
        return MCPServerStreamableHttp(
            params={"url": f"{url}/mcp", "headers": headers}, client_session_timeout_seconds=WAIT_S
        )
    command = os.environ.get("OPEN_WORKBENCH_COMMAND", "workbench")
    return MCPServerStdio(
        params={"command": command, "args": ["mcp"], "env": dict(os.environ)}, client_session_timeout_seconds=WAIT_S
    )


def make_agent(server: MCPServer) -> Agent[None]:
    """One that runs code instead of guessing."""
    return Agent(
        name="analyst",
        instructions="Compute with the workbench instead of guessing. If a result carries `next`, make that call.",
        mcp_servers=[server],
    )


async def ask(task: str) -> None:
    """A whole run, with a model."""
    async with connect() as server:
        print((await Runner.run(make_agent(server), task)).final_output)


async def check() -> None:
    """Everything but the model: the SDK's own tools are listed, and one is called as a run would call it."""
    async with connect() as server:
        agent = make_agent(server)
        tools = await MCPUtil.get_function_tools(server, False, RunContextWrapper(None), agent)
        for tool in tools:
            print(f"{type(tool).__name__} {tool.name}")
        tool = next(one for one in tools if one.name == "COMPOSIO_REMOTE_WORKBENCH")
        assert isinstance(tool, FunctionTool)
        for code in ("x = 41", "x + 1"):
            arguments = json.dumps({"code_to_execute": code})
            context = ToolContext(None, tool_name=tool.name, tool_call_id="check", tool_arguments=arguments)
            print(await tool.on_invoke_tool(context, arguments))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="How many primes are there below a million?")
    parser.add_argument("--check", action="store_true", help="without a model")
    given = parser.parse_args()
    asyncio.run(check() if given.check else ask(given.task))
