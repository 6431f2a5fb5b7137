"""Descriptions are read as they are written, or refused with the file's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.errors import InvalidRequest
from workbench.model.runtime import FORKED, Need, Runtimes
from workbench.runtimes.loading import load_runtimes

ONE: dict[str, Any] = {
    "name": "one",
    "title": "One",
    "language": "one",
    "kernelspec": "one",
    "file_extension": ".one",
    "argv": ["one", "{connection_file}"],
}


def write(folder: Path, name: str = "one", **fields: Any) -> Path:
    (folder / f"{name}.json").write_text(json.dumps({**ONE, "name": name, **fields}))
    return folder


def test_the_shipped_python_is_the_one_that_the_code_knows() -> None:
    assert load_runtimes().find("python") == FORKED == Runtimes().find("PY")


def test_only_python_is_forked_and_keeps_its_memory() -> None:
    known = load_runtimes().known
    assert [one.name for one in known if one.forked] == ["python"]
    assert [one.name for one in known if not one.why_no_memory] == ["python"]
    assert all(one.why_no_memory.startswith(one.title) for one in known if not one.forked)


def test_every_shipped_program_is_told_where_its_connection_file_is() -> None:
    assert all("{connection_file}" in one.argv for one in load_runtimes().known if not one.forked)


def test_names_are_found_in_whatever_letters() -> None:
    known = load_runtimes()
    found = {asked: known.find(asked) for asked in ("Bash", " shell ", "JavaScript", "R")}
    assert {asked: one.name for asked, one in found.items() if one} == {
        "Bash": "bash",
        " shell ": "bash",
        "JavaScript": "node",
        "R": "r",
    }
    assert known.find("cobol") is None


def test_a_folder_adds_to_the_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, aliases=["uno"], env=[["A", "b"]], needs=[{"any_of": ["one"], "install": "get one"}])
    one = load_runtimes(tmp_path).find("uno")
    assert one is not None
    assert (one.env, one.needs) == ((("A", "b"),), (Need(any_of=("one",), install="get one"),))
    assert one.why_no_memory == "One: its memory is not kept beside it"
    assert load_runtimes(tmp_path).find("bash") is not None


def test_a_folder_may_replace_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, "bash", title="Another Bash")
    bash = load_runtimes(tmp_path).find("bash")
    assert bash is not None
    assert bash.title == "Another Bash"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"name": "one"}', json.dumps({**ONE, "argv": "one"}), json.dumps({**ONE, "name": "two"})],
)
def test_what_is_no_description_is_refused_by_the_name_of_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(InvalidRequest, match=r"one\.json"):
        load_runtimes(tmp_path)


def test_a_field_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    write(tmp_path, need=[])
    with pytest.raises(InvalidRequest, match="need"):
        load_runtimes(tmp_path)


def test_a_program_that_is_not_told_where_its_connection_file_is_is_refused(tmp_path: Path) -> None:
    write(tmp_path, argv=["one"])
    with pytest.raises(InvalidRequest, match="connection_file"):
        load_runtimes(tmp_path)


@pytest.mark.parametrize("name", ["one", "bash"])
def test_a_language_that_has_no_command_is_refused_and_not_run_as_python(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, argv=[])
    with pytest.raises(InvalidRequest, match=rf"{name}\.json: {name} needs argv, the command of its kernel"):
        load_runtimes(tmp_path)


def test_python_with_a_command_is_refused_and_told_to_have_another_name(tmp_path: Path) -> None:
    write(tmp_path, "python")
    with pytest.raises(InvalidRequest, match=r"python\.json: python is the image's own .* needs another name"):
        load_runtimes(tmp_path)


def test_python_may_be_described_anew_as_long_as_it_has_no_command(tmp_path: Path) -> None:
    write(tmp_path, "python", title="Our Python", argv=[])
    python = load_runtimes(tmp_path).find("python")
    assert python is not None
    assert (python.title, python.forked) == ("Our Python", True)


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, aliases=["bash"])
    with pytest.raises(InvalidRequest, match="two runtimes are called 'bash'"):
        load_runtimes(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no such folder of runtimes"):
        load_runtimes(tmp_path / "none")
