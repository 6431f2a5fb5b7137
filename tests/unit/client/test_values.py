"""How an end is told."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.client.loopback import cell_body

from workbench.client.values import OutcomeError, Result
from workbench.errors import QuotaExceeded, WorkbenchError
from workbench.model.execution import Outcome
from workbench.wire import rest


def result(kind: str = "cell", **end: Any) -> Result:
    return Result.of(rest.Cell.model_validate(cell_body(kind=kind, **end)))


@pytest.mark.parametrize(
    ("stdout", "value", "text"),
    [("a\n", "1", "a\n1"), ("a", "1", "a\n1"), ("", "1", "1"), ("a\n", "", "a\n"), ("", "", "")],
)
def test_the_text_is_what_was_printed_and_then_the_value(stdout: str, value: str, text: str) -> None:
    assert result(stdout={"text": stdout}, results={"text": value}).text == text


def test_a_good_end_is_itself_and_a_bad_one_raises_with_the_result() -> None:
    good = result()
    assert good.ok
    assert good.raise_for_outcome() is good
    raised = {"name": "ZeroDivisionError", "message": "division by zero", "traceback": "line 1"}
    with pytest.raises(OutcomeError, match="cell cel-1 failed: ZeroDivisionError: division by zero") as problem:
        result(outcome="raised", error=raised, stdout={"text": "so far"}).raise_for_outcome()
    assert problem.value.result.stdout == "so far"
    assert not isinstance(problem.value, WorkbenchError)


def test_a_command_that_failed_says_its_code_and_what_it_complained_of() -> None:
    with pytest.raises(OutcomeError, match="command cel-1 failed: exit code 2: no such file"):
        result(kind="command", outcome="raised", exit_code=2, stderr={"text": "no such file\n"}).raise_for_outcome()


def test_an_end_by_the_clock_says_what_to_do() -> None:
    with pytest.raises(OutcomeError, match="ran out of time: give it a longer limit"):
        result(outcome="timed out", explanation="give it a longer limit").raise_for_outcome()


def test_every_outcome_has_words() -> None:
    for outcome in Outcome:
        assert str(OutcomeError(result(outcome=outcome)))


def test_printing_a_result_shows_also_what_went_wrong() -> None:
    raised = {"name": "E", "message": "m", "traceback": "Traceback: E: m"}
    shown = str(result(outcome="raised", error=raised, stdout={"text": "a\n"}, stderr={"text": "warned\n"}))
    assert shown == "a\nwarned\nTraceback: E: m"


def test_where_the_whole_of_long_output_is() -> None:
    found = result(stdout={"text": "head … tail", "file_path": "/mnt/files/outputs/x.txt"})
    assert found.stdout_file_path == "/mnt/files/outputs/x.txt"


def test_what_never_began_has_no_result() -> None:
    with pytest.raises(QuotaExceeded):
        Result.of(rest.Cell.model_validate(cell_body(status="failed")))


def test_a_result_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result().stdout = "other"  # type: ignore[misc]
