"""The settings file of toolkits: what it takes, where secrets come from, and what it says of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import InvalidRequest
from workbench.toolkits.settings_file import read_file

_ENVIRON = {"TOKEN": "canary-token"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toolkits.toml"


def test_each_table_is_a_toolkit_for_all_or_for_the_projects_it_names(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary-file\n", encoding="utf-8")
    file.write_text(
        f"""
        [toolkits.far]
        url = "https://example.com/mcp"
        bearer = {{ env = "TOKEN" }}
        headers = {{ X-Key = {{ file = "{tmp_path / "secret"}" }}, X-Plain = "value" }}

        [toolkits.files]
        command = ["run", "/srv"]
        projects = ["one", "two"]
        """,
        encoding="utf-8",
    )
    far, one, two = read_file(file, _ENVIRON)
    assert (far.slug, far.project, far.from_file) == ("far", None, True)
    assert {name: secret.reveal() for name, secret in far.secrets.items()} == {
        "bearer": "canary-token",
        "headers.X-Key": "canary-file",
        "headers.X-Plain": "value",
    }
    assert [(kit.slug, kit.project) for kit in (one, two)] == [("files", "one"), ("files", "two")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[toolkits.a", "is no TOML"),
        ("[kits.a]\nurl = 'x'", "it has 'kits', and takes tables like [toolkits.name]"),
        ("[toolkits]\na = 1", "a: it has to be a table: [toolkits.a]"),
        ("[toolkits.a]\nulr = 'x'", "a: a toolkit comes from one of"),
        ("[toolkits.a]\nurl = 'x'\nprojects = 'all'", "a: `projects` has to be a list of names"),
        ("[toolkits.a]\nurl = 'x'\nbearer = { env = 'NONE' }", "a: `bearer` is to come from the variable NONE"),
        ("[toolkits.a]\nurl = 'x'\nbearer = { file = '/no/such' }", "cannot be read: No such file"),
    ],
)
def test_a_mistake_is_told_with_its_place(file: Path, text: str, words: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidRequest) as caught:
        read_file(file, _ENVIRON)
    assert words in caught.value.message
    assert str(file) in caught.value.message


def test_a_file_that_is_not_there_or_no_text_says_so(file: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_file(file, _ENVIRON)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="is no TOML"):
        read_file(file, _ENVIRON)
