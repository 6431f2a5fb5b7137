"""Tools that steer a session's memory beside running code in it: interrupt, restart, undo, branch, variables."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict
from typing import Any

import mcp_types as types
from pydantic import Field

from workbench.core import requests
from workbench.errors import Conflict, Denied, NotFound, WorkbenchError
from workbench.mcp import guide
from workbench.mcp.answers import Answer, Next
from workbench.mcp.choosing import Chosen, choose, exists, heirs_of, living, with_session
from workbench.mcp.families import Family
from workbench.mcp.tool import Arguments, Call, Tool, usable
from workbench.mcp.tools.shapes import NEXT, STRING, WHOLE, YES_OR_NO, listed, told
from workbench.mcp.visit import Visit
from workbench.mcp.wording import for_agents, without_commands
from workbench.model.execution import Variable
from workbench.model.ids import SessionId, new_session_id
from workbench.model.session import SessionDescription

RESTART = "restart_session"
UNDO = "undo_cells"
BRANCH = "branch_session"
CONTEXT = "create_context"
# Python looks for an interrupt between two steps; what is in C code may take a moment longer.
_REACT_S = 5.0
_PAUSE_S = 0.05
# Rows, and characters of words about what was not carried: an agent reads them all.
_MOST_VARIABLES = 100
_MOST_WORDS = 2000
_NOTHING_RAN = "Nothing was run in it yet."
_NOT_MADE = "There is nothing in it: it is made by the next call that runs something."

_SESSION = Field(default="", max_length=200, description="The session. Leave it out for this connection's own session.")


class SessionArguments(Arguments):
    """A session and no more."""

    session_id: str = _SESSION


class UndoArguments(Arguments):
    """Of undo_cells."""

    session_id: str = _SESSION
    cells: int = Field(default=1, ge=1, le=10_000, description="How many of the last cells to undo.")


class BranchArguments(Arguments):
    """Of branch_session."""

    session_id: str = _SESSION
    name: str = Field(
        default="",
        max_length=40,
        description="A name for the new session, of a-z, 0-9, _ and -. Leave it out to get one.",
    )
    copy_: bool = Field(
        default=False,
        alias="copy",
        description="false: at once, in the same sandbox, with the same files. true: a sandbox of its own, with copies "
        "of files and of variables that can be pickled.",
    )


class ContextArguments(Arguments):
    """Of create_context."""

    session_id: str = _SESSION
    language: str = Field(
        default="",
        max_length=40,
        description="Its language, such as python, node or r. Leave it out for the session's own.",
    )
    name: str = Field(
        default="",
        max_length=40,
        description="A name for it, of a-z, 0-9, _ and -. Leave it out to get one.",
    )
    working_folder: str = Field(
        default="", max_length=4096, description="Where its cells start. Leave it out for the session's own folder."
    )


_STATE = told(
    STRING,
    "idle; busy; cold (nothing was run yet, or its sandbox is not made); lost (its sandbox ended, the next cell gets a "
    "new one); frozen (goes on with the next call); unreachable; unfinished; ending",
)
_COMMON: dict[str, Any] = {
    "success": told(YES_OR_NO, "Whether it was done."),
    "session_id": told(STRING, "The session that this is about, to be used again."),
    "state": _STATE,
    "epoch": told(WHOLE, "Number of the memory; another one means that variables are not those of before."),
    "note": told(STRING, "What else is to be known."),
    "error": told(STRING, "If it was not done: why, and what can be done."),
    "sessions": told(listed(STRING), "If there is no such session: those there are."),
    "next": NEXT,
}
_NOT_CARRIED = told(STRING, "What of that memory could not come along, and why; empty if all did.")


def _output(**more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {**_COMMON, **more}, "required": ["success", "session_id"]}


def _chosen(visit: Visit, named: str) -> Chosen:
    """As for other tools; but what changes a memory must not be aimed at one and hit another."""
    if visit.own_session is not None and named not in ("", visit.own_session):
        raise NotFound(
            f"this address reaches session {visit.own_session!r} and no other; leave session_id out",
            {"session": named[:60]},
        )
    return choose(visit, named)


async def _described(visit: Visit, chosen: Chosen) -> SessionDescription | None:
    """None for a default session that nobody has used yet: nothing is made in order to look."""
    try:
        return await visit.bench.describe_session(requests.DescribeSession(session=chosen.id))
    except NotFound:
        if not chosen.is_default:
            raise
        return None


async def _needed(visit: Visit, chosen: Chosen) -> SessionDescription:
    described = await _described(visit, chosen)
    if described is None:
        if (heirs := await heirs_of(visit, chosen.id)) is not None:
            raise heirs
        raise Conflict(
            f"session {chosen.id!r} has no memory: it is made by the next call that runs something",
            {"session": chosen.id},
        )
    return described


async def _shown_or_none(visit: Visit, described: SessionDescription | None, chosen: Chosen) -> dict[str, Any]:
    """For a look, which is also at what is not there."""
    if described is None and (heirs := await heirs_of(visit, chosen.id)) is not None:
        return {"session_id": chosen.id, "note": f"{heirs.message[0].upper()}{heirs.message[1:]}."}
    return _shown(described, chosen)


def _shown(described: SessionDescription | None, chosen: Chosen) -> dict[str, Any]:
    if described is None:
        return {"session_id": chosen.id, "state": "cold", "note": _NOT_MADE}
    shown: dict[str, Any] = {
        "session_id": described.session.spec.id,
        "state": described.state,
        "epoch": described.session.epoch,
    }
    notes = [without_commands(described.detail)] if described.detail else []
    if described.state == "cold":
        notes.append(_NOTHING_RAN)
    if described.start_up_error:
        notes.append(f"The start-up code raised: {described.start_up_error[:_MOST_WORDS]}")
    return shown | ({"note": " ".join(notes)} if notes else {})


def _running(described: SessionDescription | None) -> str:
    queue = () if described is None else described.queue
    return next((str(one.cell) for one in queue if one.running), "")


async def _interrupt(call: Call[SessionArguments]) -> Answer:
    visit, chosen = call.visit, _chosen(call.visit, call.arguments.session_id)
    described = await _described(visit, chosen)
    running = _running(described)
    if not running:
        shown = _shown(described, chosen) | {"note": "Nothing was running."}
        return Answer(structured={"success": True, "interrupted": False, **shown})
    await visit.bench.interrupt_kernel(requests.InterruptKernel(session=chosen.id))
    described = await _until_it_ended(visit, chosen, running)
    if _running(described) != running:
        return Answer(structured={"success": True, "interrupted": True, **_shown(described, chosen)})
    words = (
        f"cell {running} has not reacted to the interrupt in {_REACT_S:g} s. It is ended by {RESTART}, at the price of "
        "all variables, or by its time limit"
    )
    return Answer(
        structured={"success": False, "interrupted": False, **_shown(described, chosen), "error": words},
        next=Next(tool=RESTART, arguments={"session_id": chosen.id}),
    )


async def _until_it_ended(visit: Visit, chosen: Chosen, cell: str) -> SessionDescription | None:
    """As it is when that cell has ended, or does not react."""
    described = await _described(visit, chosen)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REACT_S):
            while _running(described) == cell:
                await asyncio.sleep(_PAUSE_S)
                described = await _described(visit, chosen)
    return described


async def _restart(call: Call[SessionArguments]) -> Answer:
    visit, chosen = call.visit, _chosen(call.visit, call.arguments.session_id)

    async def restarted() -> SessionDescription:
        return await visit.bench.restart_kernel(requests.RestartKernel(session=chosen.id))

    before = _running(await _described(visit, chosen))
    described, _ = await with_session(visit, chosen, restarted)
    # What ran is lost by now; its record says so a moment later.
    settled = await _until_it_ended(visit, chosen, before) if before else described
    return Answer(structured={"success": True, **_shown(settled, chosen)})


async def _undo(call: Call[UndoArguments]) -> Answer:
    visit, chosen = call.visit, _chosen(call.visit, call.arguments.session_id)
    await _needed(visit, chosen)
    undone = await visit.bench.undo(requests.UndoCells(session=chosen.id, cells=call.arguments.cells))
    return Answer(
        structured={
            "success": True,
            **_shown(undone.described, chosen),
            "undone": call.arguments.cells,
            "not_carried": undone.not_carried[:_MOST_WORDS],
        }
    )


async def _branch(call: Call[BranchArguments]) -> Answer:
    visit, chosen = call.visit, _chosen(call.visit, call.arguments.session_id)
    if visit.own_session is not None:
        # BARRIER: who was given one session would have a second by branching, and one that outlives a revoked token;
        # held by tests/mcp/test_kernel_tools.py.
        raise Denied(
            f"this address reaches session {visit.own_session!r} and no other, so that a branch of it could not be "
            "used from here: a new session needs a key, at the server's /mcp address"
        )
    await _needed(visit, chosen)
    name = SessionId(call.arguments.name) if call.arguments.name else new_session_id()
    made = await visit.bench.branch(requests.BranchSession(session=chosen.id, branch=name, copy=call.arguments.copy_))
    await visit.around.note("session.create", name, f"a branch of {chosen.id}")
    is_copy = isinstance(made, requests.CopiedSession)
    shown = _shown(made.described, chosen)
    if isinstance(made, requests.CopiedSession) and made.files_note:
        shown["note"] = without_commands(made.files_note)
    return Answer(
        structured={
            "success": True,
            **shown,
            "branched_from": chosen.id,
            "shares_files": not is_copy,
            "not_carried": _not_carried(made),
        }
    )


async def _context(call: Call[ContextArguments]) -> Answer:
    visit, sent = call.visit, call.arguments
    chosen = _chosen(visit, sent.session_id)
    if visit.own_session is not None:
        # BARRIER: as for branches: it would be a second session; held by tests/mcp/test_kernel_tools.py.
        raise Denied(
            f"this address reaches session {visit.own_session!r} and no other, so that a context of it could not be "
            "used from here: it needs a key, at the server's /mcp address"
        )
    name = SessionId(sent.name) if sent.name else new_session_id()
    ask = requests.CreateContext(
        session=chosen.id, context=name, runtime=sent.language, working_folder=sent.working_folder
    )
    made, _ = await with_session(visit, chosen, lambda: visit.bench.create_context(ask))
    await visit.around.note("session.create", name, f"a context of {chosen.id}")
    session = made.session
    more = {"context_of": str(session.context_of), "runtime": session.spec.runtime}
    return Answer(structured={"success": True, **_shown(made, chosen), **more})


def _not_carried(made: requests.Branched | requests.CopiedSession) -> str:
    if isinstance(made, requests.Branched):
        return made.not_carried[:_MOST_WORDS]
    return "; ".join(f"{name}: {why}" for name, why in made.not_carried.items())[:_MOST_WORDS]


async def _variables(call: Call[SessionArguments]) -> Answer:
    visit, chosen = call.visit, _chosen(call.visit, call.arguments.session_id)
    described = await _described(visit, chosen)
    found: tuple[Variable, ...] = ()
    if described is not None:
        ask = requests.ListVariables(session=chosen.id, most=_MOST_VARIABLES + 1)
        found = await visit.bench.list_variables(ask)
        described = await _described(visit, chosen)
    return Answer(
        structured={
            "success": True,
            **await _shown_or_none(visit, described, chosen),
            "variables": [asdict(one) for one in found[:_MOST_VARIABLES]],
            "has_more": len(found) > _MOST_VARIABLES,
        }
    )


async def _refused(visit: Visit, tool: Tool[Any], given: dict[str, Any], problem: WorkbenchError) -> Answer:
    named = given.get("session_id")
    named = named[:60] if isinstance(named, str) else ""
    session = visit.own_session or named or visit.default_session
    structured: dict[str, Any] = {"success": False, "session_id": session, "error": for_agents(problem)}
    if isinstance(problem, NotFound):
        structured["sessions"] = await living(visit)
        structured["error"] += ". Nothing was done or started."
    step = guide.after_refusal(visit, tool, given, problem)
    if isinstance(problem, Conflict) and guide.INSTEAD not in problem.context and tool.name in (UNDO, BRANCH, CONTEXT):
        step = await _after_conflict(visit, tool, given, named)
    return Answer(structured=structured, next=step, never_began=True)


async def _after_conflict(visit: Visit, tool: Tool[Any], given: dict[str, Any], named: str) -> Next:
    """Another name for a branch whose name is taken; an interrupt for what runs; else a look at what there is."""
    with contextlib.suppress(WorkbenchError):
        name = given.get("name")
        if isinstance(name, str) and name and await exists(visit, SessionId(name)):
            kept = {key: one for key, one in usable(tool, given).items() if key != "name"}
            return Next(tool=tool.name, arguments=kept)
        chosen = choose(visit, named)
        if tool.name == UNDO and _running(await _described(visit, chosen)):
            return Next(tool=guide.INTERRUPT, arguments={"session_id": chosen.id})
    return guide.look(visit, tool, named)


def _hints(*, reads: bool = False, destroys: bool = False, repeats: bool = False) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=repeats, open_world_hint=False
    )


_ERRORS = "An unknown session answers success=false with the living `sessions`; `next` is the call that gets on."

INTERRUPT = Tool(
    name=guide.INTERRUPT,
    family=Family.KERNEL,
    title="Interrupt Session",
    description=(
        "Stop the cell that runs in a session now, like Ctrl-C: it ends with KeyboardInterrupt.\n"
        "Use it for a cell that takes too long or waits for something that never comes. Not for shell commands, which "
        "end by their own limit, nor to clean up: variables and files stay as they are.\n"
        "- Cells that wait behind it run next. With nothing running, `interrupted` is false and nothing changes.\n"
        f"- A cell that ignores interrupts answers success=false; then {RESTART} ends it. {_ERRORS}"
    ),
    arguments=SessionArguments,
    output_schema=_output(interrupted=told(YES_OR_NO, "Whether a cell was ended by this.")),
    annotations=_hints(destroys=True),
    run=_interrupt,
    refused=_refused,
)
RESTART_TOOL = Tool(
    name=RESTART,
    family=Family.KERNEL,
    title="Restart Session",
    description=(
        "Begin with an empty memory: all variables and imports are gone, files in /home/user, /tmp and /mnt/files "
        "stay, and `epoch` goes up.\n"
        "Use it when the state is beyond repair or a cell ignores interrupts. Not after an error or a crash: then "
        f"variables are kept or restored by themselves. To take back one step, {UNDO} is cheaper.\n"
        "- What runs is ended, and cells that wait never begin. A session in which nothing ran yet gets its memory. "
        f"There is no way back. {_ERRORS}"
    ),
    arguments=SessionArguments,
    output_schema=_output(),
    annotations=_hints(destroys=True, repeats=True),
    run=_restart,
    refused=_refused,
)
UNDO_TOOL = Tool(
    name=UNDO,
    family=Family.KERNEL,
    title="Undo Cells",
    description=(
        "Take back the last cells: variables and imports are as they were before them.\n"
        "Use it after a cell that spoiled the state, instead of rebuilding it. Not for files, processes or what was "
        "sent over the network: these stay as they are.\n"
        "- Only the last few cells are kept; when more are asked for, `error` says how many can be undone, and nothing "
        "changes. A running cell must end first. `not_carried` names what could not come back, such as threads. "
        f"{_ERRORS}"
    ),
    arguments=UndoArguments,
    output_schema=_output(undone=told(WHOLE, "How many cells were undone."), not_carried=_NOT_CARRIED),
    annotations=_hints(destroys=True),
    run=_undo,
    refused=_refused,
)
BRANCH_TOOL = Tool(
    name=BRANCH,
    family=Family.KERNEL,
    title="Branch Session",
    description=(
        "Make a second session with the same variables, to try something without touching the first. Use the "
        "`session_id` of the answer for it.\n"
        "Use it for alternatives from one prepared state. Not for a clean start, nor to go back "
        f"({UNDO}).\n"
        "- A branch shares the sandbox, its files and its limits; with copy=true nothing is shared, it takes longer, "
        "and variables that cannot be pickled stay behind (`not_carried`).\n"
        f"- Needs a session in which something ran. On a session's own address it is refused. {_ERRORS}"
    ),
    arguments=BranchArguments,
    output_schema=_output(
        branched_from=told(STRING, "The session that it was made from."),
        shares_files=told(YES_OR_NO, "Whether both see the same files."),
        not_carried=_NOT_CARRIED,
    ),
    annotations=_hints(),
    run=_branch,
    refused=_refused,
)
CONTEXT_TOOL = Tool(
    name=CONTEXT,
    family=Family.KERNEL,
    title="Create Context",
    description=(
        "Add a kernel to a session: another language, or a second empty memory, with the same files. Use the "
        "`session_id` of the answer for it.\n"
        "Use it for a step in Node.js or R between steps in Python: they hand each other files. Not to try something "
        f"with the variables that are there ({BRANCH}).\n"
        "- It shares the sandbox, /home/user, /mnt/files and the limits; no variables. It goes with its session. A "
        "language that is not there is refused with those that are. On a session's own address it is refused. "
        f"{_ERRORS}"
    ),
    arguments=ContextArguments,
    output_schema=_output(
        context_of=told(STRING, "The session that it belongs to."), runtime=told(STRING, "Its language.")
    ),
    annotations=_hints(),
    run=_context,
    refused=_refused,
)
VARIABLES = Tool(
    name=guide.VARIABLES,
    family=Family.KERNEL,
    title="List Variables",
    description=(
        "Names in a session's memory, each with type, size and a short preview.\n"
        "Use it to see what is there before you go on, above all after a time-out, a crash or a restart. Not to read "
        "values in full: run code for that. Files are not listed.\n"
        f"- Changes nothing and starts nothing. At most {_MOST_VARIABLES}; `has_more` tells. It waits up to 30 s for "
        f"cells that run. {_ERRORS}"
    ),
    arguments=SessionArguments,
    output_schema=_output(
        variables=listed(
            {
                "type": "object",
                "properties": {"name": STRING, "type": STRING, "size": STRING, "preview": STRING},
                "required": ["name", "type", "size", "preview"],
                "additionalProperties": False,
            }
        ),
        has_more=told(YES_OR_NO, "Whether there are more than are listed."),
    ),
    annotations=_hints(reads=True, repeats=True),
    run=_variables,
    refused=_refused,
)
