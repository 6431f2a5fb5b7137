"""`workbench image`: build what sandboxes run on."""

from __future__ import annotations

import asyncio

import click

from workbench.host_client.find import all_hosts
from workbench.images.build import build_image
from workbench.images.recipe import load_recipe
from workbench.settings import Settings
from workbench.wire import host as wire


@click.group()
def image() -> None:
    """Runtime images: an interpreter and its libraries."""


@image.command()
@click.argument("name", default="python")
@click.pass_obj
def build(settings: Settings, name: str) -> None:
    """Make the image NAME from its recipe, unless it is there already."""
    made = build_image(settings.images_dir, load_recipe(name), lambda line: click.echo(line, err=True))
    click.echo(f"image {made.name} {made.digest} is ready")
    asyncio.run(_tell_hosts(settings))


async def _tell_hosts(settings: Settings) -> None:
    """A host that runs makes its next sandboxes from the new image."""
    for connection in await all_hosts(settings):
        async with connection:
            await connection.ask(wire.RefreshImage(), wire.Done)
