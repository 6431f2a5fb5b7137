"""`workbench serve`: the server in the foreground, and for programs that bring their own (`--embedded`)."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import click

from workbench.cli.temporary_data import temporary_data
from workbench.settings import PREFIX, Settings


@click.command()
@click.option("--host", "listen_host", help="Listen at this address; 127.0.0.1 unless set.")
@click.option("--port", "listen_port", help="And at this port; 8787 unless set, 0 for a free one.")
@click.option("--public-url", help="By which others reach it, such as https://workbench.example.com.")
@click.option("--tls-cert", type=click.Path(), help="Certificate with its chain, in PEM.")
@click.option("--tls-key", type=click.Path(), help="Its private key, in PEM.")
@click.option("--allow-plain-http", is_flag=True, help="Listen at an address that others reach without TLS.")
@click.option("--with-host", is_flag=True, help="Start the host as well, and end it with the server.")
@click.option("--embedded", is_flag=True, help="For programs: one line of JSON, and the end when standard input ends.")
@click.option("--data-dir", type=click.Path(), help="With --embedded: another data folder, with the usual images.")
@click.option("--temporary", is_flag=True, help="With --embedded: a data folder of its own, removed at the end.")
@click.option("--end-with", "program", type=int, hidden=True, help="With --embedded: a pidfd, inherited.")
@click.pass_obj
def serve(
    settings: Settings,
    listen_host: str | None,
    listen_port: str | None,
    public_url: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    allow_plain_http: bool,
    with_host: bool,
    embedded: bool,
    data_dir: str | None,
    temporary: bool,
    program: int | None,
) -> None:
    """Run the server in the foreground. Options go before settings.

    On the first start it makes a key and prints it, once. Stopping it ends nothing that runs: sessions live in the
    host, and cells go on, unless --with-host started that host.
    """
    # Imported here: the other commands need no web framework, and are twice as fast without one.
    from workbench.cli import serving

    given = {
        "listen_host": listen_host,
        "listen_port": listen_port,
        "public_url": public_url,
        "tls_cert": str(Path(tls_cert).absolute()) if tls_cert else None,
        "tls_key": str(Path(tls_key).absolute()) if tls_key else None,
        "allow_plain_http": "true" if allow_plain_http else None,
    }
    if embedded:
        if with_host or any(value is not None for value in given.values()):
            raise click.UsageError("--embedded chooses where it listens, and takes no other option")
        # Nobody else reaches it, whatever the settings say.
        settings = replace(
            settings,
            listen_host="127.0.0.1",
            listen_port=0,
            public_url="",
            links_url="",
            tls_cert="",
            tls_key="",
            trusted_proxies="",
        )
        folder = Path(data_dir).absolute() if data_dir is not None else None
        if folder is not None:
            settings = replace(settings, data_dir=folder)
        with temporary_data(settings, folder) if temporary else contextlib.nullcontext(settings) as settings:
            sys.exit(serving.serve_embedded(settings, program))
    if data_dir is not None or temporary or program is not None:
        raise click.UsageError(f"--data-dir and --temporary are for --embedded; set {PREFIX}DATA_DIR instead")
    chosen = {PREFIX + name.upper(): value for name, value in given.items() if value is not None}
    settings = Settings.from_env(settings.to_env() | chosen)
    sys.exit(serving.serve_in_foreground(settings, with_host=with_host))
