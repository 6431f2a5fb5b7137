"""COMPOSIO_REMOTE_WORKBENCH and COMPOSIO_REMOTE_BASH_TOOL, as a client of the official library has them."""

from __future__ import annotations

from tests.mcp.conftest import Connect

from workbench.mcp.families import Family


async def test_variables_live_on_from_call_to_call(connect: Connect) -> None:
    async with connect(Family.WORKBENCH) as client:
        await client.call_tool("COMPOSIO_REMOTE_WORKBENCH", {"code_to_execute": "kept = 41"})
        answer = await client.call_tool("COMPOSIO_REMOTE_WORKBENCH", {"code_to_execute": "kept + 1"})
        assert answer.structured_content["data"]["results"] == "42"
        assert answer.structured_content["successful"] is True
