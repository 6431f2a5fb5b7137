"""`pip` inside: what it asks for, what it says, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench_guest.packages import asking, pip_command


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    def install(arguments: dict[str, Any], what: str) -> asking.Told:
        seen.append(arguments)
        if arguments["requirements"] == ["refused"]:
            return asking.Told({}, refused="refused is not supported")
        pins = [f"{one}==1.0" for one in arguments["requirements"]]
        return asking.Told({"installed": pins, "present": ["numpy==2.0"]})

    monkeypatch.setattr(asking, "install", install)
    return seen


def test_names_are_asked_for_and_what_came_of_it_is_said(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert pip_command.main(["install", "--upgrade", "x", "y>=2"]) == 0
    assert asked == [{"language": "python", "requirements": ["x", "y>=2"]}]
    said = capsys.readouterr().out
    assert "Successfully installed x-1.0 y>=2-1.0" in said
    assert "already satisfied: numpy==2.0" in said


def test_a_refusal_is_an_error_with_its_reason(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert pip_command.main(["install", "refused"]) == 1
    assert capsys.readouterr().err == "ERROR: refused is not supported\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["install"], "name what to install"),
        (["install", "--index-url", "https://example.com", "x"], "not possible here"),
        (["install", "-e", "."], "not possible here"),
        (["install", "-r", "/no/such/file"], "No such file"),
        (["uninstall", "x"], "not possible here"),
        (["download", "x"], "not possible here"),
        ([], "not possible here"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_asked(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert (pip_command.main(arguments), asked) == (1, [])
    assert words in capsys.readouterr().err


def test_a_file_of_requirements_is_read_and_options_in_it_are_refused(
    asked: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.txt"
    file.write_text("# ours\nx==1\n\ny  # why\n", encoding="utf-8")
    assert pip_command.main(["install", "-r", str(file)]) == 0
    assert asked[0]["requirements"] == ["x==1", "y"]
    file.write_text("--extra-index-url https://example.com\nx\n", encoding="utf-8")
    assert pip_command.main(["install", "-r", str(file)]) == 1
    assert len(asked) == 1


def test_what_is_there_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert pip_command.main(["freeze"]) == 0
    assert "pytest==" in capsys.readouterr().out
    assert pip_command.main(["show", "pytest", "no-such-zz"]) == 1
    told = capsys.readouterr()
    assert "Name: pytest" in told.out
    assert "no-such-zz" in told.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-qU", "x"],
        ["x", "--progress-bar", "off", "-q"],
        ["--default-timeout=100", "--retries", "3", "x"],
        ["--no-color", "--upgrade-strategy", "eager", "--only-binary", ":all:", "x", "--no-compile"],
    ],
)
def test_options_that_change_nothing_here_are_taken_wherever_they_stand(
    asked: list[dict[str, Any]], arguments: list[str]
) -> None:
    assert pip_command.main(["--disable-pip-version-check", "install", *arguments]) == 0
    assert asked == [{"language": "python", "requirements": ["x"]}]


def test_who_wants_it_quiet_hears_of_errors_only(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert pip_command.main(["install", "-q", "pytest"]) == 0
    assert capsys.readouterr() == ("", "")
    assert pip_command.main(["install", "-qq"]) == 1
    assert capsys.readouterr().err
    assert not asked


def test_names_between_options_are_names(asked: list[dict[str, Any]]) -> None:
    assert pip_command.main(["install", "x", "-U", "y", "-q"]) == 0
    assert asked[0]["requirements"] == ["x", "y"]


def test_markers_are_held_against_this_python(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ['x[a]==1 ; python_version >= "3.8"', "y; sys_platform == 'win32'"]
    assert pip_command.main(["install", *wanted]) == 0
    assert asked[0]["requirements"] == ["x[a]==1"]
    assert "Ignoring y" in capsys.readouterr().out


def test_files_name_further_files_and_lines_go_on(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x \\\n  ==1\n-r more/b.txt\n", encoding="utf-8")
    (tmp_path / "more").mkdir()
    # Two that name each other end all the same.
    (tmp_path / "more/b.txt").write_text("--requirement=../a.txt\ny\n", encoding="utf-8")
    assert pip_command.main(["install", "-r", str(tmp_path / "a.txt")]) == 0
    assert [one.replace(" ", "") for one in asked[0]["requirements"]] == ["x==1", "y"]


def test_a_hash_that_nobody_would_compare_is_refused(
    asked: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("x==1 \\\n    --hash=sha256:00\n", encoding="utf-8")
    assert (pip_command.main(["install", "-r", str(tmp_path / "a.txt")]), asked) == (1, [])
    assert "hashes are not compared here" in capsys.readouterr().err


def test_what_installs_packages_elsewhere_is_there_already(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (pip_command.main(["install", "-U", "pip", "setuptools", "wheel"]), asked) == (0, [])
    assert "already satisfied: wheel" in capsys.readouterr().out
    assert pip_command.main(["install", "pip", "x"]) == 0
    assert asked[0]["requirements"] == ["x"]


def test_a_list_is_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert pip_command.main(["list", "--format=json"]) == 0
    assert "pytest" in {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert pip_command.main(["list", "--outdated"]) == 1
    assert "nothing reaches a package index" in capsys.readouterr().err


def test_what_is_broken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    needs = 'Requires-Dist: no-such-zz\nRequires-Dist: pytest<1\nRequires-Dist: other-zz; extra == "more"\n'
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n{needs}", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert pip_command.main(["check"]) == 1
    said = capsys.readouterr().out
    assert "broken 1.0 requires no-such-zz, which is not installed." in said
    assert "broken 1.0 has requirement pytest<1, but you have" in said
    assert "other-zz" not in said
