"""`workbench keys`, `audit` and `users` as the owner of a data folder meets them; none of them needs a host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.host.conftest import settings
from tests.host.support import output_of, workbench

from workbench.settings import Settings

__all__ = ["settings"]


def run(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    return output_of(workbench(settings, *arguments))


def told(settings: Settings, *arguments: str) -> Any:
    code, out, err = run(settings, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_key_is_made_shown_once_listed_rotated_and_revoked(settings: Settings) -> None:
    code, out, err = run(settings, "keys", "create", "--label", "the agent", "--scope", "admin", "--expires", "30d")
    assert code == 0
    assert out.startswith("wbk_")
    assert out.count("\n") == 1
    assert "shown this once" in err
    name = out.split("_")[1]
    code, listed, _ = run(settings, "keys", "list")
    assert (code, "the agent" in listed, name in listed) == (0, True, True)
    assert out.strip().split("_", 2)[2] not in listed
    new = told(settings, "keys", "rotate", name, "--overlap", "1h")
    assert (new["label"], new["scopes"]) == ("the agent", ["admin"])
    old = next(key for key in told(settings, "keys", "list") if key["id"] == name)
    assert old["replaced_by"] == new["id"]
    assert run(settings, "keys", "revoke", new["key"]) == (0, f"{new['id']} is revoked\n", "")
    assert next(key for key in told(settings, "keys", "list") if key["id"] == new["id"])["revoked_at"]
    actions = [entry["action"] for entry in told(settings, "audit")]
    assert actions == ["key.revoke", "key.rotate", "key.create"]
    assert "owner" in run(settings, "audit")[1]


def test_keys_of_one_project_can_be_listed_alone(settings: Settings) -> None:
    run(settings, "keys", "create", "--project", "billing")
    run(settings, "keys", "create")
    assert [key["project"] for key in told(settings, "keys", "list", "--project", "billing")] == ["billing"]
    assert len(told(settings, "keys", "list")) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("keys", "revoke", "nobody"), 125, "workbench keys list"),
        (("keys", "rotate", "nobody"), 125, "workbench keys list"),
        (("keys", "token", "nobody"), 125, "nobody"),
        (("keys", "create", "--expires", "soon"), 2, "write 90s, 15m, 24h or 30d"),
        (("keys", "create", "--scope", "everything"), 2, "admin"),
        (("keys", "create", "--project", "No Name"), 125, "not a project id"),
    ],
)
def test_what_cannot_be_is_refused_with_the_next_step(
    settings: Settings, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found, out, err = run(settings, *arguments)
    assert (found, out) == (code, "")
    assert words in err


def test_a_token_is_made_for_a_session(settings: Settings) -> None:
    assert run(settings, "sessions", "create", "mine")[0] == 0
    token = told(settings, "keys", "token", "mine", "--expires", "15m")
    assert token["key"].startswith("wbt_")
    assert token["session"] == "mine"
    assert token["expires_at"]
    assert run(settings, "keys", "revoke", token["id"])[0] == 0


def test_deleting_a_user_deletes_what_is_theirs_and_nothing_else(settings: Settings) -> None:
    assert run(settings, "exec", "-s", "mine", "open('/mnt/files/x', 'w').write('kept')")[0] == 0
    assert run(settings, "users", "rm", "somebody")[1].startswith("0 sessions deleted")
    assert [one["session"] for one in told(settings, "sessions", "ls")] == ["mine"]
    assert run(settings, "users", "rm", "local")[1].startswith("1 session deleted")
    assert told(settings, "sessions", "ls") == []
    assert list((settings.data_dir / "files").iterdir()) == []
    entry = told(settings, "audit")[0]
    assert (entry["action"], entry["user"]) == ("user.delete", "")


def test_what_the_owner_does_to_sessions_is_written_down(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "1")
    run(settings, "sessions", "tier", "mine", "medium")
    run(settings, "sessions", "idle", "mine", "--end-after", "never")
    run(settings, "sessions", "rm", "mine")
    run(settings, "sessions", "rm", "mine")
    entries = [(entry["action"], entry["session"], entry["outcome"]) for entry in told(settings, "audit")]
    assert entries == [
        ("session.delete", "mine", "not_found"),
        ("session.delete", "mine", "ok"),
        ("session.change", "mine", "ok"),
        ("session.change", "mine", "ok"),
        ("session.create", "mine", "ok"),
    ]
