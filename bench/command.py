"""The command line of every bench: measure, print the table, keep it if asked to."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Protocol

from bench.table import Row, exit_code, keep, machine, render
from workbench.settings import Settings


class Measure(Protocol):
    """What a bench has to offer."""

    def __call__(self, settings: Settings, *, quick: bool) -> Awaitable[Sequence[Row]]:
        """Its rows."""
        ...


def main(title: str, what: str | None, measure: Measure) -> int:
    """Entry point of a bench of that title; `what` it is about stands in the first line."""
    parser = argparse.ArgumentParser(description=(what or title).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples: does it run, do the fatal rows hold")
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    arguments = parser.parse_args()

    async def measured() -> Sequence[Row]:
        return await measure(Settings.from_env(os.environ), quick=arguments.quick)

    rows = asyncio.run(measured())
    text = f"{render(title, rows)}\n\n{machine()}"
    print(text)
    if arguments.write:
        section = title.lower()
        keep(arguments.write, section if os.geteuid() == 0 else f"{section}, ordinary user", text)
    return exit_code(rows, quick=arguments.quick)
