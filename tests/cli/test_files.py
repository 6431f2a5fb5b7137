"""`workbench files` as a user and a script meet it: files and folders in and out, whole or not at all."""

from __future__ import annotations

import json
import os
import pty
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.host.conftest import shared_settings
from tests.host.support import eventually

from workbench.settings import Settings

__all__ = ["shared_settings"]
_WAIT_S = 120


class Mine:
    """A session, and the command for it."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE) -> Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "workbench", *arguments],
            env={**os.environ, **self.settings.to_env()},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=_WAIT_S)
        return process.returncode, out.decode(), err.decode()

    def files(self, command: str, *arguments: str) -> tuple[int, str, str]:
        return self.run("files", command, "-s", self.name, *arguments)

    def told(self, command: str, *arguments: str) -> Any:
        code, out, err = self.files(command, *arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def starting(self, command: str, *arguments: str, stdin: int = subprocess.PIPE) -> Popen:
        return self.start("files", command, "-s", self.name, *arguments, stdin=stdin)


Popen = subprocess.Popen[bytes]


@pytest.fixture
def mine(shared_settings: Settings) -> Iterator[Mine]:
    made = Mine(shared_settings, f"t-{secrets.token_hex(4)}")
    assert made.run("sessions", "create", made.name)[0] == 0
    yield made
    assert made.run("sessions", "rm", made.name)[0] == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, a folder, and a link that leads out of it."""
    top = tmp_path / "tree"
    (top / "sub").mkdir(parents=True)
    (top / "a.txt").write_text("alpha\n", encoding="utf-8")
    (top / "sub" / "b.bin").write_bytes(b"\0beta")
    (top / "link").symlink_to("/etc/passwd")
    return top


def test_a_file_goes_in_is_seen_by_code_and_comes_out(mine: Mine, tmp_path: Path) -> None:
    source = tmp_path / "sales.csv"
    source.write_bytes(b"a,b\n1,2\n")
    assert mine.files("put", str(source)) == (0, "/mnt/files/sales.csv  8 B\n", "")
    code = "print(open('/mnt/files/sales.csv').read(), end=''); open('/mnt/files/out.txt', 'w').write('done')"
    assert mine.run("exec", "-s", mine.name, code)[1].startswith("a,b\n1,2\n")
    target = tmp_path / "result.txt"
    assert mine.files("get", "/mnt/files/out.txt", str(target)) == (0, f"{target}\n", "")
    assert target.read_bytes() == b"done"
    assert mine.files("get", "out.txt", "-") == (0, "done", "")
    assert [one["path"] for one in mine.told("ls")["items"]] == ["out.txt", "sales.csv"]
    assert mine.files("ls", "sal")[1].splitlines()[1].endswith("UTC  sales.csv")
    assert mine.told("rm", "out.txt") == [{"path": "out.txt", "files": 1}]
    assert mine.files("get", "out.txt", "-")[0] == 125


def test_folders_go_in_and_out_with_all_that_is_in_them(mine: Mine, tree: Path, tmp_path: Path) -> None:
    made = mine.told("put", str(tree), "--to", "in/")
    assert [one["path"] for one in made] == ["in/tree/a.txt", "in/tree/sub/b.bin"]
    code, _, err = mine.files("put", str(tree), "--to", "other", "-q")
    assert (code, err) == (0, f"[workbench] 1 left out of {tree}: links and what else is no file\n")
    assert [one["path"] for one in mine.told("ls", "other/")["items"]] == ["other/a.txt", "other/sub/b.bin"]
    new, there = tmp_path / "new", tmp_path / "there"
    there.mkdir()
    assert mine.files("get", "in/tree", str(new), "-q") == (0, "", "")
    assert (new / "sub" / "b.bin").read_bytes() == b"\0beta"
    assert len(mine.told("get", "in/tree/", str(there))) == 2
    assert (there / "tree" / "a.txt").read_text(encoding="utf-8") == "alpha\n"
    everything = mine.told("get", "/", str(tmp_path / "all"))
    assert len(everything) == 4
    assert mine.told("rm", "in", "other/a.txt") == [{"path": "in", "files": 2}, {"path": "other/a.txt", "files": 1}]


@pytest.mark.long
def test_several_sources_go_into_a_folder_and_standard_input_under_a_name(mine: Mine, tree: Path) -> None:
    made = mine.told("put", str(tree / "a.txt"), str(tree / "sub" / "b.bin"), "--to", "both")
    assert [one["path"] for one in made] == ["both/a.txt", "both/b.bin"]
    sending = mine.starting("put", "-", "--to", "said.txt")
    out, _ = sending.communicate(b"from a pipe", timeout=_WAIT_S)
    assert (sending.returncode, out) == (0, b"/mnt/files/said.txt  11 B\n")
    assert mine.files("get", "said.txt", "-")[1] == "from a pipe"
    for wrong in (("-",), ("-", "--to", "in/"), ("http://127.0.0.1/x",), ("",)):
        code, _, err = mine.files("put", *wrong)
        assert (code, "Traceback" in err) == (2, False)


def test_what_is_here_is_not_replaced_without_force(mine: Mine, tree: Path, tmp_path: Path) -> None:
    assert mine.files("put", str(tree), "-q")[0] == 0
    target = tmp_path / "kept.txt"
    target.write_bytes(b"mine")
    code, _, err = mine.files("get", "tree/a.txt", str(target))
    assert (code, err) == (125, f"error: {target} is there already; --force replaces it\n")
    assert target.read_bytes() == b"mine"
    assert mine.files("get", "tree/a.txt", str(target), "--force")[0] == 0
    assert target.read_bytes() == b"alpha\n"
    # One file of a folder is in the way: then none of it is written.
    into = tmp_path / "into"
    (into / "tree" / "sub").mkdir(parents=True)
    (into / "tree" / "sub" / "b.bin").write_bytes(b"mine")
    assert mine.files("get", "tree", str(into))[0] == 125
    assert not (into / "tree" / "a.txt").exists()


@pytest.mark.long
def test_what_cannot_be_is_one_line_and_an_exit_code(mine: Mine, tree: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for arguments in (
        ("get", "nothing"),
        ("get", "nothing/"),
        ("get", "../x"),
        ("rm", "nothing"),
        ("put", str(tmp_path / "nowhere")),
        ("put", str(fifo)),
        ("put", str(tree / "a.txt"), "--to", "../x"),
        ("put", str(tree / "a.txt"), "--to", "/etc/../x"),
        ("fetch", "http://127.0.0.1:1/x"),
        ("fetch", "file:///etc/passwd"),
        ("ls", "--mount", "other"),
        ("put", str(tree / "a.txt"), "--mount", "other"),
    ):
        code, out, err = mine.files(*arguments)
        assert (code, out, err.count("\n"), err[:7]) == (125, "", 1, "error: "), arguments
    code, _, err = mine.run("files", "ls", "-s", "nobody")
    assert code == 125
    assert "nobody" in err


@pytest.mark.long
def test_use_and_pages_are_told(mine: Mine, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(5):
        (many / f"{number}").write_bytes(b"x" * 5000)
    assert mine.files("put", str(many), "-q")[0] == 0
    page = mine.told("ls", "--limit", "2")
    assert [one["path"] for one in page["items"]] == ["many/0", "many/1"]
    after = mine.told("ls", "--limit", "2", "--cursor", page["next_cursor"])
    assert [one["path"] for one in after["items"]] == ["many/2", "many/3"]
    assert len(mine.told("ls", "--limit", "2", "--all")["items"]) == 5
    assert mine.files("ls", "--limit", "2")[2] == "[workbench] there are more; --all shows them\n"
    use = mine.told("df")
    assert use["bytes"] >= 25_000
    assert use["files"] >= 6
    assert use["most_bytes"] > use["bytes"]
    assert mine.files("df")[1].splitlines()[1].startswith("bytes ")


@pytest.mark.long
def test_names_of_a_guest_do_not_reach_the_terminal_as_they_are(mine: Mine) -> None:
    mine.run("exec", "-s", mine.name, "open('/mnt/files/\\x1b[31mred', 'w').close()")
    assert "\x1b" not in mine.files("ls")[1]
    assert mine.files("ls")[1].splitlines()[1].endswith("?[31mred")


def test_ended_in_the_middle_nothing_is_left_on_either_side(mine: Mine) -> None:
    uploads = mine.settings.data_dir / "uploads"
    for number in (signal.SIGINT, signal.SIGTERM):
        sending = mine.starting("put", "-", "--to", "half.bin")
        assert sending.stdin is not None
        sending.stdin.write(b"x" * 3_000_000)
        sending.stdin.flush()
        eventually(lambda: any(one.stat().st_size for one in uploads.glob("*/*")), "a part of it is there")
        sending.send_signal(number)
        assert sending.wait(_WAIT_S) == 128 + number
        sending.communicate()
        assert list(uploads.glob("*/*")) == []
    assert mine.told("ls")["items"] == []


def test_a_bar_is_for_terminals_and_on_stderr(mine: Mine, tmp_path: Path) -> None:
    source = tmp_path / "large.bin"
    source.write_bytes(bytes(3_000_000))
    shown, terminal = pty.openpty()
    try:
        sending = mine.start("files", "put", "-s", mine.name, str(source), stderr=terminal)
        out, _ = sending.communicate(timeout=_WAIT_S)
        said = os.read(shown, 65536)
    finally:
        os.close(terminal)
        os.close(shown)
    assert (sending.returncode, out) == (0, b"/mnt/files/large.bin  2.9 MB\n")
    assert b"100%" in said
    assert mine.files("get", "large.bin", str(tmp_path / "back.bin"))[2] == ""
    assert (tmp_path / "back.bin").read_bytes() == bytes(3_000_000)
