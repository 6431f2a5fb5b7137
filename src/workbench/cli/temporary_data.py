"""A data folder for as long as a server that a program brings along."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from workbench.cli.printing import notice
from workbench.errors import Conflict
from workbench.guest_trees import remove_tree
from workbench.settings import Settings

# In the folder, as long as it is one that goes with its server.
_MARK = "temporary"


@contextlib.contextmanager
def temporary_data(settings: Settings, folder: Path | None = None) -> Iterator[Settings]:
    """The same settings with a data folder that is gone afterwards, but with the usual images.

    `folder` is one that whoever started us made for this, so that they can remove it if we cannot.
    """
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="wb-"))
    elif not folder.is_dir() or any(folder.iterdir()):
        # BARRIER: what somebody keeps is never taken for something that goes; held by tests/cli/test_serve.py.
        raise click.UsageError(f"{folder} must be an empty folder: all of it is removed at the end")
    (folder / _MARK).touch(mode=0o600)
    try:
        yield replace(settings, data_dir=folder, database_url="", files_url="")
    finally:
        if not remove_tree(folder):
            notice(f"some of {folder} could not be removed")


def is_temporary(folder: Path) -> bool:
    """Whether it goes with its server: nobody misses it."""
    return (folder / _MARK).is_file()


def check_temporary(folder: Path) -> None:
    """Raises: Conflict if there is something in the folder that somebody may want to keep."""
    # BARRIER: a data folder that was named by mistake stays; held by tests/cli/test_serve.py.
    if folder.is_dir() and not is_temporary(folder) and any(folder.iterdir()):
        raise Conflict(f"{folder} is not a temporary data folder, and is not removed")
