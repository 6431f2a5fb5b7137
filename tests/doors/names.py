"""Which doors there are: known before any of them is opened, as tests are made of it."""

from __future__ import annotations

import pytest

CORE = "in process"
WHOLE_NAMES = (CORE, "REST, await", "REST, stream", "REST, detach", "SDK", "SDK, async", "CLI")
NAMES = (*WHOLE_NAMES, "MCP, HTTP", "MCP, stdio")

whole = pytest.mark.parametrize("door", WHOLE_NAMES, indirect=True)
"""for behaviours that only a `WholeDoor` has"""
