"""create_session and stop_session."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable

import mcp_types as types
from pydantic import Field

from workbench.core import requests
from workbench.core.installs import InstallTold
from workbench.core.languages import why_no_memory
from workbench.errors import Conflict, Denied, WorkbenchError
from workbench.mcp import guide
from workbench.mcp.answers import Answer
from workbench.mcp.choosing import choose
from workbench.mcp.families import Family
from workbench.mcp.tool import Arguments, Call, Tool
from workbench.mcp.tools.sandbox_answers import SESSION_ID, answered, finished, refused
from workbench.mcp.tools.sandbox_versions import as_requirement, is_met
from workbench.mcp.tools.shapes import STRING, told
from workbench.mcp.visit import Visit
from workbench.model.ids import SessionId, new_session_id
from workbench.model.packages import Language
from workbench.model.runtime import PYTHON, Runtime

_DEBIANS = re.compile(r"^r-(?:cran|bioc)-")


class CreateArguments(Arguments):
    """Of create_session."""

    language: str = Field(
        default=PYTHON,
        description="Language of the session; it keeps it: python, node, r, bash, or another that the server has. What "
        "the machine does not have is refused.",
        json_schema_extra={"examples": ["python", "node", "r"]},
    )
    dependencies: dict[str, str] = Field(
        default_factory=dict,
        max_length=100,
        description='Packages it needs, by name, each with a version ("2.1.0", ">=2,<3") or "" for any. Those that are '
        "missing are installed; what is refused is in `stderr`.",
        json_schema_extra={"default": {}},
    )


class StopArguments(Arguments):
    """Of stop_session."""

    session_id: str = SESSION_ID


async def _create(call: Call[CreateArguments]) -> Answer:
    visit, wanted = call.visit, call.arguments
    # What cannot be understood is told before anything is made.
    runtime = visit.bench.languages.named(wanted.language)
    if runtime.name == PYTHON:
        for version in wanted.dependencies.values():
            is_met(version, "0")
    if visit.own_session is not None:
        if "language" in call.given:
            await _check_language(visit, visit.own_session, runtime)
        return await _created(call, visit.own_session)
    session = new_session_id()
    packages = tuple(wanted.dependencies) if runtime.name == PYTHON else ()
    making = visit.around.keep(_make(visit, session, runtime, packages), "making a session")
    try:
        await asyncio.wait((making,))
        making.result()
        return await _created(call, session)
    except BaseException:
        # Nobody was told of it.
        visit.around.keep(_drop(visit, session, making), "dropping a session")
        raise


async def _check_language(visit: Visit, session: SessionId, wanted: Runtime) -> None:
    there = await visit.bench.runtime_of(session)
    if there.name != wanted.name:
        raise Conflict(
            f"session {session!r}, to which this address belongs, is one of {there.title}, and keeps its language: "
            "leave `language` out",
            {"session": session},
        )


async def _make(visit: Visit, session: SessionId, runtime: Runtime, packages: tuple[str, ...]) -> None:
    wanted = requests.CreateSession(
        session=session, user=visit.user, runtime=runtime.name, packages=packages, eager=True
    )
    await visit.bench.create_session(wanted)
    await visit.around.note("session.create", session, guide.CREATE_SESSION)


async def _drop(visit: Visit, session: SessionId, making: asyncio.Task[None]) -> None:
    await asyncio.wait((making,))
    with contextlib.suppress(WorkbenchError):
        await _end(visit, session)


async def _end(visit: Visit, session: SessionId) -> None:
    await visit.bench.delete_session(requests.DeleteSession(session=session))
    await visit.around.note("session.delete", session)


async def _created(call: Call[CreateArguments], session: SessionId) -> Answer:
    wanted = call.arguments.dependencies
    runtime = await call.visit.bench.runtime_of(session)
    found: dict[str, str] = {}
    said: list[str] = []
    if wanted and runtime.name != PYTHON:
        found, said = await _brought(call, session, runtime)
    elif wanted:
        found = await call.visit.bench.find_packages(requests.FindPackages(session=session, names=tuple(wanted)))
        missing = [name for name, version in wanted.items() if name not in found or not is_met(version, found[name])]
        if missing:
            said = await _installed(call, session, missing)
            found = await call.visit.bench.find_packages(requests.FindPackages(session=session, names=tuple(wanted)))
    described = await call.visit.bench.describe_session(requests.DescribeSession(session=session))
    structured = {
        "success": True,
        "session_id": session,
        "runtime": runtime.name,
        "status": described.state,
        "dependencies": {
            name: found[name]
            for name, version in wanted.items()
            if name in found and (runtime.name != PYTHON or is_met(version, found[name]))
        },
    }
    if why := why_no_memory(runtime):
        structured["hint"] = f"{runtime.title} has no undo, no branches and no restoring: {why}."
    return Answer(structured=structured | ({"stderr": "\n".join(said)} if said else {}))


async def _brought(
    call: Call[CreateArguments], session: SessionId, runtime: Runtime
) -> tuple[dict[str, str], list[str]]:
    """By the installer of another language: what is there, with versions, and what is said of each."""
    wanted = call.arguments.dependencies
    if runtime.name not in set(Language):
        return {}, [f"nothing is installed for {runtime.title} here: {', '.join(wanted)}"]
    requirements = tuple(_named(runtime, name, version) for name, version in wanted.items())
    told = await call.visit.bench.install_packages(
        requests.InstallPackages(session=session, requirements=requirements, language=Language(runtime.name))
    )
    said = _in_words(tuple(wanted), told)
    if runtime.name == Language.R and (unread := [name for name, version in wanted.items() if not _is_any(version)]):
        said.append(f"versions of R's packages are those that the archive has; not looked at for {', '.join(unread)}")
    pins = {_own_name(pin): pin.rpartition("==")[2] for one in told for pin in (*one.present, *one.installed)}
    return {name: pins[name.lower()] for name in wanted if name.lower() in pins}, said


def _named(runtime: Runtime, name: str, version: str) -> str:
    """As the language's installer has it, which for R takes no versions."""
    return name if _is_any(version) or runtime.name != Language.NODE else f"{name}@{version.strip()}"


def _is_any(version: str) -> bool:
    return version.strip() in ("", "*", "latest")


def _own_name(pin: str) -> str:
    """Of a package, in small letters: R's have a name of Debian's around it."""
    return _DEBIANS.sub("", pin.rpartition("==")[0].lower())


def _in_words(names: Iterable[str], told: Iterable[InstallTold]) -> list[str]:
    return [
        one.refused or (one.correction.text if one.correction is not None else f"{name} is there already")
        for name, one in zip(names, told, strict=True)
    ]


async def _installed(call: Call[CreateArguments], session: SessionId, missing: list[str]) -> list[str]:
    """What was installed and what was refused, a line each."""
    wanted = call.arguments.dependencies
    requirements = tuple(as_requirement(name, wanted[name]) for name in missing)
    told = await call.visit.bench.install_packages(requests.InstallPackages(session=session, requirements=requirements))
    return _in_words(requirements, told)


async def _stop(call: Call[StopArguments]) -> Answer:
    if call.visit.own_session is not None:
        # BARRIER: who may use one session may not delete it, nor any other; held by tests/mcp/test_sandbox_tools.py.
        raise Denied(
            f"session {call.visit.own_session!r} belongs to this address and is not stopped from here: deleting it "
            "needs a key. Leave it; an idle session is put to sleep by itself"
        )
    chosen = choose(call.visit, call.arguments.session_id)
    await finished(call.visit, _end(call.visit, chosen.id), "deleting a session")
    return Answer(structured={"success": True})


CREATE = Tool(
    name=guide.CREATE_SESSION,
    family=Family.SANDBOX,
    title="Create session",
    description=(
        "Make a sandbox with a kernel of its own, of Python, Node.js or R, and get the `session_id` that other tools "
        "take.\n"
        "Call it once per task, and go on with the same session: variables, imports and files stay from call to call. "
        "Not before each call.\n"
        "- Home is /home/user. What is under /mnt/files outlives the sandbox until stop_session.\n"
        "- Python has the usual data libraries, and others are installed when code imports them; `dependencies` has "
        "some installed at once, and answers with versions. What was refused is in `stderr`.\n"
        "- `success` false: nothing was made; `next` is a call that works."
    ),
    arguments=CreateArguments,
    output_schema=answered(
        {
            "session_id": told(STRING, "For the other tools."),
            "runtime": told(STRING, "Its language."),
            "status": told(STRING, "`idle` when it is ready."),
            "dependencies": told(
                {"type": "object", "additionalProperties": STRING}, "Those asked for that are there, with versions."
            ),
            "stderr": told(STRING, "Of installs, if there were any."),
        }
    ),
    annotations=types.ToolAnnotations(
        destructive_hint=False, open_world_hint=False, read_only_hint=False, idempotent_hint=False
    ),
    run=_create,
    refused=refused,
)
STOP = Tool(
    name="stop_session",
    family=Family.SANDBOX,
    title="Stop session",
    description=(
        "End a session for good: its kernel, what runs in it, and all its files, also those under /mnt/files.\n"
        "Use it when the task is done and its exported files were read: they go with it. Not to get a fresh memory or "
        "to stop a cell; an idle session costs little and sleeps by itself.\n"
        "- A wrong session_id stops nothing; `sessions` are those that live."
    ),
    arguments=StopArguments,
    output_schema=answered({}),
    annotations=types.ToolAnnotations(
        destructive_hint=True, open_world_hint=False, read_only_hint=False, idempotent_hint=True
    ),
    run=_stop,
    refused=refused,
)
