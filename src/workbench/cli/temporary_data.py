"""A data folder for as long as a server that a program brings along."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from workbench.cli.printing import notice
from workbench.guest_trees import remove_tree
from workbench.settings import Settings


@contextlib.contextmanager
def temporary_data(settings: Settings) -> Iterator[Settings]:
    """The same settings with a data folder that is gone afterwards, but with the usual images."""
    folder = Path(tempfile.mkdtemp(prefix="wb-"))
    try:
        yield replace(settings, data_dir=folder, database_url="")
    finally:
        if not remove_tree(folder):
            notice(f"some of {folder} could not be removed")
