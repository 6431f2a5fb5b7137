"""`workbench connections` and `workbench auth-configs`: accounts of users, and the clients they are connected by."""

from __future__ import annotations

import dataclasses
import sys

import click

from workbench.cli.asking import ask_service, owner_of, project_option
from workbench.cli.printing import notice
from workbench.cli.running import json_option
from workbench.cli.tables import moment, plain, print_table
from workbench.cli.values import JsonObject, print_json
from workbench.core.connection_requests import AccountName, AddAuthConfig, AuthConfigName, ListAccounts
from workbench.data_folder import DataFolder
from workbench.errors import InvalidRequest
from workbench.model.connection import AccountId, AuthConfig, AuthConfigId, ConnectedAccount, Secret
from workbench.model.ids import ProjectId
from workbench.settings import Settings
from workbench.storage.vault import add_key, drop_old_keys, kept_keys
from workbench.wiring import Service

_MOST = 1000


@click.group()
def connections() -> None:
    """Accounts of users with other services. Their credentials are encrypted, and never shown."""


@connections.command("list")
@project_option
@click.option("--user", default=None, help="Only those of this user.")
@click.option("--toolkit", default=None, help="Only those of this toolkit.")
@json_option
@click.pass_obj
def list_(settings: Settings, project: ProjectId, user: str | None, toolkit: str | None, as_json: bool) -> None:
    """All of them, oldest first."""
    request = ListAccounts(project=project, user=user, toolkit=toolkit, limit=_MOST)
    found = ask_service(settings, lambda service: service.connections.list(request))
    if as_json:
        print_json([account_json(one) for one in found])
        return
    print_table(
        ("ACCOUNT", "USER", "TOOLKIT", "ALIAS", "KIND", "STATUS", "MADE", "GOOD UNTIL"),
        (
            (one.id, one.user, one.toolkit, one.alias, one.kind, one.status, moment(one.created_at), _until(one))
            for one in found
        ),
    )


@connections.command()
@click.argument("account")
@project_option
@json_option
@click.pass_obj
def show(settings: Settings, account: str, project: ProjectId, as_json: bool) -> None:
    """How ACCOUNT is now."""
    request = AccountName(project=project, account=AccountId(account))
    found = account_json(ask_service(settings, lambda service: service.connections.get(request)))
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        words = ", ".join(value) if isinstance(value, list) else str(value or "")
        click.echo(f"{name:14} {plain(words)}".rstrip())


@connections.command()
@click.argument("account")
@project_option
@click.pass_obj
def remove(settings: Settings, account: str, project: ProjectId) -> None:
    """Forget ACCOUNT with its credentials, and have the service take them back where it can be asked to."""
    request = AccountName(project=project, account=AccountId(account))

    async def removed(service: Service) -> bool:
        told = await service.connections.remove(request)
        await service.access.note(owner_of(project), "connection.remove", detail=request.account)
        return told

    told = ask_service(settings, removed)
    click.echo(f"{request.account} is removed{', and the service took it back' if told else ''}")


@connections.command()
@click.argument("account")
@project_option
@click.pass_obj
def refresh(settings: Settings, account: str, project: ProjectId) -> None:
    """Ask the service for a new token of ACCOUNT now; calls do so by themselves."""
    request = AccountName(project=project, account=AccountId(account))
    found = ask_service(settings, lambda service: service.connections.refresh(request))
    until = _until(found)
    click.echo(f"{found.id} is renewed{f', and good until {until}' if until else ''}")


@connections.command("rotate-key")
@click.option("--drop-old", is_flag=True, help="Forget the keys before: copies of the database are then unreadable.")
@click.pass_obj
def rotate_key(settings: Settings, drop_old: bool) -> None:
    """Encrypt all credentials with a new key, which connections.key of the data folder has from then on.

    Servers that run have read the old key: stop them first, or start them anew right after.
    """
    if settings.connections_key:
        raise InvalidRequest(
            "the key is set by WORKBENCH_CONNECTIONS_KEY: put a new one before it, with a comma between them, and "
            "`workbench connections reseal`"
        )
    path = DataFolder(settings.data_dir).connections_key
    kept_keys(path)
    add_key(path)
    count = ask_service(settings, lambda service: service.connections.reseal())
    if drop_old:
        drop_old_keys(path)
    click.echo(f"{count} sealed with a new key{'; the old ones are gone' if drop_old else ''}")


@connections.command()
@click.pass_obj
def reseal(settings: Settings) -> None:
    """Encrypt all credentials with the first key that is set; after WORKBENCH_CONNECTIONS_KEY has got a new one."""
    click.echo(f"{ask_service(settings, lambda service: service.connections.reseal())} sealed with the first key")


@click.group("auth-configs")
def auth_configs() -> None:
    """As which client (an id and a secret that a service gave you) accounts are connected by OAuth2."""


@auth_configs.command()
@click.argument("toolkit")
@click.option("--client-id", required=True, help="As the service calls your app.")
@click.option("--secret-stdin", is_flag=True, help="Read the client's secret from standard input; asked for otherwise.")
@click.option("--public", is_flag=True, help="The client has no secret.")
@click.option("--scope", "scopes", multiple=True, help="To ask for; repeatable; those of the toolkit unless given.")
@project_option
@json_option
@click.pass_obj
def add(
    settings: Settings,
    toolkit: str,
    client_id: str,
    secret_stdin: bool,
    public: bool,
    scopes: tuple[str, ...],
    project: ProjectId,
    as_json: bool,
) -> None:
    """Connect accounts of TOOLKIT as this client from now on."""
    secret = Secret("" if public else _secret(from_stdin=secret_stdin))
    request = AddAuthConfig(
        project=project, toolkit=toolkit, client_id=client_id, client_secret=secret, scopes=tuple(scopes)
    )

    async def added(service: Service) -> AuthConfig:
        config = await service.connections.add_config(request)
        await service.access.note(owner_of(project), "auth_config.create", detail=f"{config.toolkit} {config.id}")
        return config

    config = ask_service(settings, added)
    if as_json:
        print_json(_config_json(config))
        return
    click.echo(config.id)
    address = settings.public_url or f"http://{settings.listen_host}:{settings.listen_port}"
    notice(f"register this address with the service, as where people are sent back to: {address}/connect/callback")


@auth_configs.command("list")
@project_option
@json_option
@click.pass_obj
def list_configs(settings: Settings, project: ProjectId, as_json: bool) -> None:
    """All of them, newest first, without their secrets."""
    found = ask_service(settings, lambda service: service.connections.configs(project))
    if as_json:
        print_json([_config_json(one) for one in found])
        return
    print_table(
        ("CONFIG", "TOOLKIT", "KIND", "CLIENT", "MADE"),
        ((one.id, one.toolkit, one.kind, one.client_id, moment(one.created_at)) for one in found),
    )


@auth_configs.command("remove")
@click.argument("config")
@project_option
@click.pass_obj
def remove_config(settings: Settings, config: str, project: ProjectId) -> None:
    """Forget CONFIG with its secret. Accounts that were connected by it cannot be renewed any more."""
    request = AuthConfigName(project=project, config=AuthConfigId(config))

    async def removed(service: Service) -> None:
        await service.connections.remove_config(request)
        await service.access.note(owner_of(project), "auth_config.remove", detail=request.config)

    ask_service(settings, removed)
    click.echo(f"{config} is removed")


def account_json(account: ConnectedAccount) -> JsonObject:
    """An account, which has no secret in it."""
    return {**dataclasses.asdict(account), "scopes": list(account.scopes)}


def _config_json(config: AuthConfig) -> JsonObject:
    return {**dataclasses.asdict(config), "scopes": list(config.scopes)}


def _until(account: ConnectedAccount) -> str:
    return moment(account.expires_at) if account.expires_at else ""


def _secret(*, from_stdin: bool) -> str:
    """Never from the command line, which everybody on the machine can read."""
    if from_stdin:
        return sys.stdin.readline().strip()
    text: str = click.prompt("Client secret", hide_input=True, err=True)
    return text.strip()
