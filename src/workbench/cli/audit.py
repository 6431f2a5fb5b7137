"""`workbench audit`: who did what."""

from __future__ import annotations

import dataclasses

import click

from workbench.cli.asking import ask_service, owner_of, project_option
from workbench.cli.running import json_option
from workbench.cli.tables import moment, print_table
from workbench.cli.values import print_json
from workbench.core import requests
from workbench.model.ids import ProjectId
from workbench.settings import Settings


@click.command()
@project_option
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="So many, the newest.")
@click.option("--before", default="", metavar="TIME", help="Only what came before, as --json has it in `at`.")
@json_option
@click.pass_obj
def audit(settings: Settings, project: ProjectId, limit: int, before: str, as_json: bool) -> None:
    """Who made, changed and deleted sessions, keys, tokens and users; newest first. Never what was in them."""
    request = requests.ListAudit(by=owner_of(project), before=before, limit=limit)
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
