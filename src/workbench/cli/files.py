"""`workbench files`: files of a session, in and out of its /mnt/files; no sandbox has to run for it."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

import click

from workbench.cli.asking import ask
from workbench.cli.file_transfers import STREAM, Place, Transfers, all_files, tell_skipped
from workbench.cli.outcome import EXIT_ENDED
from workbench.cli.printing import notice
from workbench.cli.progress import Progress
from workbench.cli.running import json_option
from workbench.cli.tables import moment, plain, print_table, size
from workbench.cli.values import print_json
from workbench.core import mount_requests as requests
from workbench.core.mounts import Mounts
from workbench.core.workbench import Workbench
from workbench.model.ids import SessionId, session_id
from workbench.model.mounts import DEFAULT_PAGE, FILES, INSIDE, MOST_PAGE, FilesFound, MountFile
from workbench.settings import Settings

T = TypeVar("T")


Command = TypeVar("Command", bound=Callable[..., None])


def _checked_session(_context: click.Context, _parameter: click.Parameter, value: str) -> SessionId:
    return session_id(value)


def _at_option(command: Command) -> Command:
    """Whose files, and which: the command takes them as `at`."""

    @functools.wraps(command)
    def told(*arguments: object, session: SessionId, mount: str, **others: object) -> None:
        command(*arguments, at=Place(session, mount), **others)

    session = click.option(
        "-s",
        "--session",
        required=True,
        callback=_checked_session,
        metavar="NAME",
        help="Whose files; it must be there.",
    )
    mount = click.option("--mount", default=FILES, show_default=True, metavar="ID", help="The one there is.")
    return cast("Command", session(mount(told)))


_quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


@click.group()
def files() -> None:
    """Files of a session: what code in it sees at /mnt/files. They outlive its sandbox."""


@files.command()
@_at_option
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--to", default="", metavar="PATH", help="Its new name; with a slash at the end, the folder to put it in."
)
@_quiet_option
@json_option
@click.pass_obj
def put(settings: Settings, at: Place, sources: tuple[str, ...], to: str, quiet: bool, as_json: bool) -> None:
    """Send files and folders of this machine; - is standard input, and needs --to.

    A file arrives whole and in one step, in place of one of the same name. Links within a folder are left out.
    """

    async def job(mounts: Mounts) -> list[MountFile]:
        with Progress(shown=not (quiet or as_json)) as progress:
            return await Transfers(mounts, at, progress).put(sources, to)

    made = _to_its_end(settings, job)
    if as_json:
        print_json([dataclasses.asdict(one) for one in made])
    elif not quiet:
        for one in made:
            click.echo(f"{INSIDE}/{plain(one.path)}  {size(one.size)}")


@files.command()
@_at_option
@click.argument("prefix", default="", required=False)
@click.option(
    "--limit", type=click.IntRange(1, MOST_PAGE), default=DEFAULT_PAGE, show_default=True, help="Of one page."
)
@click.option("--cursor", default="", help="Where a page before this one ended.")
@click.option("--all", "everything", is_flag=True, help="All pages.")
@json_option
@click.pass_obj
def ls(settings: Settings, at: Place, prefix: str, limit: int, cursor: str, everything: bool, as_json: bool) -> None:
    """Files whose path begins with PREFIX, or all; folders are seen by what is in them."""

    async def job(mounts: Mounts) -> FilesFound:
        request = requests.ListFiles(session=at.session, mount=at.mount, prefix=prefix, after=cursor, limit=limit)
        return await all_files(mounts, request) if everything else await mounts.list(request)

    found = _to_its_end(settings, job)
    if as_json:
        items = [dataclasses.asdict(one) for one in found.files]
        print_json({"items": items, "next_cursor": found.next_after, "skipped": found.skipped})
        return
    rows = ((size(one.size), moment(one.modified_at), one.path) for one in found.files)
    print_table(("SIZE", "CHANGED", "PATH"), rows)
    tell_skipped(found.skipped)
    if found.next_after is not None:
        notice("there are more; --all shows them")


@files.command()
@_at_option
@click.argument("path")
@click.argument("target", default=".", metavar="[TARGET]")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@_quiet_option
@json_option
@click.pass_obj
def get(settings: Settings, at: Place, path: str, target: str, force: bool, quiet: bool, as_json: bool) -> None:
    """Fetch a file or a folder to TARGET: its new name here, or a folder to put it in; - is standard output.

    Every file is written whole or not at all, and none that is there is replaced without --force. / is everything.
    """
    if not path or not target:
        raise click.UsageError("PATH and TARGET may not be empty; / is everything, and . the current folder")
    if target == STREAM and as_json:
        raise click.UsageError("--json has nothing to say when the file itself goes to standard output")

    async def job(mounts: Mounts) -> list[Path]:
        with Progress(shown=not (quiet or as_json or target == STREAM)) as progress:
            return await Transfers(mounts, at, progress).get(path, target, force=force)

    made = _to_its_end(settings, job)
    if as_json:
        print_json([{"path": str(one), "size": one.stat().st_size} for one in made])
    elif not quiet:
        for one in made:
            click.echo(plain(str(one)))


@files.command()
@_at_option
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@json_option
@click.pass_obj
def rm(settings: Settings, at: Place, paths: tuple[str, ...], as_json: bool) -> None:
    """Delete files, and folders with all that is in them."""

    async def job(mounts: Mounts) -> list[requests.DeletedFiles]:
        return [
            await mounts.delete(requests.DeleteFile(session=at.session, mount=at.mount, path=path)) for path in paths
        ]

    gone = _to_its_end(settings, job)
    if as_json:
        print_json([dataclasses.asdict(one) for one in gone])


@files.command()
@_at_option
@click.argument("url")
@click.argument("path", default="", metavar="[PATH]")
@json_option
@click.pass_obj
def fetch(settings: Settings, at: Place, url: str, path: str, as_json: bool) -> None:
    """Put what URL leads to at PATH, or below the name that it has there.

    Addresses of this machine and of private networks are refused.
    """
    request = requests.FetchFile(session=at.session, mount=at.mount, url=url, path=path)
    made = _to_its_end(settings, lambda mounts: mounts.fetch(request))
    if as_json:
        print_json(dataclasses.asdict(made))
    else:
        click.echo(f"{INSIDE}/{plain(made.path)}  {size(made.size)}")


@files.command()
@_at_option
@click.argument("path")
@json_option
@click.pass_obj
def text(settings: Settings, at: Place, path: str, as_json: bool) -> None:
    """Print what can be read in PATH: a PDF, a picture, an office document, a mail or a table."""
    request = requests.ExtractText(session=at.session, mount=at.mount, path=path)
    told = ask(settings, lambda bench: bench.extract_text(request))
    if as_json:
        print_json(dataclasses.asdict(told))
    else:
        click.echo("\n".join(plain(line.expandtabs()) for line in told.text.splitlines()))


@files.command()
@_at_option
@json_option
@click.pass_obj
def df(settings: Settings, at: Place, as_json: bool) -> None:
    """How much is there, and how much may be."""
    request = requests.DescribeMount(session=at.session, mount=at.mount)
    told = _to_its_end(settings, lambda mounts: mounts.describe(request))
    use, quota = told.use, told.quota
    if as_json:
        print_json({**dataclasses.asdict(use), "most_bytes": quota.bytes, "most_files": quota.files})
        return
    print_table(
        ("", "USED", "OF", "LEFT"),
        (
            ("bytes", size(use.bytes), size(quota.bytes), size(max(quota.bytes - use.bytes, 0))),
            ("files and folders", f"{use.files:,}", f"{quota.files:,}", f"{max(quota.files - use.files, 0):,}"),
        ),
    )
    if use.coming_bytes:
        notice(f"{size(use.coming_bytes)} more are of uploads that are not done, and count as well")
    if use.unsaved:
        notice(f"{use.unsaved} files are not in the object store yet")
    if not use.complete:
        notice("a part could not be measured: code inside has closed it, or changes it all the time")


def _to_its_end(settings: Settings, job: Callable[[Mounts], Awaitable[T]]) -> T:
    """One that leaves nothing half done behind, also if it is ended by a signal or nobody reads its output."""

    async def asked(bench: Workbench) -> T:
        _cancel_on_signals()
        return await job(bench.mounts)

    try:
        return ask(settings, asked)
    except (asyncio.CancelledError, BrokenPipeError):
        sys.exit(EXIT_ENDED)


def _cancel_on_signals() -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What is ignored was to be: `nohup` does that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
