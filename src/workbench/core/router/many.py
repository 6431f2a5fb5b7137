"""COMPOSIO_MULTI_EXECUTE_TOOL: calls side by side, each with an end of its own, and large answers in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from workbench.contracts.clock import Clock
from workbench.core.mounts import Mounts
from workbench.core.router import offloading
from workbench.core.router.meta import MOST_AT_ONCE
from workbench.core.router.offered import REMOTE_WORKBENCH
from workbench.errors import WorkbenchError
from workbench.model.session import Session
from workbench.model.toolkit import Json, ToolCall, ToolResult

# Of one call: all that it may have.
_SIDE_BY_SIDE = MOST_AT_ONCE

Run = Callable[[int], Awaitable[ToolResult]]
"""the call of that number to its end; a failure of any kind is in the result"""


@dataclass(frozen=True, slots=True)
class _Ended:
    call: ToolCall
    result: ToolResult


async def run_many(calls: Sequence[ToolCall], run: Run) -> list[_Ended]:
    """All of them, in their order."""
    room = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(number: int, call: ToolCall) -> _Ended:
        async with room:
            return _Ended(call, await run(number))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number, call)) for number, call in enumerate(calls)]
    return [task.result() for task in tasks]


def no_meta(slug: str) -> str:
    """For a tool that is not run so."""
    return f"{slug} is a meta tool, and is called by itself, not among others"


async def told(ended: Sequence[_Ended], session: Session, mounts: Mounts, clock: Clock, *, to_file: bool) -> ToolResult:
    """What is answered, with the whole in a file if that was asked for, or where it is too much to read."""
    most = session.spec.config.offload_characters
    entries = [_entry(number, one) for number, one in enumerate(ended)]
    is_large = [offloading.size_of(one.result.data) > most for one in ended]
    # Each may be small, and all of them still too much.
    if not any(is_large) and offloading.size_of(entries) > most:
        is_large = [bool(one.result.data) for one in ended]
    # Without a sandbox there is nobody who could read the file, unless it was asked for.
    wanted = to_file or (session.spec.config.sandbox.enable and any(is_large))
    data: Json = {"results": entries, **_counts(entries)}
    if wanted:
        try:
            file = await offloading.write(mounts, session, clock, "multi_execute", {"results": entries})
        except WorkbenchError as problem:
            data["remote_file_info"] = {"error": f"the answers could not be written to a file: {problem.message}"}
        else:
            data["remote_file_info"] = file
            if session.spec.config.sandbox.enable:
                data["results"] = [
                    _shortened(entry, file) if large else entry for entry, large in zip(entries, is_large, strict=True)
                ]
                data["next_steps"] = f"Read {file['file_path']} by {REMOTE_WORKBENCH}; it has all answers in full."
    failed = data["error_count"]
    error = f"all {failed} tools failed; each says why in `results`" if failed == len(entries) else ""
    return ToolResult(
        data=data,
        error=error,
        prompt_tokens=sum(one.result.prompt_tokens for one in ended),
        completion_tokens=sum(one.result.completion_tokens for one in ended),
    )


def _entry(number: int, ended: _Ended) -> Json:
    result = ended.result
    response: Json = {"successful": not result.error, "data": result.data, "log_id": result.log_id}
    if result.error:
        response["error"] = result.error
    return {"tool_slug": ended.call.slug, "index": number, "response": response, "error": result.error or None}


def _shortened(entry: Json, file: Json) -> Json:
    response = entry["response"]
    return {
        **entry,
        "response": {
            **{key: value for key, value in response.items() if key != "data"},
            "data": {},
            **offloading.preview(response["data"], file),
        },
    }


def _counts(entries: list[Json]) -> Json:
    failed = sum(one["error"] is not None for one in entries)
    return {"total_count": len(entries), "success_count": len(entries) - failed, "error_count": failed}


def calls_of(given: list[Json], session: Session) -> list[ToolCall]:
    """As they were asked for, and have been checked."""
    return [
        ToolCall(
            slug=one["tool_slug"].strip().upper(),
            arguments=one.get("arguments") or {},
            session=session,
            account=one.get("account") or "",
        )
        for one in given
    ]
