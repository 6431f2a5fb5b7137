"""`workbench sessions local`: what a box of one's own needs to be the place of a session."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import secrets
from pathlib import Path

import click

from workbench.cli.asking import ask_service, owner_of, project_option
from workbench.cli.durations import Duration
from workbench.cli.printing import notice
from workbench.cli.tables import moment
from workbench.cli.values import print_json
from workbench.core import requests
from workbench.local_sandbox import ENV_FILE, HELPER_FILE, env_file, helper_source, variables
from workbench.model.ids import ProjectId, session_id
from workbench.settings import Settings

# Nothing that a shell, or a file of variables, would read otherwise.
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:\[\]/%-]+")
_READABLE, _PRIVATE = 0o644, 0o600


@click.command()
@click.argument("name")
@project_option
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Write {HELPER_FILE} and {ENV_FILE} there; without, both are printed as JSON.",
)
@click.option("--expires", type=Duration(), default="24h", show_default=True, help="For how long its token is good.")
@click.option("--url", default="", metavar="URL", help="By which the box reaches this server; else as it is set here.")
@click.pass_obj
def local(settings: Settings, name: str, project: ProjectId, folder: Path | None, expires: int, url: str) -> None:
    """Have the code of session NAME, whose sandbox is off, run in a box of your own: helpers, and a token for them."""
    if url and not _ADDRESS.fullmatch(url):
        raise click.UsageError(f"--url is the address of a server, such as https://bench.example.com, not {url!r}")
    address = url or _address(settings)
    request = requests.CreateLocalSandbox(by=owner_of(project), session=session_id(name), lifetime_s=expires)
    made = ask_service(settings, lambda service: service.access.create_local_sandbox(request))
    key = made.token.key
    env = variables(address=address, session=name, mount=made.mount, token=made.token.presented)
    if folder is None:
        told = {"helper_source": helper_source(), "env": env, "token_id": key.id, "expires_at": key.expires_at}
        print_json(told)
        return
    folder.mkdir(parents=True, exist_ok=True)
    # The token first: without it there is nothing to help with.
    for file, text, mode in ((ENV_FILE, env_file(env), _PRIVATE), (HELPER_FILE, helper_source(), _READABLE)):
        _write(folder / file, text, mode)
        click.echo(folder / file)
    until = f"good until {moment(key.expires_at)}"
    notice(f"token {key.id} is {until}; `workbench keys revoke {key.id}` ends it")


def _address(settings: Settings) -> str:
    if settings.public_url:
        return settings.public_url
    host = settings.listen_host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            raise click.UsageError(
                f"the server listens at {host}, which is no address that a box can ask: give --url, or set "
                "WORKBENCH_PUBLIC_URL"
            )
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.listen_port}"


def _write(path: Path, text: str, mode: int) -> None:
    """Whole or not at all, and never readable by others for a moment."""
    unfinished = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
