"""`workbench mcp`: the tools for one client on standard input and output, and how clients come to know of it."""

from __future__ import annotations

import sys

import click

from workbench.cli.mcp_install import install
from workbench.settings import Settings


@click.group(invoke_without_command=True)
@click.option(
    "--tools", metavar="FAMILIES", help="workbench, sandbox, kernel, router, by commas, or all; as set unless given."
)
@click.option(
    "--session", "name", metavar="NAME", help="Its default session, which stays; one of its own unless given."
)
@click.option("--user", metavar="NAME", default="mcp", show_default=True, help="Whose sessions are that it makes.")
@click.pass_context
def mcp(context: click.Context, tools: str | None, name: str | None, user: str) -> None:
    """Serve MCP to one client on standard input and output.

    Needs no server and no key, and starts a host if none runs. Ends with standard input, and interrupts what it has
    running then. `workbench mcp install CLIENT` tells a client of it.
    """
    if context.invoked_subcommand is not None:
        return
    # Imported here: MCP's library takes a second, and the other commands need none of it.
    from workbench.cli import mcp_serving

    settings: Settings = context.obj
    sys.exit(mcp_serving.serve_client(settings, tools=tools, name=name, user=user))


mcp.add_command(install)
