"""Sessions, their state, their keys and their ends over HTTP."""

from __future__ import annotations

import secrets

import httpx2
import nbformat
from tests.host.support import eventually
from tests.server.running import Running, make_key, problem_of

from workbench.model.access import Scope


def run(client: httpx2.Client, session: str, code: str, **more: object) -> httpx2.Response:
    return client.post(f"/v1/sessions/{session}/cells", json={"code": code, **more})


def test_a_session_is_made_shown_changed_and_deleted(client: httpx2.Client) -> None:
    name = f"t-{secrets.token_hex(4)}"
    sandbox = {"sandbox_size": "medium", "env": {"WHO": "a secret"}, "idle": {"freeze_after_s": 60, "end_after_s": 0}}
    made = client.post("/v1/sessions", json={"id": name, "user_id": "user/1", "workbench": sandbox})
    assert (made.status_code, made.headers["location"]) == (201, f"/v1/sessions/{name}")
    told = made.json()
    assert (told["id"], told["user_id"], told["state"], told["project"]) == (name, "user/1", "cold", "default")
    assert told["sandbox"]["env_names"] == ["WHO"]
    assert "a secret" not in made.text
    assert told["sandbox"]["idle"] == {"freeze_after_s": 60, "end_after_s": 0}
    change = {"sandbox": {"sandbox_size": "standard", "snapshots": False, "idle": {"end_after_s": 7200}}}
    changed = client.patch(f"/v1/sessions/{name}", json=change).json()["sandbox"]
    assert (changed["sandbox_size"], changed["snapshots"]) == ("standard", False)
    # What is left out stays; null is the server's own.
    assert changed["idle"] == {"freeze_after_s": 60, "end_after_s": 7200}
    changed = client.patch(f"/v1/sessions/{name}", json={"workbench": {"idle": {"freeze_after_s": None}}}).json()
    assert changed["sandbox"]["idle"] == {"freeze_after_s": None, "end_after_s": 7200}
    taken = client.post("/v1/sessions", json={"id": name})
    assert (taken.status_code, problem_of(taken)["code"]) == (409, "conflict")
    assert client.post(f"/v1/sessions/{name}/keep-alive").status_code == 204
    gone = client.delete(f"/v1/sessions/{name}")
    assert (gone.status_code, gone.content) == (204, b"")


def test_sessions_are_listed_in_pages_by_user(client: httpx2.Client) -> None:
    user = f"u-{secrets.token_hex(4)}"
    names = sorted(client.post("/v1/sessions", json={"user_id": user}).json()["id"] for _ in range(3))
    first = client.get("/v1/sessions", params={"user_id": user, "limit": 2}).json()
    assert [one["id"] for one in first["items"]] == names[:2]
    rest = client.get("/v1/sessions", params={"user_id": user, "limit": 2, "cursor": first["next_cursor"]}).json()
    assert ([one["id"] for one in rest["items"]], rest["next_cursor"]) == (names[2:], None)
    everybody = client.get("/v1/sessions", params={"limit": 1000}).json()["items"]
    assert set(names) <= {one["id"] for one in everybody}
    deleted = client.delete(f"/v1/users/{user}")
    assert (deleted.status_code, deleted.json()) == (200, {"sessions": 3})
    assert client.get("/v1/sessions", params={"user_id": user}).json()["items"] == []


def test_variables_processes_undo_branch_and_restart(client: httpx2.Client) -> None:
    name = f"t-{secrets.token_hex(4)}"
    told = client.post("/v1/sessions", json={"id": name, "eager": True, "sandbox": {"start_up": "base = 1"}}).json()
    assert told["state"] == "idle"
    run(client, name, "word = 'one'")
    run(client, name, "word = 'two'")
    variables = {one["name"]: one["preview"] for one in client.get(f"/v1/sessions/{name}/variables").json()["items"]}
    assert variables["word"] == "'two'"
    client.post(f"/v1/sessions/{name}/commands", json={"command": "nohup sleep 300 >/dev/null 2>&1 &"})

    def background() -> list[str]:
        return [one["command"] for one in client.get(f"/v1/sessions/{name}/processes").json()["items"]]

    # bash is not yet what it becomes when the command has ended.
    eventually(lambda: "sleep 300" in background(), "the process is listed")
    undone = client.post(f"/v1/sessions/{name}/undo")
    assert (undone.status_code, undone.json()["session"]["epoch"]) == (200, 2)
    assert run(client, name, "word").json()["result"]["results"]["text"] == "'one'"
    branch = client.post(f"/v1/sessions/{name}/branch", json={"id": f"{name}-b"})
    assert (branch.status_code, branch.json()["session"]["shared_with"]) == (201, [name])
    copy = client.post(f"/v1/sessions/{name}/branch", json={"copy": True}).json()
    assert "word" in copy["carried"]
    for one in (f"{name}-b", copy["session"]["id"]):
        assert run(client, one, "word, base").json()["result"]["results"]["text"] == "('one', 1)"
        assert client.delete(f"/v1/sessions/{one}").status_code == 204
    restarted = client.post(f"/v1/sessions/{name}/restart").json()
    assert (restarted["epoch"], restarted["state"]) == (3, "idle")
    too_far = client.post(f"/v1/sessions/{name}/undo", json={"cells": 50})
    assert (too_far.status_code, problem_of(too_far)["code"]) == (409, "conflict")
    assert client.delete(f"/v1/sessions/{name}").status_code == 204


def test_the_history_has_pages_and_exports_as_a_notebook(client: httpx2.Client, session: str) -> None:
    for number in range(3):
        run(client, session, f"print({number})", thought=f"thought {number}")
    first = client.get(f"/v1/sessions/{session}/history", params={"limit": 2}).json()
    assert [one["code"] for one in first["items"]] == ["print(0)", "print(1)"]
    cursor = first["next_cursor"]
    rest = client.get(f"/v1/sessions/{session}/history", params={"limit": 2, "cursor": cursor}).json()
    assert ([one["thought"] for one in rest["items"]], rest["next_cursor"]) == (["thought 2"], None)
    newest = client.get(f"/v1/sessions/{session}/history", params={"limit": 1, "newest_first": "true"}).json()
    assert newest["items"][0]["code"] == "print(2)"
    exported = client.get(f"/v1/sessions/{session}/history.ipynb")
    assert exported.headers["content-type"] == "application/x-ipynb+json"
    assert f'filename="{session}.ipynb"' in exported.headers["content-disposition"]
    notebook = nbformat.reads(exported.text, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert "print(2)" in [cell.source for cell in notebook.cells]


def test_keys_are_made_shown_once_rotated_and_revoked(server: Running, client: httpx2.Client) -> None:
    made = client.post("/v1/keys", json={"label": "for the tests", "scopes": ["sessions"]})
    assert made.status_code == 201
    key = made.json()
    assert key["key"].startswith(f"wbk_{key['id']}_")
    listed = client.get("/v1/keys")
    assert key["id"] in [one["id"] for one in listed.json()["items"]]
    assert key["key"] not in listed.text
    rotated = client.post(f"/v1/keys/{key['id']}/rotate", json={"overlap_s": 600}).json()
    for one in (key, rotated):
        with server.client(one["key"]) as holder:
            assert holder.get("/v1/sessions").status_code == 200
    again = client.post(f"/v1/keys/{key['id']}/rotate")
    assert (again.status_code, problem_of(again)["code"]) == (409, "conflict")
    for one in (key, rotated):
        assert client.delete(f"/v1/keys/{one['id']}").json()["revoked_at"]
        with server.client(one["key"]) as holder:
            assert holder.get("/v1/sessions").status_code == 401
    with server.client(make_key(server.settings, Scope.ADMIN, project="elsewhere").presented) as other:
        assert other.delete(f"/v1/keys/{key['id']}").status_code == 404


def test_the_audit_tells_who_did_what_and_not_what_was_in_it(client: httpx2.Client) -> None:
    user = f"u-{secrets.token_hex(4)}"
    body = {"user_id": user, "sandbox": {"env": {"PASSWORD": "hunter2"}, "start_up": "marker = 1"}}
    name = client.post("/v1/sessions", json=body).json()["id"]
    client.post("/v1/sessions", json={"id": name})
    client.delete(f"/v1/sessions/{name}")
    found = client.get("/v1/audit", params={"limit": 50})
    mine = [one for one in found.json()["items"] if one["session"] == name]
    assert [(one["action"], one["outcome"]) for one in mine] == [
        ("session.delete", "ok"),
        ("session.create", "conflict"),
        ("session.create", "ok"),
    ]
    assert "hunter2" not in found.text
    assert "marker" not in found.text
    earlier = client.get("/v1/audit", params={"before": mine[-1]["at"]}).json()["items"]
    assert all(one["at"] < mine[-1]["at"] for one in earlier)


def test_a_session_without_a_sandbox_runs_nothing_and_has_files(client: httpx2.Client) -> None:
    made = client.post("/v1/sessions", json={"sandbox": {"enable": False}}).json()
    at = f"/v1/sessions/{made['id']}"
    assert made["sandbox"]["enable"] is False
    for path, body in (
        ("cells", {"code": "1"}),
        ("cells", {"code": "1", "mode": "detach"}),
        ("commands", {"command": "ls"}),
        ("restart", None),
        ("branch", {}),
    ):
        problem = problem_of(client.post(f"{at}/{path}", json=body))
        assert (problem["code"], "configured without a sandbox" in problem["message"]) == ("sandbox_off", True)
    link = client.post(f"{at}/mounts/files/upload_url", json={"path": "a.txt"}).json()
    assert httpx2.put(link["url"], content=b"some text", trust_env=False).is_success
    text = client.post(f"{at}/mounts/files/extract_text", json={"path": "a.txt"}).json()
    assert text["text"] == "some text"
    assert client.get(at).json()["state"] == "cold"
    assert client.delete(at).status_code == 204
