"""A real server in a process of its own, with a data folder and a host of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.host.support import eventually, run_folders

from workbench.guest_trees import remove_tree
from workbench.settings import Settings

_STOP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """One that listens."""

    settings: Settings
    process: subprocess.Popen[bytes]
    url: str
    key: str


@contextlib.contextmanager
def serving(base: Settings) -> Iterator[Serving]:
    """`workbench serve --embedded`, which is ended, with its host, by closing its standard input."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    settings = replace(base, data_dir=folder / "data", pool_size=2)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench", "serve", "--embedded"],
            env={**os.environ, **settings.to_env()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Serving(settings=settings, process=process, url=told["url"], key=told["key"])
        finally:
            process.communicate(timeout=_STOP_S)
        assert process.returncode == 0
        eventually(lambda: not run_folders(settings), "the host has left")
    finally:
        assert remove_tree(folder)
