"""`workbench contexts`: further kernels of a session, each with a language and a memory of its own."""

from __future__ import annotations

import click

from workbench.cli.asking import ask, ask_and_note, ask_service, noted
from workbench.cli.running import json_option
from workbench.cli.sessions import warn
from workbench.cli.tables import print_table
from workbench.cli.values import print_json, session_json
from workbench.core import requests
from workbench.model.ids import new_session_id, session_id
from workbench.settings import Settings
from workbench.wiring import Service


@click.group()
def contexts() -> None:
    """Further kernels of a session, around the same files. Each is used as a session is, by its name."""


@contexts.command()
@click.argument("session")
@click.argument("name", required=False)
@click.option("--runtime", metavar="NAME", help="Its language; the session's unless given.")
@click.option("--cwd", metavar="DIR", help="Where its cells start; made if missing, the session's unless given.")
@json_option
@click.pass_obj
def add(
    settings: Settings, session: str, name: str | None, runtime: str | None, cwd: str | None, as_json: bool
) -> None:
    """Make one, start its kernel, and print its name."""
    request = requests.CreateContext(
        session=session_id(session),
        context=session_id(name) if name is not None else new_session_id(),
        runtime=runtime or "",
        working_folder=cwd or "",
    )
    made = ask_and_note(settings, "session.create", request.context, lambda bench: bench.create_context(request))
    if as_json:
        print_json(session_json(made))
    else:
        click.echo(made.session.spec.id)
    warn(made)


@contexts.command()
@click.argument("session")
@json_option
@click.pass_obj
def ls(settings: Settings, session: str, as_json: bool) -> None:
    """Those of a session, oldest first."""
    request = requests.ListContexts(session=session_id(session))
    found = ask(settings, lambda bench: bench.list_contexts(request))
    if as_json:
        print_json([session_json(one) for one in found])
        return
    print_table(
        ("CONTEXT", "RUNTIME", "STATE", "CELLS", "WORKING FOLDER"),
        (
            (spec.id, spec.runtime, one.state, str(one.execution_count), spec.working_folder)
            for one in found
            for spec in (one.session.spec,)
        ),
    )


@contexts.command()
@click.argument("session")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def rm(settings: Settings, session: str, names: tuple[str, ...]) -> None:
    """End them and drop their history; the session, its files and its other contexts stay."""
    of = session_id(session)

    async def remove(service: Service) -> None:
        for name in names:
            context = session_id(name)
            async with noted(service, "session.delete", context):
                await service.workbench().remove_context(requests.RemoveContext(session=of, context=context))

    ask_service(settings, remove)


@contexts.command()
@click.argument("session")
@click.argument("name")
@json_option
@click.pass_obj
def restart(settings: Settings, session: str, name: str, as_json: bool) -> None:
    """Give one of them a new, empty memory."""
    request = requests.RestartContext(session=session_id(session), context=session_id(name))
    described = ask(settings, lambda bench: bench.restart_context(request))
    if as_json:
        print_json(session_json(described))
    else:
        click.echo(f"{name} has a new memory, epoch {described.session.epoch}")
    warn(described)
