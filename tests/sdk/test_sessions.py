"""Sessions, their state, keys and tokens through the SDK, against the real server."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from workbench import Session, Workbench
from workbench.client.local import LocalServer
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, Unauthenticated


def test_a_session_is_made_with_its_size_and_found_again(wb: Workbench) -> None:
    made = wb.create("user_123", sandbox={"sandbox_size": "medium", "env": {"CITY": "Bern"}})
    assert wb.use(made.id).run("import os; os.environ['CITY']").results == "'Bern'"
    told = made.describe()
    assert (told.user_id, told.sandbox.sandbox_size, told.sandbox.env_names) == ("user_123", "medium", ["CITY"])
    assert made.id in [found.id for found in wb.sessions("user_123")]
    made.delete()
    with pytest.raises(NotFound):
        wb.use(made.id)
    with pytest.raises(NotFound):
        made.run("1")


def test_workbench_is_accepted_for_sandbox(wb: Workbench) -> None:
    made = wb.create(user_id="user_123", workbench={"sandbox_size": "large"}, id="by-name")
    assert made.id == "by-name"
    assert made.describe().sandbox.sandbox_size == "large"
    with pytest.raises(Conflict):
        wb.create(id="by-name")
    made.delete()


def test_an_eager_session_has_run_its_start_up_code(wb: Workbench) -> None:
    made = wb.create(sandbox={"start_up": "ready = True"}, eager=True)
    assert [variable.name for variable in made.variables()] == ["ready"]
    made.delete()


def test_a_session_changes_in_place(session: Session) -> None:
    session.run("kept = 1")
    told = session.change(sandbox_size="medium", freeze_after_s=60)
    assert told.sandbox.sandbox_size == "medium"
    told = session.change(end_after_s=0)
    assert (told.sandbox.idle.freeze_after_s, told.sandbox.idle.end_after_s) == (60, 0)
    told = session.change(freeze_after_s=None)
    assert (told.sandbox.idle.freeze_after_s, told.sandbox.idle.end_after_s) == (None, 0)
    assert session.run("kept").results == "1"
    with pytest.raises(InvalidRequest):
        session.change()


def test_undo_and_restart_and_what_is_left(session: Session) -> None:
    session.run("x = 1")
    session.run("del x")
    assert session.undo().session.id == session.id
    assert session.run("x").results == "1"
    session.restart()
    assert session.run("'x' in globals()").results == "False"


def test_a_branch_has_the_same_memory_and_goes_its_own_way(session: Session) -> None:
    session.run("x = [1]")
    with_me, copied = session.branch(), session.branch(copy=True, id="my-copy")
    assert with_me.branched is not None
    assert copied.branched is not None
    assert copied.branched.carried == ["x"]
    with_me.run("x.append(2)")
    copied.run("x.append(3)")
    assert [one.run("x").results for one in (session, with_me, copied)] == ["[1]", "[1, 2]", "[1, 3]"]
    with_me.delete()
    copied.delete()


def test_variables_and_processes_are_listed(session: Session) -> None:
    session.run("import subprocess; table = list(range(5)); child = subprocess.Popen(['sleep', '600'])")
    names = {variable.name: variable for variable in session.variables()}
    assert names["table"].type == "list"
    assert any("sleep 600" in process.command for process in session.processes())


def test_history_has_everything_and_exports_as_a_valid_notebook(session: Session, tmp_path: Path) -> None:
    session.run("1 + 1", thought="add", current_step="ADDING", current_step_metric="1/2 sums")
    session.bash("echo hi")
    records = list(session.history())
    assert [record.code for record in records] == ["1 + 1", "echo hi"]
    assert (records[0].thought, records[0].current_step_metric) == ("add", "1/2 sums")
    assert [record.code for record in session.history(newest_first=True)] == ["echo hi", "1 + 1"]
    assert session.describe().progress.current_step == "ADDING"
    saved = session.save_notebook(tmp_path / "out.ipynb")
    notebook = nbformat.reads(saved.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert json.loads(saved.read_text(encoding="utf-8")) == session.notebook()


def test_a_token_opens_its_session_and_nothing_else(server: LocalServer, wb: Workbench, session: Session) -> None:
    other = wb.create("user_456")
    token = session.token(lifetime_s=600)
    with Workbench(server.url, token.token) as guest:
        assert guest.use(session.id).run("7 * 6").results == "42"
        with pytest.raises((NotFound, Denied)):
            guest.use(other.id)
        with pytest.raises(Denied):
            guest.keys.list()
        wb.keys.revoke(token.id)
        with pytest.raises(Unauthenticated):
            guest.use(session.id)
    other.delete()


def test_keys_are_made_listed_rotated_and_revoked(server: LocalServer, wb: Workbench) -> None:
    made = wb.keys.create("for a test", scopes=["sessions"], lifetime_s=3600)
    with Workbench(server.url, made.key) as other:
        session = other.create("keyed")
        with pytest.raises(Denied):
            other.keys.list()
        rotated = wb.keys.rotate(made.id, overlap_s=0)
    with Workbench(server.url, rotated.key) as other:
        assert other.use(session.id).user_id == "keyed"
    assert wb.keys.revoke(rotated.id).revoked_at
    assert {made.id, rotated.id} <= {key.id for key in wb.keys.list()}
    assert "key.revoke" in {entry.action for entry in wb.audit()}
    assert wb.delete_user("keyed") == 1


def test_keep_alive_counts_as_use(session: Session) -> None:
    before = session.describe().used_at
    session.keep_alive()
    assert session.describe().used_at >= before


def test_a_user_whose_name_is_unusual_is_deleted_and_nobody_else(wb: Workbench) -> None:
    names = ["a/b", "..", "me@example.org", "ü?#%"]
    for name in names:
        wb.create(name)
    for name in names:
        assert wb.delete_user(name) == 1
