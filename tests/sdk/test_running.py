"""Cells and commands through the SDK, against the real server and real sandboxes."""

from __future__ import annotations

import threading

import pytest

from workbench import Outcome, OutcomeError, Session, Workbench
from workbench.errors import Conflict, InvalidRequest, NotFound


def test_variables_stay_from_one_cell_to_the_next(session: Session) -> None:
    assert session.run("x = 20 + 1").ok
    result = session.run("print('doubled'); x * 2")
    assert result.outcome is Outcome.OK
    assert (result.stdout, result.results, result.text) == ("doubled\n", "42", "doubled\n42")
    assert result.receipt.execution_count == 2
    assert result.raise_for_outcome() is result


def test_code_that_raises_is_a_result_with_what_it_printed(session: Session) -> None:
    result = session.run("print('so far'); 1 / 0")
    assert result.outcome is Outcome.RAISED
    assert result.error is not None
    assert result.error.name == "ZeroDivisionError"
    assert result.stdout == "so far\n"
    with pytest.raises(OutcomeError, match="division by zero"):
        result.raise_for_outcome()


def test_code_past_its_limit_is_a_result_that_says_so(session: Session) -> None:
    result = session.run("print('begun', flush=True)\nwhile True: pass", limit_s=1)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.stdout == "begun\n"
    assert result.explanation


def test_a_figure_comes_as_a_display(session: Session) -> None:
    result = session.run("from IPython.display import display, HTML\ndisplay(HTML('<b>hi</b>'))")
    assert result.displays[0].data["text/html"] == "<b>hi</b>"


def test_a_limit_that_no_cell_can_have_raises_and_nothing_runs(session: Session) -> None:
    with pytest.raises(InvalidRequest):
        session.run("open('/mnt/files/ran', 'w')", limit_s=10**9)
    assert session.bash("ls /mnt/files/ran").exit_code == 2


def test_output_comes_while_the_cell_runs(session: Session) -> None:
    heard: list[str] = []

    def on_output(piece: object) -> None:
        text = getattr(piece, "text", "")
        heard.append(text)
        if "first" in text:
            session.bash("touch /mnt/files/go")

    wait = "while not os.path.exists('/mnt/files/go'): time.sleep(0.01)"
    code = f"import os, time\nprint('first', flush=True)\n{wait}"
    result = session.run(code, on_output=on_output, limit_s=60)
    assert result.ok
    assert "".join(heard).startswith("first\n")


def test_a_stream_has_pieces_and_then_the_result(session: Session) -> None:
    stream = session.stream("for n in range(3): print(n)")
    assert "".join(piece.text for piece in stream) == "0\n1\n2\n"
    assert stream.result.ok
    assert stream.result.stdout == "0\n1\n2\n"


def test_a_detached_cell_is_followed_by_another_client_from_any_offset(wb: Workbench, session: Session) -> None:
    cell = session.start("print('one'); print('two', flush=True); 3")
    assert cell.wait(timeout_s=60).results == "3"
    again = wb.use(session.id).cell(cell.id)
    whole = again.follow()
    assert "".join(piece.text for piece in whole) == "one\ntwo\n"
    behind = again.follow(offset=whole.offset)
    assert list(behind) == []
    assert behind.result.results == "3"


def test_a_detached_cell_is_waited_for_and_stopped(session: Session) -> None:
    cell = session.start("import time; print('begun', flush=True); time.sleep(600)")
    first = next(cell.follow())
    assert first.text.startswith("begun")
    with pytest.raises(TimeoutError):
        cell.wait(timeout_s=0.05)
    assert cell.stop() is True
    assert cell.wait(timeout_s=60).outcome is Outcome.INTERRUPTED
    assert cell.stop() is False


def test_the_same_idempotency_key_runs_once_and_another_request_with_it_is_refused(session: Session) -> None:
    code = "n = globals().get('n', 0) + 1; n"
    first = session.run(code, idempotency_key="only once")
    again = session.run(code, idempotency_key="only once")
    assert (first.results, again.results) == ("1", "1")
    assert first.cell_id == again.cell_id
    with pytest.raises(Conflict):
        session.run("other", idempotency_key="only once")


def test_a_command_has_streams_and_an_exit_code(session: Session) -> None:
    result = session.bash("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert result.outcome is Outcome.RAISED
    assert session.bash("pwd", cwd="/mnt/files").stdout == "/mnt/files\n"


def test_a_detached_command_has_a_handle_too(session: Session) -> None:
    command = session.start_bash("echo begun; sleep 600")
    assert next(command.follow()).text.startswith("begun")
    assert session.command(command.id).stop() is True
    assert command.wait(timeout_s=60).outcome is Outcome.INTERRUPTED


def test_interrupt_ends_what_runs(session: Session) -> None:
    session.run("0")
    assert session.interrupt() is False
    cell = session.start("print('begun', flush=True)\nwhile True: pass")
    next(cell.follow())
    assert session.interrupt() is True
    assert cell.wait(timeout_s=60).outcome is Outcome.INTERRUPTED


def test_threads_share_a_client_and_get_their_own_answers(wb: Workbench) -> None:
    sessions = [wb.create("many") for _ in range(4)]
    found: dict[int, str] = {}

    def ask(n: int) -> None:
        found[n] = sessions[n].run(f"{n} * 100").results

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: str(n * 100) for n in range(4)}
    assert wb.delete_user("many") == 4


def test_a_cell_that_there_is_not_is_not_found(session: Session) -> None:
    with pytest.raises(NotFound):
        session.cell("c-nothing")
