"""`workbench mcp install`: tells a client of MCP how to reach us. Shows what it would write, and asks."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import sys
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

import click

from workbench.cli.config_files import Change, Place, plan, real, shown, write
from workbench.cli.mcp_clients import CLIENTS, Client, Reached, Server, Started
from workbench.cli.printing import notice
from workbench.cli.tables import plain
from workbench.errors import InvalidRequest
from workbench.mcp.families import chosen_families
from workbench.model.ids import session_id
from workbench.settings import PREFIX, SECRETS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SECRET_SETTINGS = tuple(PREFIX + name.upper() for name in SECRETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    tools: str | None
    session: str | None
    url: str | None
    key: str | None = field(repr=False)

    def server(self) -> Server:
        """As the options have it."""
        if self.url is not None:
            return self._reached(self.url)
        words = ["mcp"]
        for option, value in (("--tools", self.tools), ("--session", self.session)):
            words += [option, value] if value else []
        command, first = _this_command()
        # A client with windows has not the environment of this shell.
        env = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
        return Started(command=command, arguments=(*first, *words), env=env)

    def _reached(self, url: str) -> Reached:
        if not self.key:
            raise click.UsageError("--url needs --key, or OPEN_WORKBENCH_API_KEY; `workbench keys create` makes one")
        try:
            parts = urllib.parse.urlsplit(url)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
        except ValueError:
            good = False
        if not good:
            raise click.UsageError(f"--url wants an address like https://workbench.example.com, not {url!r}")
        if parts.scheme == "http" and not _is_near(parts.hostname or ""):
            notice(f"warning: whoever is between you and {parts.hostname} can read the key: this is plain http")
        query = urllib.parse.parse_qsl(parts.query)
        query += [(name, value) for name, value in (("tools", self.tools), ("session", self.session)) if value]
        path = parts.path if parts.path.strip("/") else "/mcp"
        encoded = urllib.parse.urlencode(query, safe=",")
        return Reached(url=urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, encoded, "")), key=self.key)


def _is_near(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _this_command() -> tuple[str, tuple[str, ...]]:
    """By which a client starts us, wherever it is started itself."""
    called = Path(sys.argv[0])
    for script in (called.absolute(), Path(sys.executable).parent / "workbench"):
        if script.name == "workbench" and script.is_file() and os.access(script, os.X_OK):
            return str(script), ()
    return sys.executable, ("-m", "workbench")


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--name", default="open-workbench", show_default=True, help="What the client calls it.")
@click.option("--tools", metavar="FAMILIES", help="workbench, sandbox, kernel, by commas; or all.")
@click.option("--session", metavar="NAME", help="Its default session, which stays.")
@click.option("--url", metavar="URL", help="A server that runs, instead of a program that the client starts.")
@click.option("--key", metavar="KEY", envvar="OPEN_WORKBENCH_API_KEY", help="For --url; or OPEN_WORKBENCH_API_KEY.")
@click.option("--print", "only_print", is_flag=True, help="Show it, key and all, and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def install(
    client: str,
    name: str,
    tools: str | None,
    session: str | None,
    url: str | None,
    key: str | None,
    only_print: bool,
    yes: bool,
) -> None:
    """Put Open Workbench into the configuration of CLIENT.

    Shows the file and the entry first, and asks. What else is in the file is kept, and a copy of the file as it was.
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"--name wants up to 64 letters, digits, - and _, not {name!r}")
    _check_words(tools, session)
    chosen = CLIENTS[client]
    server = _Wanted(tools=tools, session=session, url=url, key=key).server()
    place = Place(file=chosen.file(os.environ, sys.platform), table=chosen.table, name=name)
    entry = chosen.entry(server)
    if only_print:
        click.echo(f"# {_named(place.file)}", err=True)
        click.echo(shown(place, entry), nl=False)
        return
    _install(chosen, plan(place, entry), server, yes=yes)


def _check_words(tools: str | None, session: str | None) -> None:
    """Now, and not when the client starts us and nobody sees what we say."""
    try:
        if tools is not None:
            chosen_families(tools)
        if session is not None:
            session_id(session)
    except InvalidRequest as problem:
        raise click.UsageError(problem.message) from None


def _install(client: Client, change: Change, server: Server, *, yes: bool) -> None:
    has_secret = _has_secret(server)
    file = _named(change.place.file)
    if not change.is_one:
        click.echo(f"{file} has it already; nothing to do.")
        return
    click.echo(f"{file} ({'is new' if change.before is None else 'what else is in it stays'}):\n")
    click.echo(_difference(change))
    if has_secret:
        name = plain(change.place.file.name)
        notice(f"warning: {name} will have a {_kind(server)} in it; nobody but its owner will be able to read the file")
    if not yes and not _agreed():
        click.echo("Nothing was written.")
        return
    kept = write(change, private=has_secret)
    click.echo(f"Written{f'; as it was: {plain(str(kept))}' if kept else ''}. Now {client.afterwards}.")


def _named(file: Path) -> str:
    """With where it really is: who runs this for another should see where that one's links lead."""
    there = real(file)
    named = plain(str(file))
    return named if there == file else f"{named} -> {plain(str(there))}"


def _kind(server: Server) -> str:
    return "key" if isinstance(server, Reached) else f"password, of {_secrets(server)},"


def _agreed() -> bool:
    try:
        return click.confirm("Write it?", default=False)
    except click.Abort:
        raise click.UsageError("there is nobody to ask: --yes writes it, --print only shows it") from None


def _has_secret(server: Server) -> bool:
    return isinstance(server, Reached) or bool(_secrets(server))


def _secrets(server: Started) -> str:
    """Settings with a secret in them that it would be started with."""
    return ", ".join(name for name in _SECRET_SETTINGS if server.env.get(name))


def _difference(change: Change) -> str:
    """Of the entry alone: others in the file may have secrets of their own."""
    old, new = change.old_entry.split("\n"), change.new_entry.split("\n")
    lines = list(difflib.unified_diff(old[:-1], new[:-1], n=99, lineterm=""))[3:]
    # BARRIER: what others wrote into the file could move the cursor, or look like lines that are not there; held by
    # tests/cli/test_mcp_install.py.
    return "\n".join(plain(line) for line in lines) + "\n"
