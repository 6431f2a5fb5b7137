"""What is sent for every operation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.client import _requests
from workbench.client._requests import Request, Said
from workbench.client.values import UNCHANGED
from workbench.errors import InvalidRequest
from workbench.model.records import CellKind


def body(request: Request[Any]) -> Any:
    assert request.body is not None
    return json.loads(request.body)


def created(**given: Any) -> Request[Any]:
    return _requests.create_session(
        given.pop("user_id", "user_123"),
        **({"sandbox": None, "workbench": None, "id": None, "eager": False} | given),
    )


def changed(**given: Any) -> Request[Any]:
    unchanged = {"sandbox_size": None, "snapshots": None, "freeze_after_s": UNCHANGED, "end_after_s": UNCHANGED}
    return _requests.change_session("ses-1", **(unchanged | given))


def test_only_what_was_given_is_sent() -> None:
    request = created(sandbox={"sandbox_size": "medium"})
    assert (request.method, request.path) == ("POST", "/v1/sessions")
    assert body(request) == {"user_id": "user_123", "eager": False, "sandbox": {"sandbox_size": "medium"}}
    assert body(created(id="mine")) == {"user_id": "user_123", "eager": False, "id": "mine"}


def test_workbench_is_another_name_for_sandbox() -> None:
    options = {"env": {"A": "1"}, "idle": {"freeze_after_s": 0, "end_after_s": None}}
    assert body(created(workbench=options)) == body(created(sandbox=options))


def test_both_names_at_once_are_an_error() -> None:
    with pytest.raises(InvalidRequest, match="two names for the same"):
        created(sandbox={}, workbench={})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sandbox_sise": "medium"}, r"no such option of sandbox: 'sandbox_sise'; did you mean 'sandbox_size'\?"),
        ({"zzz": 1}, "no such option of sandbox: 'zzz'; there are: sandbox_size, env, start_up"),
        ({"idle": {"freeze_after": 1}}, r"no such option of sandbox\['idle'\].*did you mean 'freeze_after_s'\?"),
        ({"sandbox_size": "huge"}, r"sandbox.sandbox_size: Input should be 'standard', 'medium'"),
        ({"env": {"A": 1}}, "sandbox.env.A: Input should be a valid string"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_sent(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        created(sandbox=options)


def test_every_cell_and_command_carries_a_key_of_its_own() -> None:
    requests = [_requests.run_cell("ses-1", "1", Said(), mode="await", store_history=True) for _ in range(2)]
    requests += [_requests.run_command("ses-1", "ls", Said(), mode="await", cwd="/tmp") for _ in range(2)]
    keys = [request.headers["Idempotency-Key"] for request in requests]
    assert len(set(keys)) == 4
    assert all(request.again for request in requests)


def test_a_key_of_the_callers_is_sent_as_it_is() -> None:
    said = Said(idempotency_key="order 66", thought="count", current_step="MAILS", current_step_metric="10/100 emails")
    request = _requests.run_cell("ses-1", "1", said, mode="detach", store_history=False)
    assert request.headers["Idempotency-Key"] == "order 66"
    assert body(request) == {
        "code": "1",
        "store_history": False,
        "limit_s": 180.0,
        "mode": "detach",
        "thought": "count",
        "current_step": "MAILS",
        "current_step_metric": "10/100 emails",
    }


@pytest.mark.parametrize("key", ["", "a\nb", "ü", "x" * 201])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="idempotency_key must be"):
        _requests.run_cell("ses-1", "1", Said(idempotency_key=key), mode="await", store_history=True)


@pytest.mark.parametrize(("limit_s", "code"), [(0.0, "1"), (float("inf"), "1"), (float("nan"), "1"), (1.0, "\ud800")])
def test_what_cannot_be_sent_is_an_invalid_request(limit_s: float, code: str) -> None:
    with pytest.raises(InvalidRequest):
        _requests.run_cell("ses-1", code, Said(limit_s=limit_s), mode="await", store_history=True)


@pytest.mark.parametrize(
    ("name", "part"),
    [("../keys", "..%2Fkeys"), ("..", "%2E%2E"), (".", "%2E"), ("a?b#c", "a%3Fb%23c"), ("me@x.org", "me%40x.org")],
)
def test_a_name_stays_one_part_of_the_address(name: str, part: str) -> None:
    assert _requests.get_session(name).path == f"/v1/sessions/{part}"
    assert _requests.delete_user(name).path == f"/v1/users/{part}"
    assert _requests.revoke_key(name).path == f"/v1/keys/{part}"
    assert _requests.get_cell("ses-1", CellKind.COMMAND, name).path == f"/v1/sessions/ses-1/commands/{part}"


def test_an_empty_name_does_not_become_the_address_of_something_else() -> None:
    with pytest.raises(InvalidRequest, match="may not be empty"):
        _requests.delete_session("")


def test_a_change_says_what_changes_and_null_is_a_value_for_times() -> None:
    assert body(changed(sandbox_size="large")) == {"sandbox": {"sandbox_size": "large"}}
    assert body(changed(snapshots=False)) == {"sandbox": {"snapshots": False}}
    assert body(changed(freeze_after_s=None)) == {"sandbox": {"idle": {"freeze_after_s": None}}}
    with pytest.raises(InvalidRequest, match="nothing to change"):
        changed()


def test_a_branch_sends_copy_by_its_name() -> None:
    assert body(_requests.branch("ses-1", copy=True, id="other")) == {"copy": True, "id": "other"}
    assert body(_requests.branch("ses-1", copy=False, id=None)) == {"copy": False}


def test_only_what_is_safe_to_repeat_is_repeated() -> None:
    said = Said()
    safe = [
        _requests.get_session("s"),
        _requests.list_sessions(None, None),
        _requests.run_cell("s", "1", said, mode="await", store_history=True),
        _requests.stop_cell("s", CellKind.CELL, "c"),
        _requests.keep_alive("s"),
        changed(snapshots=True),
    ]
    unsafe = [
        created(),
        _requests.restart("s"),
        _requests.undo("s", 1),
        _requests.interrupt("s"),
        _requests.branch("s", copy=False, id=None),
        _requests.create_key("", ["sessions"], None),
        _requests.create_token("s", 60),
        _requests.rotate_key("k", 60),
    ]
    assert all(request.again for request in safe)
    assert not any(request.again for request in unsafe)


def test_a_page_asks_for_what_it_was_told() -> None:
    assert _requests.list_sessions("u&x", "c").query == {"user_id": "u&x", "cursor": "c", "limit": "100"}
    assert _requests.list_sessions(None, None).query == {"limit": "100"}
