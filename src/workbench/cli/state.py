"""`workbench sessions undo`, `branch` and `snapshots`: a session's memory, taken back, taken on, and kept."""

from __future__ import annotations

import click

from workbench.cli.asking import ask, ask_and_note
from workbench.cli.printing import notice
from workbench.cli.running import json_option
from workbench.cli.sessions import snapshots_in_words, warn
from workbench.cli.tables import plain
from workbench.cli.values import print_json, session_json
from workbench.core import requests
from workbench.model.ids import new_session_id, session_id
from workbench.settings import Settings

# Names that did not arrive, on a terminal; --json has them all.
_SHOWN = 20


@click.command()
@click.argument("session")
@click.argument("cells", type=click.IntRange(min=1), default=1, metavar="[N]")
@json_option
@click.pass_obj
def undo(settings: Settings, session: str, cells: int, as_json: bool) -> None:
    """Go back to the memory from before the last N cells (1 unless given); files stay as they are."""
    request = requests.UndoCells(session=session_id(session), cells=cells)
    undone = ask(settings, lambda bench: bench.undo(request))
    if as_json:
        print_json({**session_json(undone.described), "not_carried": undone.not_carried})
    else:
        last = "the last cell" if cells == 1 else f"the last {cells} cells"
        click.echo(f"{session} has its memory from before {last}, epoch {undone.described.session.epoch}")
    _note("not carried", undone.not_carried)
    warn(undone.described)


@click.command()
@click.argument("session")
@click.argument("name", required=False)
@click.option(
    "--copy", is_flag=True, help="In a sandbox of its own: files and variables are copied, nothing is shared."
)
@json_option
@click.pass_obj
def branch(settings: Settings, session: str, name: str | None, copy: bool, as_json: bool) -> None:
    """Make a second session with the same memory, and print its name."""
    request = requests.BranchSession(
        session=session_id(session),
        branch=session_id(name) if name is not None else new_session_id(),
        copy=copy,
    )
    made = ask_and_note(settings, "session.create", request.branch, lambda bench: bench.branch(request))
    if as_json:
        print_json(_branch_json(made))
    else:
        click.echo(made.described.session.spec.id)
    if isinstance(made, requests.CopiedSession):
        _note("files", made.files_note)
        _note("not carried", _names(made.not_carried))
    else:
        _note("not carried", made.not_carried)
    warn(made.described)


def _branch_json(made: requests.Branched | requests.CopiedSession) -> dict[str, object]:
    told = {**session_json(made.described), "not_carried": made.not_carried}
    if isinstance(made, requests.CopiedSession):
        told |= {"carried": list(made.carried), "files_note": made.files_note}
    return told


def _names(not_carried: dict[str, str]) -> str:
    shown = [f"{name} ({reason})" for name, reason in sorted(not_carried.items())[:_SHOWN]]
    more = len(not_carried) - len(shown)
    return ", ".join(shown) + (f" and {more} more; --json has all" if more else "")


def _note(what: str, words: str) -> None:
    if words:
        # The guest's own names and reprs may be among them.
        notice(f"{what}: {plain(' '.join(words.split()))}")


@click.command()
@click.argument("session")
@click.argument("switch", type=click.Choice(["on", "off"]))
@json_option
@click.pass_obj
def snapshots(settings: Settings, session: str, switch: str, as_json: bool) -> None:
    """Keep a session's memory between cells from now on, or drop what is kept."""
    request = requests.SetSnapshots(session=session_id(session), on=switch == "on")
    described = ask_and_note(settings, "session.change", request.session, lambda bench: bench.set_snapshots(request))
    if as_json:
        print_json(session_json(described))
    else:
        click.echo(f"{session} snapshots: {snapshots_in_words(described)}")
    warn(described)
