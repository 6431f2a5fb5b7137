"""What a workbench does, through every door there is: none of them decides anything."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.doors.door import Door, Lying, Refused, Said, WholeDoor, refusal
from tests.doors.names import whole
from tests.host.support import eventually

pytestmark = pytest.mark.timeout(180)

SLEEP = "import time\nprint('asleep', flush=True)\ntime.sleep(600)"


def is_refused(problem: Refused, code: str) -> bool:
    """The command line and MCP have no codes, but the same words; tests/doors/test_same_answers.py compares those."""
    return problem.code in (code, None)


def test_state_stays_from_call_to_call(door: Door, session: str) -> None:
    first = door.run(session, "x = 40")
    assert (first.outcome, first.added, first.state) == ("ok", ("x",), "intact")
    second = door.run(session, "x += 2\nx")
    assert (second.results, second.rebound, second.epoch) == ("42", ("x",), first.epoch)


def test_a_value_and_what_was_printed_are_told_apart(door: Door, session: str) -> None:
    ran = door.run(session, "import sys\nprint('out', end='')\nprint('err', file=sys.stderr)\n[1, 'ü']")
    assert (ran.outcome, ran.stdout, ran.stderr, ran.results) == ("ok", "out", "err\n", "[1, 'ü']")


def test_an_exception_is_a_result(door: Door, session: str) -> None:
    ran = door.run(session, "print('before')\n1 / 0")
    assert (ran.outcome, ran.error, ran.stdout) == ("raised", "ZeroDivisionError", "before\n")


def test_a_time_limit_is_a_result_and_variables_survive_it(door: Door, session: str) -> None:
    door.run(session, "x = 5")
    ran = door.run(session, SLEEP, Said(limit_s=0.7))
    assert (ran.outcome, ran.stdout) == ("timed out", "asleep\n")
    assert ran.explanation
    assert door.run(session, "x").results == "5"


def test_a_cell_is_interrupted_from_elsewhere(door: Door, session: str, core: WholeDoor) -> None:
    door.run(session, "x = 5")
    with ThreadPoolExecutor(1) as elsewhere:
        running = elsewhere.submit(door.run, session, SLEEP)
        eventually(lambda: core.describe(session).running, "it runs")
        door.interrupt(session)
        ran = running.result(60)
    assert (ran.outcome, ran.state) == ("interrupted", "intact")
    assert door.run(session, "x").results == "5"


def test_a_kernel_that_ends_itself_comes_back_with_its_memory(door: Door, session: str) -> None:
    before = door.run(session, "x = 'kept'")
    lost = door.run(session, "import os\nprint('last words', flush=True)\nos._exit(3)")
    assert (lost.outcome, lost.stdout, lost.state) == ("lost", "last words\n", "restored")
    assert lost.epoch > before.epoch
    after = door.run(session, "x")
    assert (after.results, after.state, after.epoch) == ("'kept'", "intact", lost.epoch)


def test_a_cell_is_undone(door: Door, session: str) -> None:
    before = door.run(session, "x = 1")
    door.run(session, "x = 2")
    assert door.undo(session).epoch > before.epoch
    assert door.run(session, "x").results == "1"


def test_a_branch_has_the_memory_and_goes_its_own_way(door: Door, session: str) -> None:
    door.run(session, "x = [1]")
    name = f"{session}-b"
    assert door.branch(session, name).parent == session
    assert door.run(name, "x.append(2)\nx").results == "[1, 2]"
    assert door.run(session, "x").results == "[1]"
    door.delete(name)
    assert door.run(session, "x").results == "[1]"


def test_variables_are_listed_with_type_and_value(door: Door, session: str) -> None:
    door.run(session, "x, text = 42, 'words'")
    found = {one.name: one for one in door.variables(session)}
    assert set(found) == {"x", "text"}
    assert (found["x"].type, found["x"].preview) == ("int", "42")


def test_a_command_has_an_exit_code_and_both_streams(door: Door, session: str) -> None:
    ran = door.bash(session, "echo out; echo err >&2; exit 3")
    assert (ran.outcome, ran.exit_code, ran.stdout, ran.stderr) == ("raised", 3, "out\n", "err\n")
    assert door.bash(session, "true").exit_code == 0


def test_a_restart_forgets_variables_and_keeps_files(door: Door, session: str) -> None:
    before = door.run(session, "x = 1\nwith open('/mnt/files/kept', 'w') as file: file.write('here')")
    assert before.outcome == "ok"
    assert door.restart(session).epoch > before.epoch
    after = door.run(session, "print(open('/mnt/files/kept').read())\nx")
    assert (after.error, after.stdout) == ("NameError", "here\n")


def test_a_session_that_never_was_is_not_found(door: Door) -> None:
    for call in (door.variables, door.interrupt, door.restart, door.undo, door.delete):
        assert is_refused(refusal(lambda call=call: call("t-nobody")), "not_found"), call  # type: ignore[misc]
    assert is_refused(refusal(lambda: door.branch("t-nobody", "t-nobodys")), "not_found")
    if not door.makes_what_it_runs_in:
        assert is_refused(refusal(lambda: door.run("t-nobody", "1")), "not_found")
        assert is_refused(refusal(lambda: door.bash("t-nobody", "true")), "not_found")


@whole
def test_a_session_that_never_was_has_no_description_and_no_history(door: WholeDoor) -> None:
    for call in (door.describe, door.history):
        assert is_refused(refusal(lambda call=call: call("t-nobody")), "not_found"), call  # type: ignore[misc]


def test_a_deleted_session_is_not_found(door: Door, session: str, maker: WholeDoor) -> None:
    door.run(session, "x = 1")
    door.delete(session)
    assert is_refused(refusal(lambda: maker.describe(session)), "not_found")
    assert is_refused(refusal(lambda: door.variables(session)), "not_found")
    assert is_refused(refusal(lambda: door.delete(session)), "not_found")
    maker.create(session)
    assert door.run(session, "x").error == "NameError"


@whole
def test_a_name_that_is_taken_is_a_conflict(door: WholeDoor, session: str) -> None:
    assert is_refused(refusal(lambda: door.create(session)), "conflict")


def test_a_branch_cannot_have_a_name_that_is_taken(door: Door, session: str) -> None:
    door.run(session, "x = 1")
    assert is_refused(refusal(lambda: door.branch(session, session)), "conflict")
    assert door.run(session, "x").results == "1"


def test_a_limit_that_cannot_be_is_refused_and_nothing_runs(door: Door, session: str) -> None:
    assert is_refused(refusal(lambda: door.run(session, "x = 1", Said(limit_s=1e6))), "invalid_request")
    assert door.variables(session) == ()


@whole
def test_a_limit_of_a_command_that_cannot_be_is_refused_and_nothing_runs(door: WholeDoor, session: str) -> None:
    touch = "touch /mnt/files/ran"
    assert is_refused(refusal(lambda: door.bash(session, touch, Said(limit_s=1e6))), "invalid_request")
    assert door.bash(session, "ls /mnt/files").stdout == ""


@whole
def test_another_size_keeps_the_memory(door: WholeDoor, session: str) -> None:
    before = door.run(session, "x = 1")
    assert door.resize(session, "medium").size == "medium"
    after = door.run(session, "x")
    assert (after.results, after.epoch, after.state) == ("1", before.epoch, "intact")


@whole
def test_the_history_tells_code_thought_and_outcome(door: WholeDoor, session: str) -> None:
    door.run(session, "1 + 1", Said(thought="see", step="adding", metric="1/2 sums"))
    door.run(session, "1 / 0")
    door.bash(session, "exit 4", Said(thought="leave", step="leaving", metric="2/2 sums"))
    told = [(one.kind, one.code, one.thought, one.status, one.outcome) for one in door.history(session)]
    assert told == [
        ("cell", "1 + 1", "see", "ended", "ok"),
        ("cell", "1 / 0", "", "ended", "raised"),
        ("command", "exit 4", "leave", "ended", "raised"),
    ]
    described = door.describe(session)
    assert (described.step, described.metric) == ("leaving", "2/2 sums")


@whole
def test_a_retry_with_the_same_idempotency_key_runs_once(door: WholeDoor, session: str) -> None:
    once = Said(idempotency_key="step-1")
    count = "with open('/mnt/files/count', 'a') as file: file.write('.')"
    first = door.run(session, f"{count}\nimport random\nrandom.random()", once)
    again = door.run(session, f"{count}\nimport random\nrandom.random()", once)
    assert again == first
    beside = door.bash(session, "echo -n : >> /mnt/files/count; echo $RANDOM", Said(idempotency_key="step-2"))
    assert door.bash(session, "echo -n : >> /mnt/files/count; echo $RANDOM", Said(idempotency_key="step-2")) == beside
    assert door.bash(session, "cat /mnt/files/count").stdout == ".:"
    assert is_refused(refusal(lambda: door.run(session, "another", once)), "conflict")


@whole
def test_two_with_the_same_idempotency_key_at_once_run_once(door: WholeDoor, session: str) -> None:
    at_once = threading.Barrier(2)

    def run() -> object:
        at_once.wait(30)
        code = "with open('/mnt/files/count', 'a') as file: file.write('.')\nimport random\nrandom.random()"
        return door.run(session, code, Said(idempotency_key="both"))

    with ThreadPoolExecutor(2) as callers:
        one, other = callers.submit(run), callers.submit(run)
        assert one.result(60) == other.result(60)
    assert door.bash(session, "cat /mnt/files/count").stdout == "."


def test_of_a_long_output_head_and_tail_are_shown_and_the_whole_is_in_a_file(door: Door, session: str) -> None:
    ran = door.run(session, "for number in range(20_000): print(f'line {number}')")
    assert len(ran.stdout) < 50_000
    assert ran.stdout.startswith("line 0\nline 1\n")
    assert ran.stdout.endswith("line 19998\nline 19999\n")
    assert ran.stdout_file is not None
    assert door.bash(session, f"wc -l < {ran.stdout_file}").stdout.strip() == "20000"


def test_a_picture_arrives(door: Door, session: str) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"
    (picture,) = door.run(session, code).displays
    kinds = dict(picture)
    # As a PNG begins, in base64.
    assert kinds["image/png"].startswith("iVBORw0KGgo")


def test_a_table_has_its_rows_and_a_figure_its_data(door: Door, session: str) -> None:
    ran = door.run(session, "import pandas as pd\npd.DataFrame({'n': [1, None]})")
    assert ran.results.split() == ["n", "0", "1.0", "1", "NaN"]
    if "displays" in ran.untold:
        return
    (table,) = map(dict, ran.displays)
    told = {"columns": [{"name": "n", "dtype": "float64"}], "rows": [[1.0], [None]], "shape": [2, 1]}
    assert json.loads(table["application/vnd.workbench.table+json"]) == told
    (figure,) = map(dict, door.run(session, "import matplotlib.pyplot as plt\nplt.bar(['a'], [3]);").displays)
    (series,) = json.loads(figure["application/vnd.workbench.chart+json"])["series"]
    assert (series["type"], series["points"]) == ("bar", [["a", 3.0]])


def test_a_format_that_is_too_large_is_named_with_its_file(door: Door, session: str) -> None:
    code = "display({'text/html': 'h' * 1_000_000, 'text/plain': 'small'}, raw=True)"
    ran = door.run(session, code)
    if "displays" not in ran.untold:
        (shown,) = map(dict, ran.displays)
        assert shown["text/plain"] == "small"
        assert "h" * 100 not in shown.get("text/html", "")
    assert door.bash(session, "wc -c < /mnt/files/outputs/*.html").stdout.strip() == "1000000"


@whole
def test_a_file_goes_in_is_seen_listed_and_comes_out_and_is_deleted(door: WholeDoor, session: str) -> None:
    data = bytes(range(256)) * 5
    assert door.put_file(session, "/mnt/files/data/in.bin", data) == Lying(path="data/in.bin", size=len(data))
    counted = "import os; os.path.getsize('/mnt/files/data/in.bin'), os.path.isdir('/mnt/files/data')"
    assert door.run(session, counted).results == f"({len(data)}, True)"
    door.run(session, "with open('/mnt/files/data/out.txt', 'w') as file: file.write('from inside')")
    assert [one.path for one in door.list_files(session, "data/")] == ["data/in.bin", "data/out.txt"]
    assert door.get_file(session, "data/in.bin") == data
    assert door.get_file(session, "/data/out.txt") == b"from inside"
    assert door.put_file(session, "data/in.bin", b"") == Lying(path="data/in.bin", size=0)
    assert door.delete_file(session, "data") == 2
    assert door.list_files(session) == ()


@whole
def test_a_file_that_is_not_there_is_not_found(door: WholeDoor, session: str) -> None:
    assert is_refused(refusal(lambda: door.get_file(session, "none.txt")), "not_found")
    assert is_refused(refusal(lambda: door.delete_file(session, "none.txt")), "not_found")
    assert is_refused(refusal(lambda: door.put_file(session, "../x", b"x")), "invalid_request")
    assert is_refused(refusal(lambda: door.list_files("t-nobody")), "not_found")
