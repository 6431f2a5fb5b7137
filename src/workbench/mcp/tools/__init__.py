"""The families of tools."""

from __future__ import annotations

from typing import Any

from workbench.mcp.tool import Tool
from workbench.mcp.tools import kernel, router, sandbox, sandbox_files, sandbox_sessions, workbench

ALL_TOOLS: tuple[Tool[Any], ...] = (
    workbench.WORKBENCH,
    workbench.BASH,
    sandbox_sessions.CREATE,
    sandbox.CODE,
    sandbox.TERMINAL,
    sandbox_files.IMPORT,
    sandbox_files.EXPORT,
    sandbox_sessions.STOP,
    kernel.INTERRUPT,
    kernel.RESTART_TOOL,
    kernel.UNDO_TOOL,
    kernel.BRANCH_TOOL,
    kernel.CONTEXT_TOOL,
    kernel.VARIABLES,
)
"""those that run something in a sandbox"""
ROUTER_TOOLS = router.ROUTER_TOOLS
"""those that lead to tools of apps"""
