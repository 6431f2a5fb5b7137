"""The families of tools."""

from __future__ import annotations

from typing import Any

from workbench.mcp.tool import Tool
from workbench.mcp.tools import workbench

ALL_TOOLS: tuple[Tool[Any], ...] = (workbench.WORKBENCH, workbench.BASH)
