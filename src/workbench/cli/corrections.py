"""`workbench corrections`: how often mistakes of code were corrected."""

from __future__ import annotations

import dataclasses

import click

from workbench.cli.asking import ask_service, project_option
from workbench.cli.running import json_option
from workbench.cli.tables import print_table
from workbench.cli.values import print_json
from workbench.model.corrections import WHATS
from workbench.model.ids import ProjectId
from workbench.settings import Settings


@click.command()
@project_option
@json_option
@click.pass_obj
def corrections(settings: Settings, project: ProjectId, as_json: bool) -> None:
    """How often each rule of the corrections had something to do: acted, declined, hinted, acted on the same again in
    the next cell, undone by the code itself. Of all sessions of the project, since it is counted.
    """
    found = ask_service(settings, lambda service: service.workbench(project).count_corrections())
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
        return
    print_table(
        ("RULE", *(what.upper() for what in WHATS)),
        ((one.rule, *(str(getattr(one, what)) for what in WHATS)) for one in found),
    )
