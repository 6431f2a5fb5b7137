"""`workbench connect`: an account of a user's, by a key that is typed in, a code, or a page in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import click

from workbench.cli.asking import owner_of, project_option
from workbench.cli.connections import account_json
from workbench.cli.printing import notice
from workbench.cli.running import json_option
from workbench.cli.values import print_json
from workbench.core.connection_requests import (
    AccountName,
    BeginConnection,
    BegunConnection,
    FinishByFields,
    LinkView,
    Way,
)
from workbench.errors import Denied, InvalidRequest
from workbench.model.connection import ConnectedAccount, ConnectionStatus
from workbench.model.ids import ProjectId
from workbench.settings import Settings
from workbench.wiring import Service, open_service

_LOOK_S = 0.5
_ASK_S = 2.0
_HEALTH = "/healthz"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    request: BeginConnection
    by: str
    """`form`, `code`, `page`; empty for what is easiest"""


@click.command()
@click.argument("toolkit")
@click.option("--user", default="local", show_default=True, help="Whose account it is.")
@click.option("--alias", default="", help="What it is called, where a user has several.")
@click.option("--auth-config", default="", metavar="CONFIG", help="By which client; the newest unless given.")
@click.option(
    "--by",
    type=click.Choice(["form", "code", "page"]),
    default=None,
    help="Type a key in here, enter a code elsewhere, or open a page in a browser.",
)
@project_option
@json_option
@click.pass_obj
def connect(
    settings: Settings,
    toolkit: str,
    user: str,
    alias: str,
    auth_config: str,
    by: str | None,
    project: ProjectId,
    as_json: bool,
) -> None:
    """Connect an account of TOOLKIT, and wait until that is done.

    What is typed in is never on the command line: it is asked for, or read from standard input, a line for each field.
    """
    request = BeginConnection(project=project, user=user, toolkit=toolkit, alias=alias, auth_config=auth_config)
    account = asyncio.run(_connected(settings, _Wanted(request=request, by=by or "")))
    if as_json:
        print_json(account_json(account))
        return
    click.echo(account.id)
    notice(f"{account.toolkit} is connected for user {account.user}")


async def _connected(settings: Settings, wanted: _Wanted) -> ConnectedAccount:
    async with open_service(settings, os.environ) as service:
        begun = await service.links.begin(wanted.request)
        view = await service.links.look(begun.token)
        by, way = _chosen(view, wanted.by)
        try:
            if by == "form":
                account = await service.links.finish(
                    FinishByFields(token=begun.token, kind=way.kind, values=_filled_in(way))
                )
            elif by == "code":
                account = await _by_code(service, begun)
            else:
                account = await _by_page(settings, service, begun)
        except BaseException:
            # Nobody can go on with it: its link was known to us alone.
            with contextlib.suppress(Exception):
                await service.connections.remove(_name(begun))
            raise
        owner = owner_of(account.project)
        await service.access.note(
            owner, "connection.finish", user=account.user, detail=f"{account.toolkit} {account.id}"
        )
        return account


def _chosen(view: LinkView, by: str) -> tuple[str, Way]:
    """How it is done. The first way of the toolkit's is the usual one."""
    for way in view.ways:
        offered = ["form"] if way.fields else []
        # Services give less by a code, Google no mail: a page is the usual way where there is one.
        offered += ["page"] if way.fields or way.by_browser else []
        offered += ["code"] if way.by_device else []
        if not by or by in offered:
            return by or offered[0], way
    raise InvalidRequest(
        f"accounts of {view.toolkit.slug} are not connected by a {by}; leave --by out for what there is",
        {"toolkit": view.toolkit.slug},
    )


def _filled_in(way: Way) -> dict[str, str]:
    values = {}
    for field in way.fields:
        if sys.stdin.isatty():
            told = f"{field.label} ({field.description})" if field.description else field.label
            values[field.name] = click.prompt(
                told, hide_input=field.is_secret, default=field.default or None, err=True, show_default=True
            )
        else:
            values[field.name] = sys.stdin.readline().strip()
    return values


async def _by_code(service: Service, begun: BegunConnection) -> ConnectedAccount:
    shown = await service.links.device(begun.token)
    notice(f"open {shown.verification_uri} and enter the code {shown.user_code}")
    while not shown.account.is_active:
        await asyncio.sleep(shown.interval_s)
        shown = await service.links.device(begun.token)
    return shown.account


async def _by_page(settings: Settings, service: Service, begun: BegunConnection) -> ConnectedAccount:
    async with _page_at(settings) as address:
        notice(f"open {address}{begun.path} in a browser; it is good for half an hour, and for you alone")
        while True:
            account = await service.connections.get(_name(begun))
            if account.is_active:
                return account
            if account.status is ConnectionStatus.EXPIRED:
                raise Denied("the page was not used within half an hour; `workbench connect` gives another")
            await asyncio.sleep(_LOOK_S)


@contextlib.asynccontextmanager
async def _page_at(settings: Settings) -> AsyncIterator[str]:
    """Where the page is: at the server that runs, or at one that is there meanwhile."""
    # Here, as every command would wait for these to load.
    from workbench.server.logs import Log
    from workbench.server.serve import local_url, serve

    local = local_url(settings.listen_host, settings.listen_port, secure=bool(settings.tls_cert))
    if await _serves(settings.public_url or local):
        yield settings.public_url or local
        return
    begun: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(lambda: open_service(settings, os.environ), settings, started=begun.set_result, log=Log("error"))
    )
    try:
        either: tuple[asyncio.Future[Any], ...] = (serving, begun)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            await serving
        yield await begun
    finally:
        begun.cancel()
        serving.cancel()
        await asyncio.wait([serving])


async def _serves(address: str) -> bool:
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=_ASK_S, trust_env=False) as client:
            return (await client.get(f"{address}{_HEALTH}")).status_code == 200
    except httpx2.HTTPError:
        return False


def _name(begun: BegunConnection) -> AccountName:
    return AccountName(project=begun.account.project, account=begun.account.id)
