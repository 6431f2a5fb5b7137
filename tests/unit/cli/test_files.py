"""Where files of a session are written on this machine, and where those of this machine go."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import pytest

from workbench.cli import main
from workbench.cli.file_transfers import Place, Transfers, _chunks, _opened, _place, _planned, _put_in_place
from workbench.cli.files import _cancel_on_signals
from workbench.cli.progress import Progress
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.model.ids import session_id
from workbench.model.mounts import FilePath, FilesFound, MountFile


@pytest.mark.parametrize("path", ["in/../../x", "in/..", "in//etc/passwd"])
def test_no_path_of_a_guest_leads_out_of_the_target(path: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="outside"):
        _place(FilePath(path), "in/", str(tmp_path))


def test_a_target_is_a_new_name_or_a_folder_to_put_it_in(tmp_path: Path) -> None:
    there, new = str(tmp_path), str(tmp_path / "new")
    assert _place(FilePath("in/a.txt"), None, there) == tmp_path / "a.txt"
    assert _place(FilePath("in/a.txt"), None, new) == tmp_path / "new"
    assert _place(FilePath("in/a.txt"), None, f"{new}/") == tmp_path / "new" / "a.txt"
    assert _place(FilePath("in/sub/a.txt"), "in/", there) == tmp_path / "in" / "sub" / "a.txt"
    assert _place(FilePath("in/sub/a.txt"), "in/", new) == tmp_path / "new" / "sub" / "a.txt"
    assert _place(FilePath("in/a.txt"), "", there) == tmp_path / "in" / "a.txt"


def test_a_folder_has_a_name_also_if_it_is_written_as_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(b"")
    monkeypatch.chdir(tmp_path / "data")
    assert [one.path for one in _planned((".",), "")] == ["data/x"]
    assert [one.path for one in _planned((".",), "new")] == ["new/x"]
    assert [one.path for one in _planned(("x", "x"), "new")] == ["new/x", "new/x"]


def test_an_empty_source_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    for sources in (("",), ("x", "")):
        with pytest.raises(click.UsageError, match="empty"):
            _planned(sources, "new")


def test_every_path_is_looked_at_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    with pytest.raises(InvalidRequest, match="half a character"):
        _planned((str(tmp_path),), "new")
    with pytest.raises(InvalidRequest, match="not a path"):
        _planned((str(tmp_path / "a"),), "../x")


class Staged:
    """An upload that a test looks at."""

    def __init__(self, while_written: Any) -> None:
        self._while_written = while_written
        self.data = b""
        self.committed = False

    async def write(self, data: bytes) -> None:
        self.data += data
        self._while_written()

    async def commit(self) -> MountFile:
        self.committed = True
        return file("x")


class FakeMounts:
    """Files of which one goes while another is fetched."""

    def __init__(self, staged: Staged | None = None, *, there: tuple[str, ...] = ()) -> None:
        self._staged = staged
        self._there = there

    @contextlib.asynccontextmanager
    async def stage(self, _request: Any) -> AsyncIterator[Staged]:
        assert self._staged is not None
        yield self._staged

    async def list(self, _request: Any) -> FilesFound:
        return FilesFound(files=(file("in/a"), file("in/b"), file("in/c")), next_after=None)

    async def describe_file(self, _request: Any) -> MountFile:
        raise Conflict("is a folder")

    @contextlib.asynccontextmanager
    async def open(self, request: Any) -> AsyncIterator[Any]:
        if request.path not in self._there:
            raise NotFound(f"no such file: {request.path!r}")
        with open(os.devnull, "rb") as nothing:
            yield Opened(nothing.fileno())


class Opened:
    """An empty file."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.file = file("x")

    def is_unchanged(self) -> bool:
        return True


def file(path: str) -> MountFile:
    return MountFile(path=FilePath(path), size=0, modified_at="", version="")


def transfers(mounts: FakeMounts) -> Transfers:
    return Transfers(mounts, Place(session_id("s"), "files"), Progress(shown=False))  # type: ignore[arg-type]


async def test_a_file_that_shrinks_while_it_is_sent_is_not_put_there(tmp_path: Path) -> None:
    source = tmp_path / "shrinks"
    source.write_bytes(bytes(3_000_000))
    staged = Staged(lambda: os.truncate(source, 1_500_000))
    with pytest.raises(InvalidRequest, match="became shorter"):
        await transfers(FakeMounts(staged)).put((str(source),), "")
    assert not staged.committed


async def test_of_a_file_that_grows_what_was_there_is_sent(tmp_path: Path) -> None:
    source = tmp_path / "grows"
    source.write_bytes(bytes(2_000_000))
    staged = Staged(lambda: os.truncate(source, 9_000_000))
    await transfers(FakeMounts(staged)).put((str(source),), "")
    assert (staged.committed, len(staged.data)) == (True, 2_000_000)


async def test_a_file_without_a_size_is_sent_as_it_comes() -> None:
    staged = Staged(lambda: None)
    await transfers(FakeMounts(staged)).put(("/proc/version",), "")
    assert staged.data == Path("/proc/version").read_bytes()


async def test_a_folder_is_fetched_without_what_is_deleted_meanwhile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = await transfers(FakeMounts(there=("in/a", "in/c"))).get("in", str(tmp_path / "new"), force=False)
    assert made == [tmp_path / "new" / "a", tmp_path / "new" / "c"]
    assert capsys.readouterr().err == "[workbench] 1 left out: deleted before they were fetched\n"
    with pytest.raises(NotFound):
        await transfers(FakeMounts()).get("in", str(tmp_path / "none"), force=False)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_came_meanwhile_is_not_replaced(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, place = tmp_path / "part", tmp_path / "place"
    part.write_bytes(b"new")
    place.write_bytes(b"somebody's")

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not on this file system")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Conflict, match="there already"):
        _put_in_place(part, place, force=False)
    assert place.read_bytes() == b"somebody's"
    _put_in_place(part, tmp_path / "other", force=False)
    assert (tmp_path / "other").read_bytes() == b"new"


def test_a_closed_standard_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InvalidRequest, match="standard input is closed"), _opened(None):
        pass


async def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(InvalidRequest, match="standard input: Is a directory"):
            assert [one async for one in _chunks(folder, None, Path("standard input"))] == []
    finally:
        os.close(folder)


@pytest.mark.parametrize("ignored", [True, False])
async def test_a_signal_that_is_ignored_ends_nothing(ignored: bool) -> None:
    async def job() -> str:
        _cancel_on_signals()
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.1)
        return "done"

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        told = (await asyncio.gather(asyncio.create_task(job()), return_exceptions=True))[0]
    finally:
        for number in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(signal.SIGHUP, before)
    assert told == "done" if ignored else isinstance(told, asyncio.CancelledError)


def test_names_of_a_guest_in_an_error_do_not_reach_the_terminal_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> None:
        raise NotFound("no such file: \x1b[31mred\nand its second line")

    monkeypatch.setattr(main.cli, "main", fails)
    with pytest.raises(SystemExit):
        main.main()
    assert capsys.readouterr().err == "error: no such file: ?[31mred\nand its second line\n"
