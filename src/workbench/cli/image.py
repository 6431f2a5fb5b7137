"""`workbench image`: build what sandboxes run on."""

from __future__ import annotations

import click

from workbench.images.build import build_image
from workbench.images.recipe import load_recipe
from workbench.settings import Settings


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
