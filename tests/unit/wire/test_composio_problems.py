"""Every error has its row in the words of the sessions API."""

from __future__ import annotations

import pytest

from workbench import errors
from workbench.wire.composio_problems import ROWS, api_problem, row_of


@pytest.mark.parametrize("kind", list(errors.leaves()), ids=lambda kind: kind.code)
def test_every_error_that_may_be_raised_has_a_row(kind: type[errors.WorkbenchError]) -> None:
    assert kind in ROWS, f"say in wire/composio_problems.py how {kind.__name__} is answered"


def test_a_slug_has_one_number_and_one_status() -> None:
    told = {
        row.slug: {(other.code, other.status) for other in ROWS.values() if other.slug == row.slug}
        for row in ROWS.values()
    }
    assert all(len(numbers) == 1 for numbers in told.values()), told
    assert len({row.code for row in ROWS.values()}) == len(told)


@pytest.mark.parametrize("kind", list(errors.leaves()), ids=lambda kind: kind.code)
def test_only_what_who_asks_can_help_is_told_as_theirs(kind: type[errors.WorkbenchError]) -> None:
    # What a server was not told of is a bad request there.
    callers = issubclass(kind, errors.CallerError) and kind is not errors.InvalidSetting
    assert (row_of(kind("x")).status < 500) is (callers or kind is errors.NotConfigured)


def test_an_error_of_a_newer_host_is_told_as_one_of_the_server() -> None:
    assert row_of(errors.from_wire("brand_new", "something else", {})).status == 503


def test_a_session_that_is_not_there_is_told_in_the_words_that_clients_know() -> None:
    problem = errors.NotFound("no session 'trs_x'; make one", {"session": "trs_x"})
    assert api_problem(problem, "req-1").model_dump(exclude_none=True) == {
        "error": {
            "message": "Session trs_x not found: no session 'trs_x'; make one",
            "code": 4304,
            "slug": "ToolRouterV2_SessionNotFound",
            "status": 404,
            "request_id": "req-1",
            "suggested_fix": "make one",
        }
    }


def test_a_file_of_a_session_that_is_not_there_is_not_the_session() -> None:
    problem = errors.NotFound("no file", {"session": "trs_x", "path": "a"})
    assert row_of(problem).slug == "HTTP_NotFound"


def test_another_version_of_the_configuration_has_a_number_of_its_own() -> None:
    assert row_of(errors.Conflict("it changed", {"config_version": "3"})).code == 4309
    assert row_of(errors.Conflict("it is ending")).code == 10409


def test_several_mistakes_are_listed_and_one_is_not() -> None:
    problem = errors.InvalidRequest("both")
    assert api_problem(problem, errors=["a: no", "b: no"]).error.errors == ["a: no", "b: no"]
    assert api_problem(problem, errors=["a: no"]).error.errors is None
