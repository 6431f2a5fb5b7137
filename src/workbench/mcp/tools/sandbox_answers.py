"""What the six tools of the sandbox family have in common: what they say when something is not there, or has died."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, TypeVar

import mcp_types as types
from pydantic import Field, ValidationError

from workbench.contracts.host import gone_reason
from workbench.errors import Conflict, Denied, KernelUnavailable, NotFound, WorkbenchError
from workbench.mcp import guide
from workbench.mcp.answers import OUTCOME_KEY, Answer, Next
from workbench.mcp.choosing import in_its_language, living
from workbench.mcp.tool import Tool, usable
from workbench.mcp.tools.shapes import NEXT, STRING, YES_OR_NO, told
from workbench.mcp.visit import Visit
from workbench.mcp.wording import explained, for_agents, goes_on, may_have_begun
from workbench.model.execution import CellResult, CommandResult, Receipt
from workbench.model.process import Limit

MOST_TIMEOUT_S = 300
DIED = "CONTAINER_DIED"
HINTS = types.ToolAnnotations(destructive_hint=True, open_world_hint=True, read_only_hint=False, idempotent_hint=False)
OPTIONAL_STRING: dict[str, Any] = {"type": ["string", "null"]}
SESSION_ID = Field(min_length=1, max_length=200, description="The session: `session_id` from create_session.")
_SIGNAL = re.compile(r"killed by signal (\d+)")
_SEGFAULT = "11"
R = TypeVar("R")


def answered(properties: dict[str, Any]) -> dict[str, Any]:
    """An output schema that takes a failure as well: of all fields only `success` is always there."""
    everywhere = {
        "success": told(YES_OR_NO, "Whether all of it was done."),
        "error": told(OPTIONAL_STRING, f"What went wrong; begins with {DIED} if the sandbox or its kernel ended."),
        "hint": told(STRING, "What became of the state, and what to do."),
        "sessions": told({"type": "array", "items": STRING}, "If the session is not there: those that are."),
        "next": NEXT,
    }
    return {"type": "object", "properties": {**everywhere, **properties}, "required": ["success"]}


async def refused(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Answer:
    """For what never began; or began, or may have, when nobody could wait for its end."""
    failure: dict[str, Any] = {"success": False, "error": words(problem)}
    if isinstance(problem, NotFound | Conflict):
        failure["sessions"] = await living(visit)
    step = _step(visit, tool, given, problem)
    step = await in_its_language(visit, tool, str(given.get("session_id") or ""), step) or step
    failure["hint"] = _hint(visit, tool, problem, step, failure.get("sessions", []))
    cell = goes_on(problem)
    return Answer(
        structured=failure, next=step, never_began=not cell, meta={OUTCOME_KEY: {"cell": cell}} if cell else {}
    )


def words(problem: WorkbenchError) -> str:
    """The error in a line."""
    if (reason := gone_reason(problem)) is not None:
        return died(explained(reason))
    return for_agents(problem)


def died(reason: str, limits: tuple[Limit, ...] = ()) -> str:
    """That the sandbox, or the kernel in it, ended; first in the words that callers look for, then in ours."""
    killed = _SIGNAL.search(reason)
    short = ""
    if Limit.MEMORY in limits or "out of memory" in reason:
        short = "out of memory"
    elif Limit.PROCESSES in limits or Limit.PROCESSES in reason:
        short = "fork bomb"
    elif killed is not None:
        short = "segfault" if killed[1] == _SEGFAULT else f"killed by signal {killed[1]}"
    return f"{DIED}: {short}: {reason}" if short else f"{DIED}: {reason}"


def died_in(result: CellResult | CommandResult) -> str:
    """The same for something that began, and was lost."""
    return died(explained(result.receipt.reason or result.explanation), result.limits)


def _hint(visit: Visit, tool: Tool[Any], problem: WorkbenchError, step: Next, sessions: list[str]) -> str:
    """What became of the state, and what `next` is."""
    if goes_on(problem):
        return "It goes on in the session; `next` looks there. Do not run it again before you know what it did."
    if may_have_begun(problem):
        return "Whether it ran is unknown: look first, as `next` does, before you run it again."
    if gone_reason(problem) is not None:
        return "Nothing more ran. The next call gets a new sandbox; of files, those under /mnt/files are kept."
    if isinstance(problem, Denied):
        return "Nothing was changed."
    if isinstance(problem, NotFound | Conflict) and visit.own_session is not None:
        return "Nothing ran. This address is for one session only."
    if step.tool == guide.CREATE_SESSION and tool.name != guide.CREATE_SESSION:
        known = "Use one of `sessions`, or make one" if sessions else "Make a session"
        return f"Nothing ran, and no session was made. {known} with create_session, and name it to {tool.name}."
    if step.tool == tool.name:
        return f"Nothing ran: {tool.name} can be called as `next` has it."
    return f"Nothing ran. `next` shows what is there; then call {tool.name} again."


def _step(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Next:
    timeout = given.get("timeout")
    if isinstance(timeout, int | float) and timeout > MOST_TIMEOUT_S:
        given = {**given, "timeout": MOST_TIMEOUT_S}
        if is_callable(tool, corrected := usable(tool, given)):
            return guide.again(visit, tool, str(given.get("session_id")), corrected)
    if tool.name == guide.CREATE_SESSION and isinstance(problem, KernelUnavailable | Conflict):
        # Its language is not on this machine, or not that of the address: without one it is Python, or the address's.
        return Next(tool=tool.name, arguments={})
    step = guide.after_refusal(visit, tool, given, problem)
    if step.tool == tool.name and not is_callable(tool, step.arguments):
        # No session was named, and none can be guessed.
        named = {**step.arguments, "session_id": visit.own_session}
        if visit.own_session is not None and is_callable(tool, named):
            return Next(tool=tool.name, arguments=named)
        return Next(tool=guide.CREATE_SESSION, arguments={})
    return step


def is_callable(tool: Tool[Any], arguments: dict[str, Any]) -> bool:
    """Whether the tool takes these."""
    try:
        tool.arguments.model_validate(arguments)
    except ValidationError:
        return False
    return True


def of_memory(receipt: Receipt) -> str:
    """What has become of variables since the call before, if it is not what the caller expects."""
    return f"Memory {receipt.state.value.upper()}: {explained(receipt.reason)}." if receipt.reason else ""


async def finished(visit: Visit, work: Coroutine[Any, Any, R], what: str) -> R:
    """Done to its end also if the caller goes away meanwhile: half of it would be nobody's."""
    task: asyncio.Task[R] = visit.around.keep(work, what)
    await asyncio.wait((task,))
    return task.result()
