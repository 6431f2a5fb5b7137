"""`workbench keys`: who may use the server, and for what."""

from __future__ import annotations

import dataclasses

import click

from workbench.cli.asking import OWNER, ask_service, owner_of, project_option
from workbench.cli.durations import Duration
from workbench.cli.printing import notice
from workbench.cli.running import json_option
from workbench.cli.tables import moment, print_table
from workbench.cli.values import JsonObject, print_json
from workbench.core import requests
from workbench.model.access import Key, NewKey, Scope
from workbench.model.ids import KeyId, ProjectId, session_id
from workbench.settings import Settings

_ONCE = "it is shown this once, and only a digest of it is kept"


@click.group()
def keys() -> None:
    """Keys of the server. Each belongs to a project, and so does what is made with it."""


@keys.command()
@project_option
@click.option("--label", default="", help="What it is for.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    default=[Scope.SESSIONS.value],
    show_default=True,
    help="What it is good for; repeatable.",
)
@click.option("--expires", type=Duration(), help="When it is no good any more: 90s, 15m, 24h, 30d; never unless given.")
@json_option
@click.pass_obj
def create(
    settings: Settings, project: ProjectId, label: str, scopes: tuple[str, ...], expires: int | None, as_json: bool
) -> None:
    """Make a key and print it."""
    request = requests.CreateKey(
        by=OWNER,
        project=project,
        label=label,
        scopes=frozenset(Scope(scope) for scope in scopes),
        lifetime_s=expires,
    )
    _print_new(ask_service(settings, lambda service: service.access.create_key(request)), as_json=as_json)


@keys.command("list")
@click.option("--project", default=None, metavar="PROJECT", help="Only those of this one.")
@json_option
@click.pass_obj
def list_(settings: Settings, project: str | None, as_json: bool) -> None:
    """All keys, oldest first, without their secrets."""
    page = ask_service(settings, lambda service: service.access.list_keys(requests.ListKeys(by=OWNER)))
    found = [key for key in page.keys if project is None or key.project == project]
    if as_json:
        print_json([key_json(key) for key in found])
        return
    print_table(
        ("KEY", "PROJECT", "SCOPES", "MADE", "STATE", "LABEL"),
        (
            (key.id, key.project, ",".join(sorted(key.scopes)), moment(key.created_at), _state(key), key.label)
            for key in found
        ),
    )


@keys.command()
@click.argument("key")
@click.pass_obj
def revoke(settings: Settings, key: str) -> None:
    """From now on KEY (its id; of a token as well) is no good."""
    request = requests.RevokeKey(by=OWNER, key=KeyId(key_id(key)))
    ask_service(settings, lambda service: service.access.revoke_key(request))
    click.echo(f"{request.key} is revoked")


@keys.command()
@click.argument("key")
@click.option(
    "--overlap", type=Duration(), default="24h", show_default=True, help="How long the old one stays good beside it."
)
@json_option
@click.pass_obj
def rotate(settings: Settings, key: str, overlap: int, as_json: bool) -> None:
    """Make a key with the same project and scopes in place of KEY, and print it."""
    request = requests.RotateKey(by=OWNER, key=KeyId(key_id(key)), overlap_s=overlap)
    _print_new(ask_service(settings, lambda service: service.access.rotate_key(request)), as_json=as_json)


@keys.command()
@click.argument("session")
@project_option
@click.option("--expires", type=Duration(), default="1h", show_default=True, help="After this long it is no good.")
@json_option
@click.pass_obj
def token(settings: Settings, session: str, project: ProjectId, expires: int, as_json: bool) -> None:
    """Make a token that is good for SESSION only, and print it."""
    request = requests.CreateToken(by=owner_of(project), session=session_id(session), lifetime_s=expires)
    _print_new(ask_service(settings, lambda service: service.access.create_token(request)), as_json=as_json)


def key_id(text: str) -> str:
    """The id, also of a whole key that was pasted; its secret is not looked at."""
    kind, _, rest = text.partition("_")
    return rest.partition("_")[0] if kind in {"wbk", "wbt"} and rest else text


def _print_new(made: NewKey, *, as_json: bool) -> None:
    if as_json:
        print_json({**key_json(made.key), "key": made.presented})
        return
    # Alone on stdout, so that a script can have it: KEY=$(workbench keys create).
    click.echo(made.presented)
    until = f", and good until {moment(made.key.expires_at)}" if made.key.expires_at else ""
    notice(f"{'token' if made.key.session else 'key'} {made.key.id}{until}; {_ONCE}")


def key_json(key: Key) -> JsonObject:
    """A key, without its digest."""
    told: JsonObject = {**dataclasses.asdict(key), "scopes": sorted(scope.value for scope in key.scopes)}
    del told["digest"]
    return told


def _state(key: Key) -> str:
    if key.revoked_at:
        return f"revoked {moment(key.revoked_at)}"
    replaced = f", replaced by {key.replaced_by}" if key.replaced_by else ""
    return (f"until {moment(key.expires_at)}" if key.expires_at else "good") + replaced
