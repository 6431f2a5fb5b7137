"""`upload_local_file`: what ends up in the mount, what never does, and that a failure leaves nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest
from tests.unit.workbench_guest.helpers.answering import Behaviour, answer, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest.helpers import archive, upload_local_file
from workbench_guest.helpers.uploadable import UNFINISHED

RESULT = {"s3_url", "uploaded_file", "type", "id", "s3key", "message"}


def linking(connection: socket.socket, request: dict[str, Any]) -> None:
    path = request["arguments"]["path"]
    connection.sendall(answer({
        "url": f"http://workbench/{path}", "expires_at": "2026-01-02T03:04:05Z", "name": Path(path).name, "size": 1,
        "type": "text/plain", "id": "file_1", "key": f"key/{path}"}))  # fmt: skip


def left_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def home(files: Path) -> Path:
    return files.parent / "home"


def test_a_file_is_copied_and_linked_to(serve: Serve, files: Path, home: Path) -> None:
    server = serve(linking)
    (home / "report.txt").write_bytes(b"text" * 1_000_000)
    result, error = upload_local_file("report.txt")
    assert error == ""
    assert result == {
        "s3_url": "http://workbench/uploads/report.txt",
        "uploaded_file": str(files / "uploads/report.txt"),
        "type": "text/plain",
        "id": "file_1",
        "s3key": "key/uploads/report.txt",
        "message": f"{files}/uploads/report.txt can be had from the link, until 2026-01-02T03:04:05Z",
    }
    assert (files / "uploads/report.txt").read_bytes() == b"text" * 1_000_000
    assert left_in(files) == ["uploads", "uploads/report.txt"]
    assert server.arguments == {"path": "uploads/report.txt"}


def test_a_file_of_the_mount_stays_where_it_is(serve: Serve, files: Path, home: Path) -> None:
    server = serve(linking)
    (files / "data").mkdir()
    (files / "data/in.csv").write_text("x")
    (home / "soft").symlink_to(files / "data/in.csv")
    for path in (files / "data/in.csv", home / "soft", "/mnt/files/data/in.csv"):
        assert upload_local_file(path)[0]["uploaded_file"] == str(files / "data/in.csv")
    assert left_in(files) == ["data", "data/in.csv"]
    assert [request["arguments"] for request in server.requests] == [{"path": "data/in.csv"}] * 3


def test_a_link_in_the_mount_to_a_file_elsewhere_is_copied(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    (home / "real").write_text("x")
    (files / "soft.txt").symlink_to(home / "real")
    assert upload_local_file(files / "soft.txt")[0]["uploaded_file"] == str(files / "uploads/soft.txt")
    assert not (files / "uploads/soft.txt").is_symlink()


def test_names_that_are_taken_get_a_number_also_when_all_come_at_once(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    paths = []
    for number in range(20):
        (home / str(number)).mkdir()
        (home / str(number) / "a.tar.gz").write_text(str(number))
        paths.append(home / str(number) / "a.tar.gz")
    with ThreadPoolExecutor(20) as pool:
        told = list(pool.map(upload_local_file, paths))
    for number, (result, error) in enumerate(told):
        assert error == ""
        assert Path(result["uploaded_file"]).read_text() == str(number)
    assert len(left_in(files)) == 21
    assert {"a.tar.gz", "a.tar-2.gz"} <= {path.name for path in (files / "uploads").iterdir()}


def test_folders_without_hard_links_do_as_well(
    serve: Serve, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "link", refuse)
    serve(linking)
    (home / "a.txt").write_text("a")
    assert [Path(upload_local_file("a.txt")[0]["uploaded_file"]).name for _ in range(3)] == [
        "a.txt",
        "a-2.txt",
        "a-3.txt",
    ]
    assert left_in(files) == ["uploads", "uploads/a-2.txt", "uploads/a-3.txt", "uploads/a.txt"]


def zipped(result: dict[str, Any]) -> dict[str, bytes]:
    with zipfile.ZipFile(result["uploaded_file"]) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_several_files_and_folders_become_one_zip_with_names_kept_apart(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    for name in ("a/x.csv", "b/x.csv", "c/a/deep/er.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    result, error = upload_local_file("a/x.csv", "b/x.csv", "c/a/", "a", "a/x.csv")
    assert error == ""
    assert Path(result["uploaded_file"]).name == "files.zip"
    assert zipped(result) == {
        "x.csv": b"a/x.csv", "x-2.csv": b"b/x.csv", "a/deep/er.txt": b"c/a/deep/er.txt", "a-2/x.csv": b"a/x.csv"
    }  # fmt: skip
    assert "(4 files)" in result["message"]


def test_a_folder_becomes_a_zip_of_its_name_without_what_is_no_file(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    folder = home / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/kept.txt").write_text("kept")
    (folder / "inside").symlink_to("sub/kept.txt")
    (folder / "outside").symlink_to("/etc/passwd")
    (folder / "upwards").symlink_to("..")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "old.txt").write_text("old")
    os.utime(folder / "old.txt", (0, 0))
    (folder / os.fsdecode(b"no\xfftext")).write_text("odd")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        with contextlib.chdir(folder):
            listening.bind("socket")
        result, error = upload_local_file(folder)
    assert error == ""
    assert Path(result["uploaded_file"]).name == "data.zip"
    assert zipped(result) == {
        "data/sub/kept.txt": b"kept", "data/inside": b"kept", "data/old.txt": b"old", "data/no\\udcfftext": b"odd"
    }  # fmt: skip
    for word in (
        "outside (a link to elsewhere)",
        "upwards (a link to elsewhere)",
        "pipe (a pipe",
        "socket (a pipe",
        "dangling",
    ):
        assert word in result["message"]


def test_a_link_to_another_folder_that_was_named_is_followed(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    (home / "a").mkdir()
    (home / "b").mkdir()
    (home / "b/file").write_text("b")
    (home / "a/soft").symlink_to(home / "b/file")
    assert set(zipped(upload_local_file("a", "b")[0])) == {"a/soft", "b/file"}
    assert "a link to elsewhere" in upload_local_file("a")[1]


def test_the_mount_itself_can_be_packed_without_what_is_being_packed(serve: Serve, files: Path) -> None:
    serve(linking)
    (files / "x").write_text("x")
    (files / "uploads").mkdir()
    (files / f"uploads/{UNFINISHED}other").write_text("half")
    assert set(zipped(upload_local_file(files)[0])) == {"files/x"}


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        ((), "nothing to upload: give the path of a file, or several"),
        (("reprot.txt",), "no such file: reprot.txt; near it: report.txt"),
        (("report.txt", "gone"), "no such file: gone; "),
        (("no/such/folder",), "of its folders only "),
        ((["report.txt"],), "file_paths is a list: give paths one by one, as in upload_local_file(*paths)"),
        ((3,), "file_paths has to be a path, not int"),
        (("",), "file_paths is empty"),
        (("report.txt", ""), "file_paths (2 of 2) is empty"),
        (("empty",), "empty is an empty folder"),
        (("report.txt", "empty"), "empty is an empty folder"),
        (("pipes",), "has no file that can be uploaded"),
        (("pipes/pipe",), "file_paths has to be a file, and pipes/pipe is a pipe, a socket or a device"),
        (("/dev/null",), "is a pipe, a socket or a device"),
    ],
)
def test_what_cannot_be_uploaded_is_named(
    serve: Serve, files: Path, home: Path, paths: tuple[Any, ...], problem: str
) -> None:
    server = serve(linking)
    (home / "report.txt").write_text("x")
    (home / "empty").mkdir()
    (home / "pipes").mkdir()
    os.mkfifo(home / "pipes/pipe")
    result, error = upload_local_file(*paths)
    assert result == {}
    assert problem in error
    assert server.requests == []
    assert left_in(files) == []


def full(_source: IO[bytes], target: IO[bytes]) -> None:
    target.write(b"some of it")
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def test_no_room_is_called_so_and_leaves_nothing(
    serve: Serve, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "copy", full)
    serve(linking)
    (home / "a").write_text("a")
    (home / "b").write_text("b")
    for paths in (("a",), ("a", "b")):
        result, error = upload_local_file(*paths)
        assert result == {}
        assert (
            error == "no room in /mnt/files for this upload (Disk quota exceeded): remove files there, or upload less"
        )
    assert left_in(files) == []


@pytest.mark.parametrize(
    "behaviour", [says(None, "no links here", "not_configured"), says({}), lambda connection, _: connection.close()]
)
def test_without_a_link_nothing_is_left(serve: Serve, files: Path, home: Path, behaviour: Behaviour) -> None:
    serve(behaviour)
    (home / "a").write_text("a")
    for paths in (("a",), ("a", "a", home)):
        result, error = upload_local_file(*paths)
        assert result == {}
        assert error
    assert left_in(files) == []


def test_what_others_have_uploaded_stays_when_one_fails(serve: Serve, files: Path, home: Path) -> None:
    serve(says(None, "no", "denied"))
    (files / "uploads").mkdir()
    (files / "uploads/a").write_text("earlier")
    (home / "a").write_text("a")
    assert upload_local_file("a") == ({}, "no")
    assert left_in(files) == ["uploads", "uploads/a"]
    assert (files / "uploads/a").read_text() == "earlier"


def test_an_interrupt_leaves_nothing(serve: Serve, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_source: IO[bytes], target: IO[bytes]) -> None:
        target.write(b"some of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, "copy", interrupted)
    (home / "a").write_text("a")
    with pytest.raises(KeyboardInterrupt):
        upload_local_file("a")
    assert left_in(files) == []


def test_a_folder_of_uploads_that_leads_elsewhere_is_refused(serve: Serve, files: Path, home: Path) -> None:
    server = serve(linking)
    (home / "away").mkdir()
    (files / "uploads").symlink_to(home / "away")
    (home / "a").write_text("a")
    assert upload_local_file("a") == ({}, "/mnt/files/uploads leads out of /mnt/files: remove it, and try again")
    assert left_in(home / "away") == []
    assert server.requests == []


def test_a_file_in_the_place_of_the_folder_is_told(serve: Serve, files: Path, home: Path) -> None:
    (files / "uploads").write_text("a file")
    (home / "a").write_text("a")
    assert upload_local_file("a") == ({}, "/mnt/files/uploads is a file and not a folder: rename it, and try again")


def test_a_deep_tree_is_packed_without_recursion(serve: Serve, files: Path, home: Path) -> None:
    serve(linking)
    folder = home / "deep"
    with contextlib.chdir(home):
        os.mkdir("deep")
        os.chdir("deep")
        for _ in range(300):
            os.mkdir("d")
            os.chdir("d")
        Path("leaf").write_text("leaf")
    (name,) = zipped(upload_local_file(folder)[0])
    assert name.count("/") == 301


def test_a_folder_that_another_failed_upload_took_away_is_made_again(
    serve: Serve, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = os.mkdir

    def made_and_taken(path: Any, *rest: Any) -> None:
        monkeypatch.setattr(os, "mkdir", stock)
        raise FileExistsError(path)

    monkeypatch.setattr(os, "mkdir", made_and_taken)
    serve(linking)
    (home / "a").write_text("a")
    assert upload_local_file("a")[0]["uploaded_file"] == str(files / "uploads/a")


def test_nobody_sees_half_a_file(serve: Serve, files: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    stock: Callable[[IO[bytes], IO[bytes]], None] = archive.copy

    def look(source: IO[bytes], target: IO[bytes]) -> None:
        seen.append([path.name for path in (files / "uploads").iterdir()])
        stock(source, target)

    monkeypatch.setattr(archive, "copy", look)
    serve(linking)
    (home / "a").write_text("a")
    thread = threading.Thread(target=upload_local_file, args=("a",))
    thread.start()
    thread.join()
    assert [name.startswith(UNFINISHED) for names in seen for name in names] == [True]
    assert left_in(files) == ["uploads", "uploads/a"]
