"""`pip` inside: what it asks for, what it says, and how it exits."""

from __future__ import annotations

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
    assert pip_command.main(["install", "-q", "--upgrade", "x", "y>=2"]) == 0
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
