"""`workbench sessions idle` and `keep`: what happens to a session when nothing happens in it."""

from __future__ import annotations

import dataclasses

import click

from workbench.cli.asking import ask, ask_and_note
from workbench.cli.durations import IdleDuration, in_words
from workbench.cli.running import json_option
from workbench.cli.values import print_json
from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.model.ids import SessionId, session_id
from workbench.model.session import IdleLimits
from workbench.settings import Settings

_UNITS = "90s, 15m, 24h, 30d, never, or default for what the server has set."


@click.command()
@click.argument("name")
@click.option("--freeze-after", type=IdleDuration(), help=f"It stands still, and goes on with the next call: {_UNITS}")
@click.option("--end-after", type=IdleDuration(), help=f"Its sandbox ends, and its files are kept: {_UNITS}")
@json_option
@click.pass_context
def idle(context: click.Context, name: str, freeze_after: int | None, end_after: int | None, as_json: bool) -> None:
    """Set after how long without use a session is frozen and ended; without options, tell."""
    settings: Settings = context.obj
    given = {
        field: value
        for field, option, value in (
            ("freeze_after_s", "freeze_after", freeze_after),
            ("end_after_s", "end_after", end_after),
        )
        if context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE
    }
    session = session_id(name)
    if given:
        limits = ask_and_note(settings, "session.change", session, lambda bench: _changed(bench, session, given))
    else:
        limits = ask(settings, lambda bench: _now(bench, session))
    if as_json:
        print_json(dataclasses.asdict(limits))
    else:
        click.echo(f"frozen after: {_said(limits.freeze_after_s, settings.freeze_after_s)}")
        click.echo(f"ended after:  {_said(limits.end_after_s, settings.end_after_s)}")


async def _now(bench: Workbench, session: SessionId) -> IdleLimits:
    return (await bench.describe_session(requests.DescribeSession(session=session))).session.spec.idle


async def _changed(bench: Workbench, session: SessionId, given: dict[str, int | None]) -> IdleLimits:
    limits = dataclasses.replace(await _now(bench, session), **given)
    await bench.set_idle_limits(requests.SetIdleLimits(session=session, idle=limits))
    return limits


def _said(own: int | None, servers: int) -> str:
    seconds, whose = (servers, " (the server's)") if own is None else (own, "")
    return (in_words(seconds) if seconds else "never") + whose


@click.command()
@click.argument("name")
@click.pass_obj
def keep(settings: Settings, name: str) -> None:
    """Count a session as used now."""
    request = requests.KeepAlive(session=session_id(name))
    ask(settings, lambda bench: bench.keep_alive(request))
