"""What a server says when it is ready."""

from __future__ import annotations

import shlex

from workbench.cli.keys import key_id, key_json
from workbench.cli.welcome import first_cell, welcome
from workbench.model.access import Key, NewKey, Scope
from workbench.model.ids import DEFAULT_PROJECT, KeyId

URL = "http://127.0.0.1:8787"
NEW = NewKey(
    key=Key(
        id=KeyId("abc"),
        project=DEFAULT_PROJECT,
        scopes=frozenset({Scope.SESSIONS, Scope.ADMIN}),
        digest="d1gest",
        created_at="2026-01-01T00:00:00.000000Z",
    ),
    presented="wbk_abc_secret",
)


def test_a_new_key_is_shown_and_is_in_the_commands() -> None:
    said = welcome(URL, NEW, with_host=True)
    assert said.count("wbk_abc_secret") == 4
    assert f"ready at {URL}" in said
    assert "Ctrl-C ends the server, the host and all that runs" in said


def test_without_a_new_key_the_commands_take_it_from_the_environment_and_say_how_to_make_one() -> None:
    said = welcome(URL, None, with_host=False)
    assert "keys create --scope admin --scope sessions)" in said
    assert "x-api-key: $KEY" in said
    assert 'OPEN_WORKBENCH_API_KEY="$KEY"' in said
    assert "Ctrl-C ends the server only" in said


def test_the_first_cell_can_be_pasted_into_a_shell() -> None:
    words = [shlex.split(line) for line in first_cell(URL, "wbk_abc_secret")]
    assert words[1] == [
        "curl", "-s", f"{URL}/v1/sessions/first/cells", "-H", "x-api-key: wbk_abc_secret", "--json", '{"code": "6 * 7"}'
    ]  # fmt: skip


def test_a_whole_key_that_is_pasted_where_an_id_is_wanted_is_understood() -> None:
    assert [key_id(text) for text in ("abc", "wbk_abc_se_cret", "wbt_abc_secret")] == ["abc"] * 3


def test_a_key_is_shown_without_what_could_be_used_against_it() -> None:
    told = key_json(NEW.key)
    assert "d1gest" not in str(told)
    assert told["scopes"] == ["admin", "sessions"]
