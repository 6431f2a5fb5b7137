"""Every error has a status, and is told in one shape."""

from __future__ import annotations

import pytest

from workbench import errors
from workbench.model import records
from workbench.wire.problems import STATUS, kept_problem, problem_of, status_of


@pytest.mark.parametrize("kind", list(errors.leaves()), ids=lambda kind: kind.code)
def test_every_error_that_may_be_raised_has_a_status(kind: type[errors.WorkbenchError]) -> None:
    assert kind in STATUS, f"say in wire/problems.py how {kind.__name__} is answered"


@pytest.mark.parametrize("kind", list(errors.leaves()), ids=lambda kind: kind.code)
def test_only_what_is_the_callers_fault_is_told_as_such(kind: type[errors.WorkbenchError]) -> None:
    # A wrong setting is the fault of whoever set it, not of who asks.
    callers = issubclass(kind, errors.CallerError) and kind is not errors.InvalidSetting
    assert (status_of(kind("x")) < 500) is callers


def test_an_error_of_a_newer_host_is_told_with_its_own_code_in_the_context() -> None:
    problem = errors.from_wire("brand_new", "something else", {})
    assert status_of(problem) == 503
    assert problem_of(problem).context == {"code": "brand_new"}


def test_a_problem_says_everything_that_the_error_knows() -> None:
    told = problem_of(errors.HostUnavailable("no host; start one", {"host": "h-1"}), "req-1")
    assert told.model_dump() == {
        "code": "host_unavailable",
        "message": "no host; start one",
        "context": {"host": "h-1"},
        "retryable": True,
        "request_id": "req-1",
    }


def test_a_problem_that_was_written_down_is_told_like_a_fresh_one() -> None:
    kept = records.Problem.of(errors.KernelUnavailable("no kernel", {"kernel": "main"}))
    assert kept_problem(kept) == problem_of(errors.KernelUnavailable("no kernel", {"kernel": "main"}))
