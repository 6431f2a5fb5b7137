"""The `workbench` command: settings are read here, once; errors become one line and an exit code."""

from __future__ import annotations

import os
import sys

import click

from workbench import __version__
from workbench.cli.commands import Commands
from workbench.cli.outcome import EXIT_INTERRUPTED, EXIT_OURS
from workbench.cli.tables import plain
from workbench.errors import WorkbenchError
from workbench.settings import Settings

_HERE = "workbench.cli"
_PLACES = {
    "exec": f"{_HERE}.exec:exec_",
    "auth-configs": f"{_HERE}.connections:auth_configs",
    **{
        name: f"{_HERE}.{name}:{name}"
        for name in (
            "attach",
            "audit",
            "bash",
            "cells",
            "connect",
            "connections",
            "contexts",
            "corrections",
            "doctor",
            "files",
            "host",
            "image",
            "kernel",
            "keys",
            "mcp",
            "serve",
            "sessions",
            "toolkits",
            "users",
        )
    },
}


@click.group(commands=Commands(_PLACES), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="workbench")
@click.pass_context
def cli(context: click.Context) -> None:
    """An isolated, persistent place where an agent writes and runs code."""
    context.obj = Settings.from_env(os.environ)


def main() -> None:
    """Entry point."""
    try:
        cli.main(standalone_mode=False)
    except WorkbenchError as problem:
        # Line by line, as names in it may be the guest's, and some of ours have several lines.
        said = "\n".join(plain(line) for line in problem.message.split("\n"))
        click.echo(f"error: {said}", err=True)
        sys.exit(EXIT_OURS)
    except click.ClickException as problem:
        problem.show()
        sys.exit(2)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
