"""`workbench attach`: how a notebook or a console joins a session that lives."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from workbench.cli.asking import ask
from workbench.cli.running import json_option
from workbench.cli.values import print_json
from workbench.core.requests import AttachKernel
from workbench.model.ids import session_id
from workbench.settings import Settings


@click.command()
@click.argument("name")
@json_option
@click.pass_obj
def attach(settings: Settings, name: str, as_json: bool) -> None:
    """Open a door for Jupyter clients of this machine to session NAME, and print how to use it.

    They share its variables and wait for their turn like everyone else; nothing of theirs can block it.
    """
    request = AttachKernel(session=session_id(name))
    point = ask(settings, lambda bench: bench.attach_kernel(request))
    file = point.connection_file
    commands = {
        "console": f"jupyter console --existing {shlex.quote(file)}",
        "lab": "jupyter lab --ServerApp.allow_external_kernels=True "
        f"--ServerApp.external_connection_dir={shlex.quote(str(Path(file).parent))}",
    }
    if as_json:
        print_json({"session": name, "connection_file": file, "info": dict(point.info), "commands": commands})
        return
    click.echo(f"connection file: {file}")
    click.echo(f"in a terminal:   {commands['console']}")
    click.echo(f"in JupyterLab:   {commands['lab']}")
