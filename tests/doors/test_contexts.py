"""Further kernels of a session, through every door: the same files, memories of their own, an end with the session."""

from __future__ import annotations

import pytest
from tests.doors.door import WholeDoor, refusal
from tests.doors.names import whole

pytestmark = [pytest.mark.timeout(180), whole]


def test_a_context_shares_files_and_no_variables(door: WholeDoor, session: str) -> None:
    door.run(session, "x = 1")
    name = f"{session}-c"
    assert door.add_context(session, name, folder="/mnt/files/there").state == "idle"
    assert door.run(name, "x").error == "NameError"
    assert door.run(name, "x = 2\nopen('here', 'w').write('kept')").outcome == "ok"
    assert door.run(session, "x, open('/mnt/files/there/here').read()").results == "(1, 'kept')"
    assert door.bash(name, "cat /mnt/files/there/here").stdout == "kept"
    assert door.run(name, "import os; os.getcwd(), x").results == "('/mnt/files/there', 2)"


def test_one_is_listed_begun_anew_and_removed_without_the_others(door: WholeDoor, session: str) -> None:
    one, two = f"{session}-c1", f"{session}-c2"
    before = door.add_context(session, one).epoch
    door.add_context(session, two)
    for name in (session, one, two):
        door.run(name, f"x = {name!r}")
    assert door.contexts(session) == (one, two)
    assert door.restart_context(session, one).epoch > before
    assert door.run(one, "x").error == "NameError"
    door.remove_context(session, one)
    assert door.contexts(session) == (two,)
    assert refusal(lambda: door.run(one, "1") if not door.makes_what_it_runs_in else door.describe(one))
    assert [door.run(name, "x").results for name in (session, two)] == [f"{session!r}", f"{two!r}"]
    refused = refusal(lambda: door.remove_context(session, one))
    assert refused.code in ("not_found", None)
    assert "has no context" in refused.message


def test_a_context_goes_with_its_session(door: WholeDoor, session: str) -> None:
    name = f"{session}-c"
    door.add_context(session, name)
    door.run(name, "x = 1")
    door.delete(session)
    for gone in (session, name):
        assert refusal(lambda gone=gone: door.describe(gone)).code in ("not_found", None)  # type: ignore[misc]


def test_a_language_that_there_is_not_is_refused_and_leaves_no_context(door: WholeDoor, session: str) -> None:
    refused = refusal(lambda: door.add_context(session, f"{session}-c", runtime="julia"))
    assert "node, python, r. No session was made" in refused.message
    assert door.contexts(session) == ()
