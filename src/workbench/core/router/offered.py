"""Which tools a session offers by itself, by its configuration."""

from __future__ import annotations

from workbench.model.configuration import SessionConfig, is_named
from workbench.model.toolkit import META_TOOLKIT

SEARCH_TOOLS = "COMPOSIO_SEARCH_TOOLS"
GET_TOOL_SCHEMAS = "COMPOSIO_GET_TOOL_SCHEMAS"
MULTI_EXECUTE_TOOL = "COMPOSIO_MULTI_EXECUTE_TOOL"
MANAGE_CONNECTIONS = "COMPOSIO_MANAGE_CONNECTIONS"
WAIT_FOR_CONNECTIONS = "COMPOSIO_WAIT_FOR_CONNECTIONS"
REMOTE_WORKBENCH = "COMPOSIO_REMOTE_WORKBENCH"
REMOTE_BASH_TOOL = "COMPOSIO_REMOTE_BASH_TOOL"
PROXY_EXECUTE = "COMPOSIO_PROXY_EXECUTE"
SUBMIT_FEEDBACK = "COMPOSIO_SUBMIT_FEEDBACK"


def offered(config: SessionConfig) -> tuple[str, ...]:
    """Their slugs, in the order in which they are shown."""
    connections = config.manage_connections
    on = {
        SEARCH_TOOLS: config.search,
        # Whoever knows a slug from elsewhere asks for its schema.
        GET_TOOL_SCHEMAS: True,
        MULTI_EXECUTE_TOOL: config.multi_execute,
        MANAGE_CONNECTIONS: connections.enable,
        # There is nothing to wait for that the agent could have begun.
        WAIT_FOR_CONNECTIONS: connections.enable and connections.wait_for_connections,
        REMOTE_WORKBENCH: config.sandbox.enable,
        REMOTE_BASH_TOOL: config.sandbox.enable,
        PROXY_EXECUTE: config.proxy_execute is True,
        SUBMIT_FEEDBACK: config.submit_feedback,
    }
    return tuple(slug for slug, is_on in on.items() if is_on and not _is_ruled_out(config, slug))


def _is_ruled_out(config: SessionConfig, slug: str) -> bool:
    """By its own name, or by that of its toolkit. Tags, and lists of what is enabled, are about tools of apps.

    BARRIER: who rules a tool out by its name would have it called all the same; held by
    tests/unit/core/router/test_offered.py.
    """
    kits = config.toolkits
    if kits is not None and (is_named(META_TOOLKIT, kits.disable) or kits.asks_first(META_TOOLKIT)):
        return True
    return any(not one.tools.takes(slug) or one.tools.asks_first(slug) for one in config.tools_of(META_TOOLKIT))
