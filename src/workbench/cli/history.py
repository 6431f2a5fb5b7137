"""`workbench sessions history` and `export`: what was run in a session, for people and as a notebook."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from workbench.cli.asking import ask
from workbench.cli.running import json_option
from workbench.cli.tables import lasting, moment, print_table
from workbench.cli.values import print_json, record_json
from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.model.ids import CellId, SessionId, session_id
from workbench.model.records import CellRecord
from workbench.settings import Settings

_PAGE = 100
_CODE_SHOWN = 60


@click.command()
@click.argument("name")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="So many, the newest.")
@json_option
@click.pass_obj
def history(settings: Settings, name: str, limit: int, as_json: bool) -> None:
    """Cells and commands of a session, oldest first, with how they ended and what was thought."""
    session = session_id(name)
    found = ask(settings, lambda bench: _newest(bench, session, limit))
    if as_json:
        print_json([record_json(one) for one in found])
    else:
        print_table(("CELL", "KIND", "WHEN", "TOOK", "END", "CODE", "THOUGHT"), (_row(one) for one in found))


async def _newest(bench: Workbench, session: SessionId, limit: int) -> list[CellRecord]:
    found: list[CellRecord] = []
    after: tuple[str, CellId] | None = None
    while len(found) < limit:
        page = await bench.list_cells(
            requests.ListCells(session=session, after=after, limit=min(_PAGE, limit - len(found)), newest_first=True)
        )
        found.extend(page.cells)
        after = page.next_after
        if after is None:
            break
    return found[::-1]


def _row(record: CellRecord) -> tuple[str, ...]:
    result = record.result
    end = result.outcome.value if result is not None else record.problem.code if record.problem else record.status.value
    took = lasting(result.receipt.wall_s) if result is not None else "-"
    first = record.code.strip().partition("\n")[0]
    code = first if len(first) <= _CODE_SHOWN else first[: _CODE_SHOWN - 1] + "…"
    return record.id, record.kind.value, moment(record.created_at), took, end, code, record.progress.thought


@click.command()
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, allow_dash=True))
@click.pass_obj
def export(settings: Settings, name: str, file: str) -> None:
    """Write a session's history as a notebook (nbformat 4) to FILE; - is standard output."""
    request = requests.ExportNotebook(session=session_id(name))
    notebook = json.dumps(ask(settings, lambda bench: bench.export_notebook(request)), indent=1, ensure_ascii=False)
    if file == "-":
        click.echo(notebook)
        return
    # Beside it and then over it: whoever has it open never sees half of it.
    target = Path(file)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_text(notebook + "\n", encoding="utf-8")
        partial.replace(target)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        click.echo(f"error: {file} cannot be written: {problem.strerror}", err=True)
        sys.exit(1)
