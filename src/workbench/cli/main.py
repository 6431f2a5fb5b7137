"""The `workbench` command: settings are read here, once; errors become one line and an exit code."""

from __future__ import annotations

import os
import sys

import click

from workbench import __version__
from workbench.cli.attach import attach
from workbench.cli.audit import audit
from workbench.cli.bash import bash
from workbench.cli.cells import cells
from workbench.cli.connect import connect
from workbench.cli.connections import auth_configs, connections
from workbench.cli.doctor import doctor
from workbench.cli.exec import exec_
from workbench.cli.files import files
from workbench.cli.history import export, history
from workbench.cli.host import host
from workbench.cli.idle import idle, keep
from workbench.cli.image import image
from workbench.cli.kernel import kernel
from workbench.cli.keys import keys
from workbench.cli.mcp import mcp
from workbench.cli.outcome import EXIT_INTERRUPTED, EXIT_OURS
from workbench.cli.serve import serve
from workbench.cli.sessions import sessions
from workbench.cli.state import branch, snapshots, undo
from workbench.cli.tables import plain
from workbench.cli.toolkits import toolkits
from workbench.cli.users import users
from workbench.errors import WorkbenchError
from workbench.settings import Settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="workbench")
@click.pass_context
def cli(context: click.Context) -> None:
    """An isolated, persistent place where an agent writes and runs code."""
    context.obj = Settings.from_env(os.environ)


for command in (
    exec_,
    bash,
    sessions,
    files,
    cells,
    attach,
    kernel,
    serve,
    mcp,
    keys,
    toolkits,
    users,
    connect,
    connections,
    auth_configs,
    audit,
    host,
    doctor,
    image,
):
    cli.add_command(command)
for command in (undo, branch, snapshots, history, export, idle, keep):
    sessions.add_command(command)


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
