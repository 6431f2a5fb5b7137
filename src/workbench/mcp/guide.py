"""The step that gets on after something went wrong, in tools that the caller sees.

Every tool of a family stands for its whole family here, and one of them is always visible: whoever is refused by a tool
sees at least that one.
"""

from __future__ import annotations

from typing import Any

from workbench.errors import (
    Cancelled,
    Conflict,
    Denied,
    InternalError,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    ServerUnavailable,
    WorkbenchError,
)
from workbench.mcp import making_room
from workbench.mcp.answers import Next
from workbench.mcp.families import Family
from workbench.mcp.tool import Tool, usable
from workbench.mcp.visit import Visit
from workbench.model.execution import CellResult, CommandResult, Outcome
from workbench.model.process import Limit

WORKBENCH_TOOL = "COMPOSIO_REMOTE_WORKBENCH"
BASH_TOOL = "COMPOSIO_REMOTE_BASH_TOOL"
EXECUTE_CODE = "execute_code"
EXECUTE_TERMINAL = "execute_terminal"
CREATE_SESSION = "create_session"
VARIABLES = "list_variables"
INTERRUPT = "interrupt_session"

INSTEAD = "instead"
"""in the context of an error: a session that is there, for one that cannot be had"""
TAKEN = "taken"
"""in the context of an error: the default session's name is somebody else's, and no call without a name gets on"""

_LOOK = "%whos"
_WHERE_FILES_ARE = "pwd; ls -la /home/user /mnt/files"
# What is said again in `next` is paid for twice.
_MOST_REPEATED = 4000
_FULL = ("No space left on device", "Errno 28", "Disk quota exceeded", "Errno 122", "disk is full")
# What runs then is interrupted, and far over it the sandbox is ended; the next one may look, and choose what to delete.
_OVER_THE_QUOTA = ("disk full: /mnt/files", "/mnt/files is over its quota")
_MISSING = ("FileNotFoundError", "No such file or directory")


def after_result(
    visit: Visit, tool: Tool[Any], session: str, result: CellResult | CommandResult, sent: str = ""
) -> Next | None:
    """For one that began; None if it ended well. `session` is what the caller calls it, `sent` is what ran."""
    if result.outcome is Outcome.OK:
        return None
    said = _last_words(result)
    # Only our own program has such words for us. In anything else they are what some file or web page says.
    if sent == making_room.MAKE_ROOM and (step := _after_making_room(visit, tool, session, said)) is not None:
        return step
    if any(words in result.explanation for words in _OVER_THE_QUOTA):
        return shell(visit, tool, session, making_room.WHAT_FILLS_FILES)
    if any(word in said for word in _FULL) or Limit.DISK in result.limits:
        fills = making_room.WHAT_FILLS_FILES if "/mnt/files" in said else making_room.MAKE_ROOM
        return shell(visit, tool, session, fills)
    if any(word in said for word in _MISSING):
        return shell(visit, tool, session, _WHERE_FILES_ARE)
    return look(visit, tool, session)


def _after_making_room(visit: Visit, tool: Tool[Any], session: str, said: str) -> Next | None:
    if making_room.STILL_OPEN in said:
        return code(visit, tool, session, making_room.CLOSE_FILES)
    if making_room.STILL_HIDDEN in said:
        return shell(visit, tool, session, making_room.WHAT_FILLS_SCRATCH)
    if making_room.FILES_FULL in said:
        return shell(visit, tool, session, making_room.WHAT_FILLS_FILES)
    return None


def after_deletion(visit: Visit, tool: Tool[Any]) -> Next:
    """For one that began in a session that is no more."""
    if visit.own_session is None and _runner(visit, tool) is Family.SANDBOX:
        return Next(tool=CREATE_SESSION, arguments={})
    return look(visit, tool, "")


def _last_words(result: CellResult | CommandResult) -> str:
    if isinstance(result, CommandResult):
        return result.stderr.text[-2000:]
    return "" if result.error is None else f"{result.error.name}: {result.error.message[-2000:]}"


def after_refusal(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Next:
    """For one that never began: the same call, as it can be made; or a look, if it must not be made again."""
    session = _session_of(given)
    match problem:
        case InvalidRequest():
            corrected = _corrected(tool, given)
            return again(visit, tool, _session_of(corrected), corrected)
        case Conflict() if TAKEN in problem.context and INSTEAD not in problem.context:
            return (
                Next(tool=CREATE_SESSION, arguments={}) if Family.SANDBOX in visit.families else look(visit, tool, "")
            )
        case Conflict() if INSTEAD not in problem.context:
            # It will pass: something is just being made, or ended.
            return again(visit, tool, session, usable(tool, given))
        case NotFound() | Conflict():
            instead = "" if visit.own_session is not None else problem.context.get(INSTEAD, "")
            return fresh(visit, tool, given, instead)
        case Denied() | InternalError() | ServerUnavailable():
            return look(visit, tool, session)
        case QuotaExceeded():
            if problem.context.get("limit") == Limit.PROCESSES:
                return look(visit, tool, session)
            return shell(visit, tool, session, making_room.WHAT_FILLS_SCRATCH)
        case Cancelled() | _:
            return again(visit, tool, session, usable(tool, given))


def is_stuck(visit: Visit, problem: WorkbenchError) -> bool:
    """Whether no call that this caller can make gets on: somebody must change the address that it uses."""
    is_taken = TAKEN in problem.context and INSTEAD not in problem.context
    return is_taken and visit.families == {Family.WORKBENCH}


def _session_of(given: dict[str, Any]) -> str:
    """As the caller named it; nothing for the one that is used without a name, which may not be made yet."""
    named = given.get("session_id")
    return named if isinstance(named, str) else ""


def _corrected(tool: Tool[Any], given: dict[str, Any]) -> dict[str, Any]:
    """What the schema takes; if it took them all, and something behind it did not, the examples."""
    arguments = usable(tool, given)
    if arguments != given:
        return arguments
    kept = {"session_id": given["session_id"]} if "session_id" in given else {}
    return {**kept, **tool.arguments.examples}


def again(visit: Visit, tool: Tool[Any], session: str, arguments: dict[str, Any]) -> Next:
    """The same call; a long one is left to the caller, who has it."""
    step = _complete(visit, tool, arguments)
    if step.tool == tool.name and sum(len(str(one)) for one in arguments.values()) > _MOST_REPEATED:
        return look(visit, tool, session)
    return step


def _complete(visit: Visit, tool: Tool[Any], arguments: dict[str, Any]) -> Next:
    """With a session, where a tool needs one and none was named."""
    session = tool.arguments.model_fields.get("session_id")
    if session is not None and session.is_required() and not arguments.get("session_id"):
        if visit.own_session is None:
            return Next(tool=CREATE_SESSION, arguments={})
        arguments = {**arguments, "session_id": visit.own_session}
    fields = tool.arguments.model_fields.items()
    if any(one.is_required() and (one.alias or name) not in arguments for name, one in fields):
        # Of some things there is no harmless example, such as files that are to be written.
        return shell(visit, tool, str(arguments.get("session_id", "")), _WHERE_FILES_ARE)
    return Next(tool=tool.name, arguments=arguments)


def fresh(visit: Visit, tool: Tool[Any], given: dict[str, Any], instead: str = "") -> Next:
    """A session that there is, for a name that there is not."""
    arguments = {key: one for key, one in usable(tool, given).items() if key != "session_id"}
    if tool.family is Family.KERNEL:
        # None of these may be done to another session than the one that was meant.
        return Next(tool=VARIABLES, arguments=_optional(instead))
    if tool.family is Family.WORKBENCH:
        return again(visit, tool, instead, {**arguments, **_optional(instead)})
    if visit.own_session is None:
        return Next(tool=CREATE_SESSION, arguments={})
    if tool.name in (EXECUTE_CODE, EXECUTE_TERMINAL):
        return again(visit, tool, visit.own_session, {**arguments, "session_id": visit.own_session})
    return look(visit, tool, visit.own_session)


def look(visit: Visit, tool: Tool[Any], session: str) -> Next:
    """What is in the memory now."""
    if Family.KERNEL in visit.families:
        return Next(tool=VARIABLES, arguments=_optional(visit.own_session or session))
    return code(visit, tool, session, _LOOK)


def is_python(step: Next) -> bool:
    """Whether it is a cell of ours, which only a session of Python understands."""
    return any(step.arguments.get(name) in (_LOOK, making_room.CLOSE_FILES) for name in ("code", "code_to_execute"))


def look_at_files(visit: Visit, tool: Tool[Any], session: str) -> Next:
    """What is there whatever the language."""
    return shell(visit, tool, session, _WHERE_FILES_ARE)


def code(visit: Visit, tool: Tool[Any], session: str, text: str) -> Next:
    """A cell, by whatever runs one."""
    match _runner(visit, tool):
        case Family.SANDBOX:
            return Next(tool=EXECUTE_CODE, arguments={"session_id": _id(visit, session), "code": text})
        case Family.WORKBENCH:
            return Next(tool=WORKBENCH_TOOL, arguments={**_optional(session), "code_to_execute": text})
        case _:
            return look(visit, tool, session)


def shell(visit: Visit, tool: Tool[Any], session: str, command: str) -> Next:
    """A command, by whatever runs one."""
    match _runner(visit, tool):
        case Family.SANDBOX:
            return Next(tool=EXECUTE_TERMINAL, arguments={"session_id": _id(visit, session), "command": command})
        case Family.WORKBENCH:
            return Next(tool=BASH_TOOL, arguments={**_optional(session), "command": command})
        case _:
            return look(visit, tool, session)


def _runner(visit: Visit, tool: Tool[Any]) -> Family:
    """The family that runs something for this caller: the tool's own, if it does."""
    if tool.family in (Family.WORKBENCH, Family.SANDBOX):
        return tool.family
    return next((one for one in (Family.WORKBENCH, Family.SANDBOX) if one in visit.families), Family.KERNEL)


def _id(visit: Visit, session: str) -> str:
    """For tools that need a session's id and take no other word."""
    return visit.own_session or session or visit.default_session


def _optional(session: str) -> dict[str, Any]:
    return {"session_id": session} if session else {}
