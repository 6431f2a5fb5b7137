"""`workbench image`: what sandboxes run on: built, looked at, added to, made anew, chosen."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from workbench.cli.outcome import EXIT_ENDED
from workbench.cli.tables import print_table, size
from workbench.host_client.find import all_hosts
from workbench.images.additions import ChosenImage
from workbench.images.late import bring_late, late_state
from workbench.images.recipe import PYTHON
from workbench.model.image import Image
from workbench.settings import Settings
from workbench.wire import host as wire


@click.group()
def image() -> None:
    """Runtime images: an interpreter and its libraries."""


@image.command()
@click.argument("name", default=PYTHON)
@click.option("--late", is_flag=True, help="Also what arrives after the image, PyTorch, and wait for it.")
@click.pass_obj
def build(settings: Settings, name: str, late: bool) -> None:
    """Make the image NAME from its recipe, unless it is there already."""
    chosen = _chosen(settings, name)
    with_ends = signal.signal(signal.SIGTERM, _leave)
    try:
        made = chosen.build(_tell)
        click.echo(f"image {made.name} {made.digest} is ready")
        asyncio.run(_tell_hosts(settings))
        part = chosen.recipe.late
        if late and part is not None:
            index = settings.torch_index
            bring_late(settings.images_dir, made.name, part, python=made.python, index=index, tell=_tell)
            click.echo(f"{part.requirement} is ready")
    finally:
        signal.signal(signal.SIGTERM, with_ends)
    if chosen.chosen not in ("", made.digest):
        _tell(f"in use is {chosen.chosen}, by `workbench image use`; go back with `workbench image use {name}`")


@image.command("list")
@click.option("--packages", is_flag=True, help="What the image in use has, name by name.")
@click.pass_obj
def list_(settings: Settings, packages: bool) -> None:
    """Images that are built, which one is in use, and what has been added."""
    chosen = _chosen(settings)
    used = chosen.find()
    if packages:
        print_table(("PACKAGE", "VERSION"), sorted(_packages(used)))
        return
    rows = [
        (
            one.name,
            one.digest,
            "in use" if one.digest == used.digest else "",
            str(len(_packages(one))),
            size(_bytes(Path(one.python).parent.parent)),
            _late(settings, one),
        )
        for one in chosen.built()
    ]
    print_table(("IMAGE", "DIGEST", "", "PACKAGES", "SIZE", "LATE"), rows)
    added = ", ".join(chosen.additions.requirements)
    click.echo(f"\nadded: {added or 'nothing; `workbench image add NAME` does'}")


@image.command()
@click.argument("packages", nargs=-1, required=True, metavar="NAME[==VERSION]...")
@click.pass_obj
def add(settings: Settings, packages: tuple[str, ...]) -> None:
    """Build the image with these packages as well, from wheels, and use it from the next sandbox on."""
    _changed(settings, _chosen(settings).add(packages, _tell))


@image.command()
@click.argument("packages", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def remove(settings: Settings, packages: tuple[str, ...]) -> None:
    """Build the image without packages that were added, and use it from the next sandbox on."""
    _changed(settings, _chosen(settings).remove(packages, _tell))


@image.command()
@click.pass_obj
def rebuild(settings: Settings) -> None:
    """Make the image anew, and use it from the next sandbox on; the one before stays, to go back to."""
    _changed(settings, _chosen(settings).rebuild(_tell))


@image.command()
@click.argument("which", metavar="NAME|DIGEST")
@click.pass_obj
def use(settings: Settings, which: str) -> None:
    """Use an image that was built before, by its DIGEST; or by its NAME what the recipe and the additions say."""
    _changed(settings, _chosen(settings).use(which))


def _chosen(settings: Settings, name: str = PYTHON) -> ChosenImage:
    return ChosenImage(settings.data_dir, settings.images_dir, name)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _leave(number: int, frame: FrameType | None) -> None:
    """As an interrupt does: what was started is ended on the way out."""
    del number, frame
    sys.exit(EXIT_ENDED)


def _changed(settings: Settings, made: Image) -> None:
    asyncio.run(_tell_hosts(settings))
    click.echo(f"image {made.name} {made.digest} is in use, from the next sandbox on")


async def _tell_hosts(settings: Settings) -> None:
    """A host that runs makes its next sandboxes from the new image."""
    for connection in await all_hosts(settings):
        async with connection:
            await connection.ask(wire.RefreshImage(), wire.Done)


def _late(settings: Settings, one: Image) -> str:
    state = late_state(settings.images_dir, one)
    if state is None:
        return "none"
    if state.version:
        return f"torch {state.version}"
    if state.arriving:
        return f"torch is arriving: {size(state.so_far_bytes)} so far"
    return "torch is not there: `workbench image build --late` brings it"


def _packages(one: Image) -> list[tuple[str, str]]:
    folders = Path(one.python).parent.parent.glob("lib/python*/site-packages/*.dist-info")
    named = (folder.name.removesuffix(".dist-info").partition("-") for folder in folders)
    return [(name, version) for name, _, version in named]


def _bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(parent, name)).st_size for name in names)
    return total
