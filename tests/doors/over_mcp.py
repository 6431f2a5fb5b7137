"""MCP, as agents use it: the official client, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent
from tests.doors.door import LIMIT_S, PLAIN, Described, Named, Ran, Refused, Said
from tests.doors.in_process import Loop
from tests.restart.server import Server

from workbench.mcp.answers import OUTCOME_KEY, RECEIPT_KEY
from workbench.mcp.families import Family
from workbench.mcp.wording import explained
from workbench.settings import Settings

_OPEN_S = 60.0
# Loop.call waits for less.
_READ_S = 150.0
_WORKBENCH = Path(sys.executable).with_name("workbench")
# The last line of a traceback.
_RAISED = re.compile(r"^([\w.]+)(?:: .*)?$", re.MULTILINE)
_EXITED = re.compile(r"the command exited with (\d+)")
_WHOLE_STDOUT = re.compile(r"All of stdout is in (\S+)\.")
# Advice that no tool can follow: a command on the host, or a limit above 300 s.
_USELESS = re.compile(r"`workbench |longer limit \(up to (?!300 s)")
# What a refusal says beyond the core's words: that it is one, and what was not done.
_NOT_RUN = "not run: "
_NOTHING = re.compile(r"\. Nothing was (?:run or started\. Living sessions: .*|done or started\.)$", re.DOTALL)


@contextlib.contextmanager
def http_door(server: Server, loop: Loop) -> Iterator[McpDoor]:
    """In the newest version of the protocol, by the tools of the workbench family where they will do."""
    headers = {"authorization": f"Bearer {server.key}"}

    @contextlib.asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_READ_S, trust_env=False) as http,
            Client(streamable_http_client(f"{server.url}/mcp?tools=all", http_client=http)) as client,
        ):
            yield client

    with _open(connected(), loop) as client:
        yield McpDoor("MCP, HTTP", client, loop, prefers=Family.WORKBENCH)


@contextlib.contextmanager
def stdio_door(settings: Settings, loop: Loop) -> Iterator[McpDoor]:
    """In the version with a handshake, by the tools of the sandbox family where they will do."""
    program = StdioServerParameters(
        command=str(_WORKBENCH), args=["mcp", "--tools", "all"], env={**os.environ, **settings.to_env()}
    )
    with _open(Client(program, mode="legacy"), loop) as client:
        yield McpDoor("MCP, stdio", client, loop, prefers=Family.SANDBOX)


@contextlib.contextmanager
def _open(connection: AbstractAsyncContextManager[Client], loop: Loop) -> Iterator[Client]:
    stay = _Stay(connection)
    try:
        yield loop.call(stay.enter())
    finally:
        loop.call(stay.leave())


class _Stay:
    """A connection in a task of its own: the library wants to be left where it was entered."""

    def __init__(self, connection: AbstractAsyncContextManager[Client]) -> None:
        self._connection = connection
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def enter(self) -> Client:
        """Until it is connected."""
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._stay(opened), name="a client of MCP")
        await asyncio.wait((opened, self._task), timeout=_OPEN_S, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        assert opened.done(), f"not connected in {_OPEN_S:g} s"
        return opened.result()

    async def _stay(self, opened: asyncio.Future[Client]) -> None:
        async with self._connection as client:
            opened.set_result(client)
            await self._leave.wait()

    async def leave(self) -> None:
        """Whether or not it was."""
        self._leave.set()
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=_OPEN_S)
            self._task.cancel()


class McpDoor:
    """One client. Two families run cells and commands: the one that is preferred does, where it can say it all."""

    makes_what_it_runs_in = False

    def __init__(self, name: str, client: Client, loop: Loop, *, prefers: Family) -> None:
        self.name = name
        self._client = client
        self._call = loop.call
        self._prefers = prefers

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        assert not said.idempotency_key, "no tool takes one"
        along = {"thought": said.thought, "current_step": said.step, "current_step_metric": said.metric}
        if said.limit_s != LIMIT_S or (self._prefers is Family.SANDBOX and not any(along.values())):
            assert not any(along.values()), "execute_code takes no such thing"
            return _of_code(self._told("execute_code", session, code=code, timeout=said.limit_s))
        return _of_cell(self._told("COMPOSIO_REMOTE_WORKBENCH", session, code_to_execute=code, **along))

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        assert said == PLAIN, "the tools take a command and nothing else"
        if self._prefers is Family.SANDBOX:
            return _of_terminal(self._told("execute_terminal", session, command=command))
        return _of_command(self._told("COMPOSIO_REMOTE_BASH_TOOL", session, command=command))

    def variables(self, session: str) -> tuple[Named, ...]:
        told = _structured(self._told("list_variables", session))
        assert not told["has_more"]
        return tuple(Named(name=one["name"], type=one["type"], preview=one["preview"]) for one in told["variables"])

    def interrupt(self, session: str) -> None:
        self._told("interrupt_session", session)

    def restart(self, session: str) -> Described:
        return _described(self._told("restart_session", session))

    def undo(self, session: str, cells: int = 1) -> Described:
        return _described(self._told("undo_cells", session, cells=cells))

    def branch(self, session: str, name: str) -> Described:
        return _described(self._told("branch_session", session, name=name))

    def delete(self, session: str) -> None:
        self._told("stop_session", session)

    def _told(self, tool: str, session: str, **arguments: Any) -> CallToolResult:
        """The answer, if anything was done; then `success` and `next` are as the outcome has it."""
        answer = self._call(self._client.call_tool(tool, {"session_id": session, **arguments}))
        assert isinstance(answer, CallToolResult)
        told = _structured(answer)
        assert not _USELESS.search(str(told)), told
        is_good = told["successful"] if "successful" in told else told["success"]
        if answer.is_error:
            assert not is_good
            assert "next" in told
            raise Refused(None, _NOTHING.sub("", told["error"].removeprefix(_NOT_RUN)), to_agents=True)
        outcome = (answer.meta or {}).get(OUTCOME_KEY, {"outcome": "ok"})["outcome"]
        assert is_good is (outcome == "ok"), told
        assert is_good or "next" in told
        return answer


def _structured(answer: CallToolResult) -> dict[str, Any]:
    told = answer.structured_content
    assert isinstance(told, dict)
    return told


def _described(answer: CallToolResult) -> Described:
    told = _structured(answer)
    untold = {"size", "runtime", "running", "step", "metric"} | ({"parent"} if "branched_from" not in told else set())
    return Described(
        state=told["state"],
        epoch=told["epoch"],
        size="",
        runtime="",
        parent=told.get("branched_from"),
        running=False,
        step="",
        metric="",
        untold=frozenset(untold),
    )


def _ran(answer: CallToolResult, **more: Any) -> Ran:
    """With what is beside the answer of any tool that runs something."""
    assert answer.meta is not None
    receipt, outcome = answer.meta[RECEIPT_KEY], answer.meta[OUTCOME_KEY]
    return Ran(
        cell=outcome["cell"],
        outcome=outcome["outcome"],
        explanation=outcome["explanation"],
        epoch=receipt["epoch"],
        state=receipt["state"],
        reason=receipt["reason"],
        added=tuple(receipt["added"]),
        rebound=tuple(receipt["rebound"]),
        **more,
    )


def _of_cell(answer: CallToolResult) -> Ran:
    """Of COMPOSIO_REMOTE_WORKBENCH, which shows pictures as such, and other displays only as text."""
    data = _structured(answer)["data"]
    assert answer.meta is not None
    why = explained(answer.meta[OUTCOME_KEY]["explanation"])
    assert data["error"].endswith(why)
    return _ran(
        answer,
        stdout=data["stdout"],
        stderr=data["stderr"],
        results=data["results"],
        stdout_file=data.get("stdout_file_path"),
        error=_raised_in(data["error"].removesuffix(why)),
        displays=tuple(((kind, picture),) for kind, picture in _pictures(answer)),
        untold=frozenset({"displays"}),
    )


def _of_command(answer: CallToolResult) -> Ran:
    """Of COMPOSIO_REMOTE_BASH_TOOL, which tells an exit code that is not 0 in words."""
    told = _structured(answer)
    data, exited = told["data"], _EXITED.match(told["error"] or "")
    return _ran(
        answer,
        stdout=data["stdout"],
        stderr=data["stderr"],
        stdout_file=data.get("stdout_file_path"),
        exit_code=int(exited[1]) if exited is not None else 0 if told["successful"] else None,
    )


def _of_code(answer: CallToolResult) -> Ran:
    """Of execute_code, which shows less of long texts, and a traceback only if that is all there is to say."""
    told = _structured(answer)
    is_raised = (answer.meta or {})[OUTCOME_KEY]["outcome"] == "raised"
    displays = tuple(tuple(sorted(one.items())) for one in told["display_outputs"])
    shown = [(kind, data) for one in displays for kind, data in one if kind.startswith("image/")]
    assert _pictures(answer) == [(kind, "".join(data.split())) for kind, data in shown]
    file = _stdout_file(told)
    return _ran(
        answer,
        stdout=told["stdout"],
        stderr=told["stderr"],
        results=told["result"] or "",
        stdout_file=file,
        error=_raised_in(told["error"]) if is_raised else None,
        displays=displays,
        untold=_cut(file) | (frozenset() if is_raised or told["success"] else {"error"}),
    )


def _of_terminal(answer: CallToolResult) -> Ran:
    """Of execute_terminal."""
    told = _structured(answer)
    file = _stdout_file(told)
    return _ran(
        answer,
        stdout=told["stdout"],
        stderr=told["stderr"],
        stdout_file=file,
        exit_code=told["exit_code"],
        untold=_cut(file),
    )


def _raised_in(traceback: str) -> str | None:
    found = _RAISED.findall(traceback)
    return found[-1] if found else None


def _cut(file: str | None) -> frozenset[str]:
    """Head and tail are shorter than the core's."""
    return frozenset({"stdout"} if file is not None else ())


def _stdout_file(told: dict[str, Any]) -> str | None:
    found = _WHOLE_STDOUT.search(told.get("hint", ""))
    return found[1] if found is not None else None


def _pictures(answer: CallToolResult) -> list[tuple[str, str]]:
    return [(one.mime_type, one.data) for one in answer.content if isinstance(one, ImageContent)]
