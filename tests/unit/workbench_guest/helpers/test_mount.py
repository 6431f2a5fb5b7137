"""Links to files that lie in the mount."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workbench_guest.helpers.answering import answer, in_turn, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest.helpers import get_mount_file_s3_key, get_mount_file_url

BOTH = pytest.mark.parametrize("helper", [get_mount_file_url, get_mount_file_s3_key])


@pytest.mark.parametrize(
    "path", ["/mnt/files/data/in.csv", "data/in.csv", "./data/../data/in.csv", "link.csv", Path("data/in.csv"), None]
)
def test_a_file_is_found_by_every_way_to_write_its_path(serve: Serve, files: Path, path: Any) -> None:
    server = serve(in_turn(answer({"url": "http://x/y"}), answer("the key")))
    (files / "data").mkdir()
    (files / "data/in.csv").write_text("x")
    (files / "link.csv").symlink_to("data/in.csv")
    given = path or str(files / "data/in.csv")
    assert get_mount_file_url(given) == ("http://x/y", "")
    assert get_mount_file_s3_key(given) == ("the key", "")
    assert server.requests == [
        {"operation": operation, "arguments": {"path": "data/in.csv"}} for operation in ("file_link", "file_key")
    ]


@BOTH
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../home/x", "/mnt/files/../home/x", "/mnt/filesystem/x", "away", "/mnt/files", "."]
)
def test_what_lies_elsewhere_is_for_another_helper(serve: Serve, files: Path, helper: Any, path: str) -> None:
    server = serve(says())
    (files.parent / "home/x").write_text("x")
    (files / "away").symlink_to("/etc/passwd")
    result, error = helper(path)
    assert result == ""
    assert error == f"{path} is not below /mnt/files: upload_local_file gives a link to any file of the sandbox"
    assert server.requests == []


@BOTH
def test_wrong_paths_are_told_with_what_is_near(serve: Serve, files: Path, helper: Any) -> None:
    server = serve(says())
    (files / "Report.pdf").write_text("x")
    (files / "folder").mkdir()
    os.mkfifo(files / "pipe")
    assert helper("report.pfd") == ("", "no such file: report.pfd; near it: Report.pdf")
    assert helper("zzz") == ("", f"no such file: zzz; {files} has no name like it")
    assert helper("none/at/all") == ("", f"no such file: none/at/all; of its folders only {files} is there")
    assert "folder is a folder: upload_local_file makes a zip" in helper("folder")[1]
    assert helper("pipe")[1] == "file_path has to be a file, and pipe is a pipe, a socket or a device"
    assert helper("")[1] == "file_path is empty"
    assert helper(3)[1] == "file_path has to be a path, not int"
    assert helper(b"x")[1] == "file_path has to be a path, not bytes"
    assert helper("a\0b")[1] == "file_path is not a path: 'a\\x00b'"
    assert server.requests == []


@BOTH
def test_a_failure_is_empty_with_its_error(serve: Serve, files: Path, helper: Any) -> None:
    (files / "x").write_text("x")
    serve(in_turn(answer(None, "no links here", "not_configured"), answer({})))
    assert helper("x") == ("", "no links here")
    assert helper("x")[1].startswith("the answer has no ")
