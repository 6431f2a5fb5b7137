"""What can be sent under what name, and where things are written; all on this machine."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from workbench.client._local_files import Kept, Sendable, below, files_within, opened, place_for, remote_name, saved
from workbench.errors import InvalidRequest


def named(text: str) -> io.BytesIO:
    file = io.BytesIO(b"x")
    file.name = text
    return file


@pytest.mark.parametrize(
    ("source", "remote_path", "expected"),
    [
        ("./in/sales.csv", None, "sales.csv"),
        (Path("/data/sales.csv"), "reports/", "reports/sales.csv"),
        ("sales.csv", "reports/may.csv", "reports/may.csv"),
        (b"x", "a/b", "a/b"),
        (named("/tmp/x/notes.txt"), None, "notes.txt"),
        (named("<fdopen>"), "notes.txt", "notes.txt"),
    ],
)
def test_a_file_keeps_its_name_unless_it_is_given_another(
    source: Sendable, remote_path: str | None, expected: str
) -> None:
    assert remote_name(source, remote_path, None) == expected


@pytest.mark.parametrize("source", [b"x", bytearray(b"x"), memoryview(b"x"), io.BytesIO(b"x"), named("<stdin>")])
def test_what_has_no_name_gets_one_of_ours_or_is_refused(source: Sendable) -> None:
    assert re.fullmatch(r"upload-[0-9a-f]{8}\.csv", remote_name(source, None, "text/csv"))
    assert re.fullmatch(r"in/upload-[0-9a-f]{8}\.bin", remote_name(source, "in/", "application/x-unheard-of"))
    for remote_path in (None, "in/"):
        with pytest.raises(InvalidRequest, match="remote_path"):
            remote_name(source, remote_path, None)


def test_a_source_is_read_from_where_it_stands_and_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "ten"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        file.seek(4)
        with opened(file) as source:
            assert (source.size, source.again) == (6, True)
            assert [b"".join(source.chunks(*part)) for part in ((0, None), (2, 4), (0, 6))] == [
                b"456789",
                b"67",
                b"456789",
            ]
        assert not file.closed


def test_what_can_only_be_read_once_has_no_size() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"piped")
    os.close(writing)
    with os.fdopen(reading, "rb") as file, opened(file) as source:
        assert (source.size, source.again) == (None, False)
        assert b"".join(source.chunks(0, None)) == b"piped"


def test_a_file_that_became_shorter_is_not_sent_as_if_it_were_whole(tmp_path: Path) -> None:
    path = tmp_path / "shrinks"
    path.write_bytes(b"0123456789")
    with opened(path) as source:
        os.truncate(path, 3)
        with pytest.raises(InvalidRequest, match="became shorter"):
            list(source.chunks(0, 10))


def test_what_cannot_be_sent_is_told_with_the_next_step(tmp_path: Path) -> None:
    for source, words in ((tmp_path, "upload_folder"), (io.StringIO("text"), "'rb'"), (42, "not int")):
        with pytest.raises(InvalidRequest, match=words), opened(source):  # type: ignore[arg-type]
            pass
    with pytest.raises(FileNotFoundError, match="nowhere"), opened("nowhere"):
        pass


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(InvalidRequest, match="empty"), opened(""):
        pass
    with pytest.raises(InvalidRequest, match="empty"):
        files_within("", "")


def test_a_path_to_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero"):
        with pytest.raises(InvalidRequest, match="open it"), opened(path):
            pass


def test_what_has_no_end_that_can_be_told_is_read_as_it_comes() -> None:
    with opened("/proc/version") as source:
        assert (source.size, source.again) == (None, False)
        assert b"".join(source.chunks(0, None)) == Path("/proc/version").read_bytes()
    with open("/dev/zero", "rb") as file, opened(file) as source:
        assert source.size is None
        assert not any(next(source.chunks(0, None)))


def test_a_wait_for_a_silent_pipe_is_left_when_told() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as end, opened(file) as source:
        end.write(b"said")
        chunks = source.chunks(0, None)
        assert next(chunks) == b"said"
        source.leave()
        assert list(chunks) == []


def test_no_file_of_a_folder_is_sent_if_one_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"")
    with pytest.raises(InvalidRequest, match="half a character"):
        files_within(tmp_path, "")
    (tmp_path / os.fsdecode(b"\xff")).unlink()
    with pytest.raises(InvalidRequest, match="not a path"):
        files_within(tmp_path, "../x")


def test_a_folder_is_its_files_without_links(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b", "a", "sub/c"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    assert [remote for _, remote in files_within(tmp_path, "")] == ["a", "b", "sub/c"]
    assert [remote for _, remote in files_within(tmp_path, "in/put/")] == ["in/put/a", "in/put/b", "in/put/sub/c"]
    with pytest.raises(InvalidRequest, match="not a folder"):
        files_within(tmp_path / "a", "")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "..", "a\0b"])
def test_no_path_of_a_server_leads_out_of_the_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be written"):
        below(tmp_path, path)


def test_a_file_is_saved_as_itself_in_a_folder_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_for(tmp_path / "other.txt", "name.txt") == tmp_path / "other.txt"
    assert place_for(tmp_path, "name.txt") == tmp_path / "name.txt"
    assert place_for(f"{tmp_path}/new/", "name.txt") == tmp_path / "new" / "name.txt"
    assert place_for(None, "name.txt") == tmp_path / ".composio" / "files" / "name.txt"
    with pytest.raises(InvalidRequest):
        place_for(None, "..")


def test_what_is_saved_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    with saved(target) as part:
        part.write(b"wrong")
        part.clear()
        part.write(b"right")
        assert part.position == 5
        assert not target.exists()
    assert target.read_bytes() == b"right"

    def interrupted() -> None:
        with saved(target) as part:
            part.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"right"
    assert [one.name for one in target.parent.iterdir()] == ["file"]


def test_what_is_kept_in_memory_begins_anew_when_told() -> None:
    kept = Kept()
    kept.write(b"wrong")
    kept.clear()
    kept.write(b"right")
    assert (kept.whole(), kept.position) == (b"right", 5)
