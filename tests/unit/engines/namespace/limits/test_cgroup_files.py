"""The small files of a control group, on an ordinary folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.engines.namespace.limits import cgroup_files as files


def test_a_value_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "pids.max"
    path.touch()
    files.write(path, 256)
    assert path.read_text() == "256"
    assert files.read_int(path) == 256


def test_a_file_that_the_kernel_did_not_make_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write(tmp_path / "memory.max", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "number"), [("12\n", 12), ("-1\n", -1), ("max\n", 0), ("", 0), ("1 2\n", 0)])
def test_what_is_no_number_reads_as_nothing(tmp_path: Path, text: str, number: int) -> None:
    (tmp_path / "file").write_text(text)
    assert files.read_int(tmp_path / "file") == number
    assert files.read_int(tmp_path / "missing") == 0


def test_a_table_has_the_lines_with_a_name_and_a_number(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text("rss 10\nshmem 20\nodd line here\nname max\n\nlast 3")
    assert files.read_table(tmp_path / "memory.stat") == {"rss": 10, "shmem": 20, "last": 3}
    assert files.read_table(tmp_path / "missing") == {}


def test_a_folder_is_removed_once_it_is_empty_and_being_gone_is_success(tmp_path: Path) -> None:
    group = tmp_path / "group"
    (group / "child").mkdir(parents=True)
    assert not files.remove(group)
    assert files.remove_tree(group)
    assert files.remove(group)
    assert files.remove_tree(group)
    assert not group.exists()


def test_a_tree_with_something_inside_is_left(tmp_path: Path) -> None:
    (tmp_path / "group" / "busy").mkdir(parents=True)
    (tmp_path / "group" / "busy" / "held").touch()
    assert not files.remove_tree(tmp_path / "group")
    assert (tmp_path / "group" / "busy" / "held").exists()
