"""The step that gets on after something went wrong, in tools that the caller sees."""

from __future__ import annotations

from typing import Any

from workbench.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, WorkbenchError
from workbench.mcp.answers import Next
from workbench.mcp.families import Family
from workbench.mcp.tool import Tool, usable
from workbench.mcp.visit import Visit
from workbench.model.execution import CellResult, CommandResult, Outcome

WORKBENCH_TOOL = "COMPOSIO_REMOTE_WORKBENCH"
BASH_TOOL = "COMPOSIO_REMOTE_BASH_TOOL"
EXECUTE_CODE = "execute_code"
EXECUTE_TERMINAL = "execute_terminal"
CREATE_SESSION = "create_session"
VARIABLES = "list_variables"

_LOOK = "%whos"
_WHERE_FILES_ARE = "pwd; ls -la /home/user /mnt/files"
# Data is moved, not deleted: scratch space is memory, and /mnt/files is on disk and outlives the sandbox.
_MAKE_ROOM = (
    "mkdir -p /mnt/files/moved && find /tmp /home/user -xdev -type f -size +1M "
    "-exec mv -n -t /mnt/files/moved {} + ; df -h /tmp /home/user /mnt/files; ls -la /mnt/files/moved"
)
_WHAT_IS_LARGE = "df -h /mnt/files; du -ah /mnt/files | sort -h | tail -n 20"
_FULL = ("No space left on device", "Errno 28", "Disk quota exceeded", "Errno 122")


def after_result(visit: Visit, tool: Tool[Any], session: str, result: CellResult | CommandResult) -> Next | None:
    """For one that began; None if it ended well."""
    if result.outcome is Outcome.OK:
        return None
    said = _last_words(result)
    if any(word in said for word in _FULL):
        return shell(visit, tool, session, _WHAT_IS_LARGE if "/mnt/files" in said else _MAKE_ROOM)
    if "FileNotFoundError" in said or "No such file or directory" in said:
        return shell(visit, tool, session, _WHERE_FILES_ARE)
    return look(visit, tool, session)


def _last_words(result: CellResult | CommandResult) -> str:
    if isinstance(result, CellResult):
        return "" if result.error is None else f"{result.error.name}: {result.error.message}"
    return result.stderr.text[-2000:]


def after_refusal(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Next:
    """For one that never began: the same call, as it can be made."""
    arguments = usable(tool, given)
    if isinstance(problem, NotFound | Conflict) and not isinstance(problem, InvalidRequest):
        return fresh(visit, tool, arguments)
    if isinstance(problem, QuotaExceeded):
        return shell(visit, tool, str(given.get("session_id") or visit.session), _MAKE_ROOM)
    return Next(tool=tool.name, arguments=arguments)


def fresh(visit: Visit, tool: Tool[Any], arguments: dict[str, Any]) -> Next:
    """A session that there is, for a name that there is not."""
    if tool.family is Family.WORKBENCH:
        return Next(tool=tool.name, arguments={key: one for key, one in arguments.items() if key != "session_id"})
    if Family.SANDBOX in visit.families:
        return Next(tool=CREATE_SESSION, arguments={})
    if Family.WORKBENCH in visit.families:
        return Next(tool=WORKBENCH_TOOL, arguments={"code_to_execute": _LOOK})
    return Next(tool=tool.name, arguments={**arguments, "session_id": visit.session})


def look(visit: Visit, tool: Tool[Any], session: str) -> Next:
    """What is in the memory now."""
    if Family.KERNEL in visit.families:
        return Next(tool=VARIABLES, arguments={"session_id": session})
    if (Family.SANDBOX in visit.families and tool.family is Family.SANDBOX) or Family.WORKBENCH not in visit.families:
        return Next(tool=EXECUTE_CODE, arguments={"session_id": session, "code": _LOOK})
    return Next(tool=WORKBENCH_TOOL, arguments={"session_id": session, "code_to_execute": _LOOK})


def shell(visit: Visit, tool: Tool[Any], session: str, command: str) -> Next:
    """A command, by whatever runs one."""
    if Family.SANDBOX in visit.families and (tool.family is Family.SANDBOX or Family.WORKBENCH not in visit.families):
        return Next(tool=EXECUTE_TERMINAL, arguments={"session_id": session, "command": command})
    if Family.WORKBENCH in visit.families:
        return Next(tool=BASH_TOOL, arguments={"session_id": session, "command": command})
    return look(visit, tool, session)
