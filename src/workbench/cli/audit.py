"""`workbench audit`: who did what."""

from __future__ import annotations

import dataclasses

import click

from workbench.cli.asking import ask_service, owner_of, project_option
from workbench.cli.running import json_option
from workbench.cli.tables import moment, print_table
from workbench.cli.values import print_json
from workbench.core import requests
from workbench.model.ids import ProjectId, session_id
from workbench.settings import Settings


@click.command()
@project_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="So many, the newest.")
@click.option("--before", default="", metavar="TIME", help="Only what came before, as --json has it in `at`.")
@click.option("-s", "--session", default=None, metavar="NAME", help="Only what was done to it, or asked by its code.")
@json_option
@click.pass_obj
def audit(settings: Settings, project: ProjectId, limit: int, before: str, session: str | None, as_json: bool) -> None:
    """Who made, changed and deleted sessions, keys, tokens and users, and what code in sessions asked by its helpers:
    which one, from which cell, for how long and how it ended. Newest first. Never what was in it.
    """
    about = session_id(session) if session is not None else None
    request = requests.ListAudit(by=owner_of(project), before=before, session=about, limit=limit)
    found = ask_service(settings, lambda service: service.access.list_audit(request))
    if as_json:
        print_json([dataclasses.asdict(one) for one in found])
        return
    print_table(
        ("WHEN", "KEY", "ACTION", "OUTCOME", "SESSION", "USER", "DETAIL"),
        (
            (
                moment(one.at),
                one.key or "owner",
                one.action,
                one.outcome,
                one.session or "-",
                one.user or "-",
                one.detail,
            )
            for one in found
        ),
    )
