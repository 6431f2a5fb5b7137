"""`workbench users`: what is kept about a user, dropped for good."""

from __future__ import annotations

import click

from workbench.cli.asking import ask_service, owner_of, project_option
from workbench.core import requests
from workbench.model.ids import ProjectId
from workbench.settings import Settings
from workbench.wiring import Service


@click.group()
def users() -> None:
    """Users: whose sessions are whose, in your own words."""


@users.command()
@click.argument("user")
@project_option
@click.pass_obj
def rm(settings: Settings, user: str, project: ProjectId) -> None:
    """Delete every session of USER with its files, their connections, and all that is written down about them."""

    async def remove(service: Service) -> int:
        await service.connections.forget_user(project, user)
        count = await service.workbench(project).delete_user(requests.DeleteUser(user=user))
        # Without the name: it was to be forgotten.
        await service.access.note(owner_of(project), "user.delete", detail=f"{count} sessions")
        return count

    count = ask_service(settings, remove)
    click.echo(f"{count} session{'' if count == 1 else 's'} deleted; nothing about the user is kept")
