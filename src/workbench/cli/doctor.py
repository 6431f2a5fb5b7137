"""`workbench doctor`: what this machine can do; with --prove, attacks on a real sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import click

from workbench.guest_trees import remove_tree
from workbench.settings import Settings


@click.command()
@click.option("--prove", is_flag=True, help="Attack a real sandbox; exits with 1 if an attack succeeds.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def doctor(settings: Settings, prove: bool, as_json: bool) -> None:
    """Find out, by doing it, what this machine can isolate and limit, and what to do about each no."""
    work_dir = Path(tempfile.mkdtemp(prefix="workbench-doctor-"))
    try:
        code = asyncio.run(_prove(settings, work_dir, as_json) if prove else _examine(settings, work_dir, as_json))
    finally:
        remove_tree(work_dir)
    sys.exit(code)


async def _examine(settings: Settings, work_dir: Path, as_json: bool) -> int:
    from workbench.doctor.examine import examine

    result = await examine(settings.images_dir, work_dir)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(result), indent=2))
    else:
        for finding in result.findings:
            click.echo(f"{'ok ' if finding.ok else 'NO '} {finding.step:24} {finding.seen}")
            if finding.remedy and not finding.ok:
                click.echo(f"    what to do: {finding.remedy}")
        if result.capabilities:
            click.echo()
        for barrier, grade, by in result.capabilities:
            click.echo(f"{grade:9} {barrier:22} {by}")
        click.echo(f"\nhighest level: {result.level}; the host insists on: {settings.min_level.value}")
    return 0 if result.level != "none" else 1


async def _prove(settings: Settings, work_dir: Path, as_json: bool) -> int:
    from workbench.doctor.examine import started_engine
    from workbench.doctor.proof import prove, render_json, render_table
    from workbench.images.additions import ChosenImage

    image = ChosenImage(settings.data_dir, settings.images_dir).find()
    async with started_engine(image, work_dir) as engine:
        rows = await prove(engine, image, work_dir / "files")
    click.echo(render_json(rows) if as_json else render_table(rows))
    return 1 if any(row.verdict == "open" for row in rows) else 0
