"""Whatever went wrong, and whichever families are visible, the next step is a call that the caller can make."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, cast

import pytest
from pydantic import ValidationError

from workbench.errors import (
    Conflict,
    Denied,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ServerUnavailable,
    WorkbenchError,
    leaves,
)
from workbench.mcp import guide, making_room
from workbench.mcp.answers import Next
from workbench.mcp.families import Families, Family
from workbench.mcp.server import shown_tools
from workbench.mcp.tool import Tool
from workbench.mcp.visit import Visit
from workbench.model.execution import CellError, CellResult, CommandResult, Outcome, Receipt, Text
from workbench.model.ids import CellId, SessionId
from workbench.model.process import Limit

DEFAULT, OWN = SessionId("mcp-default"), SessionId("own")
RECEIPT = Receipt(epoch=1)
ERRORS = ("OSError: [Errno 28] No space left on device", "FileNotFoundError: no", "ValueError: no")
SAID = (
    "cat: x: No such file or directory",
    "No space left on device",
    f"{making_room.FILES_FULL}: [Errno 28] No space left on device",
    making_room.STILL_OPEN,
    making_room.STILL_HIDDEN,
    "other",
)


def visit(*families: Family, own: bool = False) -> Visit:
    """Somebody who sees these; nothing here asks the core."""
    return Visit(
        bench=cast("Any", None),
        around=cast("Any", None),
        default_session=DEFAULT,
        own_session=OWN if own else None,
        families=frozenset(families),
    )


def cell(outcome: Outcome, raised: str = "", explanation: str = "") -> CellResult:
    name, _, message = raised.partition(": ")
    error = CellError(name=name, message=message, traceback=raised) if raised else None
    return CellResult(cell=CellId("c-1"), outcome=outcome, error=error, explanation=explanation, receipt=RECEIPT)


def command(stderr: str, outcome: Outcome = Outcome.RAISED, explanation: str = "", *limits: Limit) -> CommandResult:
    return CommandResult(
        command=CellId("c-1"),
        outcome=outcome,
        exit_code=1,
        stderr=Text(text=stderr),
        explanation=explanation,
        limits=limits,
        receipt=RECEIPT,
    )


EVERY_FAMILIES = [frozenset(some) for count in (1, 2, 3) for some in combinations(Family, count)]


def every_caller() -> Iterator[tuple[Visit, Tool[Any]]]:
    """Each combination of families, on the common address and on a session's own, with each tool it shows."""
    for families in EVERY_FAMILIES:
        for own in (False, True):
            caller = visit(*families, own=own)
            for tool in shown_tools(families):
                yield caller, tool


def assert_callable(caller: Visit, step: Next) -> None:
    tool = next((one for one in shown_tools(caller.families) if one.name == step.tool), None)
    assert tool is not None, f"{step.tool} is not visible in {sorted(caller.families)}"
    try:
        tool.arguments.model_validate(step.arguments)
    except ValidationError as problem:
        pytest.fail(f"{step}: {problem}")
    named = step.arguments.get("session_id")
    if caller.own_session is not None and tool.family is not Family.WORKBENCH and named is not None:
        assert named in (OWN, "")


def every_result() -> Iterator[CellResult | CommandResult]:
    for outcome in (Outcome.TIMED_OUT, Outcome.INTERRUPTED, Outcome.LOST):
        yield cell(outcome, explanation="what happened")
        yield command("", outcome, "disk full: /mnt/files holds more")
    yield from (cell(Outcome.RAISED, raised) for raised in ERRORS)
    yield from (command(said) for said in SAID)
    yield command("", Outcome.RAISED, "", Limit.DISK)


def test_what_began_and_failed_names_a_tool_that_is_visible_with_arguments_that_it_takes() -> None:
    for caller, tool in every_caller():
        for result in every_result():
            for sent in ("", making_room.MAKE_ROOM):
                session = "gate" if caller.own_session else "some-session"
                step = guide.after_result(caller, tool, session, result, sent)
                assert step is not None
                assert_callable(caller, step)
        assert_callable(caller, guide.after_deletion(caller, tool))


def test_what_was_refused_names_a_tool_that_is_visible_with_arguments_that_it_takes() -> None:
    problems: list[WorkbenchError] = [kind("words") for kind in leaves()]
    problems += [QuotaExceeded("words", {"limit": Limit.PROCESSES}), Conflict("words", {guide.INSTEAD: "heir"})]
    problems += [Conflict("words", {guide.TAKEN: "yes"}), Conflict("words", {guide.TAKEN: "yes", guide.INSTEAD: "one"})]
    for caller, tool in every_caller():
        for problem in problems:
            for given in ({}, {"session_id": ""}, {"session_id": 7, "nonsense": 1}, {**tool.arguments.examples}):
                assert_callable(caller, guide.after_refusal(caller, tool, given, problem))


def test_every_single_step_is_visible_to_whoever_asks_for_it() -> None:
    for caller, tool in every_caller():
        for step in (
            guide.look(caller, tool, ""),
            guide.code(caller, tool, "some", "1"),
            guide.shell(caller, tool, "some", "true"),
            guide.fresh(caller, tool, {}),
        ):
            assert_callable(caller, step)


def tool_named(name: str, families: Families = frozenset(Family)) -> Tool[Any]:
    return next(one for one in shown_tools(families) if one.name == name)


def test_a_success_needs_no_next_step() -> None:
    assert guide.after_result(visit(Family.WORKBENCH), tool_named(guide.BASH_TOOL), "s", cell(Outcome.OK)) is None


def test_files_that_outgrow_their_cap_are_looked_at_and_not_moved_to_where_there_is_no_room() -> None:
    caller, tool = visit(Family.WORKBENCH), tool_named(guide.BASH_TOOL)
    ended = command("", Outcome.LOST, "the sandbox ended: disk full: /mnt/files holds 11 of 10 bytes.")
    written = command("cp: error writing '/mnt/files/x': No space left on device")
    for result in (ended, written, command(making_room.FILES_FULL)):
        step = guide.after_result(caller, tool, "s", result, making_room.MAKE_ROOM)
        assert step is not None
        assert step.arguments["command"] == making_room.WHAT_FILLS_FILES


def test_an_unknown_session_is_the_same_call_without_it_and_a_long_one_is_not_said_again() -> None:
    caller, tool = visit(Family.WORKBENCH), tool_named(guide.WORKBENCH_TOOL)
    given = {"session_id": "gone", "code_to_execute": "1"}
    step = guide.after_refusal(caller, tool, given, NotFound("no"))
    assert step == Next(tool=tool.name, arguments={"code_to_execute": "1"})
    long = guide.after_refusal(caller, tool, {**given, "code_to_execute": "#" * 5000}, NotFound("no"))
    assert long == Next(tool=tool.name, arguments={"code_to_execute": "%whos"})


def test_what_some_file_or_page_says_is_not_taken_for_our_own_words() -> None:
    caller = visit(Family.WORKBENCH)
    raised = cell(Outcome.RAISED, f"ValueError: {making_room.STILL_OPEN} /home/user/x")
    look = guide.after_result(caller, tool_named(guide.WORKBENCH_TOOL), "s", raised, "read_a_page()")
    assert look is not None
    assert look.arguments["code_to_execute"] == "%whos"
    said = command(f"{making_room.STILL_OPEN} /home/user/x")
    tool = tool_named(guide.BASH_TOOL)
    for sent, expected in (("cat page", "%whos"), (making_room.MAKE_ROOM, making_room.CLOSE_FILES)):
        step = guide.after_result(caller, tool, "s", said, sent)
        assert step is not None
        assert step.arguments["code_to_execute"] == expected


def test_arguments_that_cannot_be_used_are_not_said_again_at_length() -> None:
    for caller, tool in every_caller():
        long = dict.fromkeys(tool.arguments.examples, "x" * 200000)
        named = caller.own_session or "s"
        step = guide.after_refusal(caller, tool, {**long, "session_id": named, "nonsense": 1}, InvalidRequest("no"))
        assert len(str(step.arguments)) < 5000
        assert_callable(caller, step)


def test_a_session_that_is_busy_with_something_else_is_asked_again_and_no_other() -> None:
    caller, tool = visit(Family.WORKBENCH, Family.KERNEL), tool_named(guide.WORKBENCH_TOOL)
    given = {"session_id": "branch", "code_to_execute": "1"}
    step = guide.after_refusal(caller, tool, given, Conflict("is being branched; ask again"))
    assert step == Next(tool=tool.name, arguments=given)
    instead = guide.after_refusal(caller, tool, given, Conflict("deleted", {guide.INSTEAD: "heir"}))
    assert instead.arguments["session_id"] == "heir"


def test_a_name_that_is_not_free_leads_to_a_session_that_is_there_or_can_be_made() -> None:
    taken = Conflict("not free", {guide.TAKEN: "yes"})
    tool, given = tool_named(guide.WORKBENCH_TOOL), {"code_to_execute": "1"}
    with_others = guide.after_refusal(visit(Family.WORKBENCH, Family.SANDBOX), tool, given, taken)
    assert with_others == Next(tool=guide.CREATE_SESSION, arguments={})
    with_kernel = guide.after_refusal(visit(Family.WORKBENCH, Family.KERNEL), tool, given, taken)
    assert with_kernel == Next(tool=guide.VARIABLES, arguments={})
    assert guide.is_stuck(visit(Family.WORKBENCH), taken)
    living = Conflict("not free", {guide.TAKEN: "yes", guide.INSTEAD: "mine"})
    assert not guide.is_stuck(visit(Family.WORKBENCH), living)
    step = guide.after_refusal(visit(Family.WORKBENCH), tool, given, living)
    assert step == Next(tool=tool.name, arguments={**given, "session_id": "mine"})


def test_what_may_have_run_is_not_proposed_again() -> None:
    caller, tool = visit(Family.WORKBENCH), tool_named(guide.WORKBENCH_TOOL)
    step = guide.after_refusal(caller, tool, {"code_to_execute": "pay()"}, ServerUnavailable("it goes on"))
    assert step.arguments == {"code_to_execute": "%whos"}


def test_what_the_schema_took_and_the_core_did_not_is_replaced_by_an_example() -> None:
    caller, tool = visit(Family.WORKBENCH), tool_named(guide.WORKBENCH_TOOL)
    given = {"session_id": "s", "code_to_execute": "too long"}
    step = guide.after_refusal(caller, tool, given, InvalidRequest("over 4194304 bytes"))
    assert step.arguments == {"session_id": "s", "code_to_execute": "%whos"}


def test_a_restart_of_an_unknown_session_never_becomes_one_of_another() -> None:
    caller = visit(*Family)
    for name in ("restart_session", "undo_cells", "interrupt_session", "branch_session", "create_context"):
        step = guide.after_refusal(caller, tool_named(name), {"session_id": "gone"}, NotFound("no"))
        assert step == Next(tool="list_variables", arguments={})


def test_on_a_sessions_own_address_other_families_are_given_its_id_and_not_the_word() -> None:
    caller = visit(*Family, own=True)
    step = guide.after_result(caller, tool_named(guide.WORKBENCH_TOOL), "gate", cell(Outcome.RAISED, ERRORS[2]))
    assert step == Next(tool="list_variables", arguments={"session_id": OWN})
    shell = guide.after_result(caller, tool_named(guide.WORKBENCH_TOOL), "gate", cell(Outcome.RAISED, ERRORS[1]))
    assert shell is not None
    assert shell.arguments["session_id"] == "gate"
    refused = guide.after_refusal(caller, tool_named("create_session"), {}, Denied("needs a key"))
    assert refused == Next(tool="list_variables", arguments={"session_id": OWN})
