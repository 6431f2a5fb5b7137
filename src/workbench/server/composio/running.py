"""Calls of tools that are awaited: one that is sent twice is made once, and one that takes long shows signs of life."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from workbench.core.router.meta import SANDBOX_TOOLS
from workbench.core.router.router import Execute, Outcome
from workbench.errors import InternalError, QuotaExceeded, ServerUnavailable, Unauthenticated, WorkbenchError
from workbench.model.approval import InputRequired
from workbench.model.toolkit import Tool, ToolResult
from workbench.server.answers import JSON
from workbench.server.composio.sandbox_tools import SandboxTools
from workbench.server.door import Visit
from workbench.server.heartbeat import Ending, Slow, is_quick
from workbench.server.rest.sessions import noted
from workbench.wire import composio_custom as custom

Shown = Callable[[Outcome], BaseModel]
_FAILED = "failed"
_CUSTOM = "custom"
# Anything else is no name, and would be foreign words in the audit.
_SLUG = re.compile(r"[A-Z0-9_]{1,100}")


async def answered(visit: Visit, mark: str, work: Callable[[], Coroutine[Any, Any, Outcome]], shown: Shown) -> Response:
    """What it came to. What is refused within a moment has its own status; later, it is a result that failed."""

    async def counted() -> Outcome:
        assert visit.note.counted is not None, "the front counts all that it lets in"
        with visit.note.counted.going_on():
            return await work()

    task = visit.door.joining.start(mark, counted, "tool")
    if not await is_quick(task):
        return Slow(visit, task, functools.partial(_told, visit, task, shown))
    result = task.result()
    visit.note.outcome = _word(result)
    return Response(_written(shown(result)), media_type=JSON)


async def _told(visit: Visit, task: asyncio.Task[Outcome], shown: Shown, ending: Ending) -> bytes:
    result = _known(visit, task, ending)
    return _written(shown(result)).encode()


def _written(model: BaseModel) -> str:
    optional: frozenset[str] = getattr(model, "LEFT_OUT", frozenset())
    return model.model_dump_json(exclude={name for name in optional if getattr(model, name) is None})


def _known(visit: Visit, task: asyncio.Task[Outcome], ending: Ending) -> Outcome:
    if ending is Ending.SHUT_OUT:
        visit.note.outcome = Unauthenticated.code
        return _only("the key was revoked meanwhile, or has expired. The call goes on; ask with another key")
    if ending is Ending.OUT_OF_TIME or task.cancelled():
        visit.note.outcome = ServerUnavailable.code
        return _only("the server stops before this has ended. It may go on without it: look before you ask again")
    problem = task.exception()
    if problem is None:
        visit.note.outcome = _word(task.result())
        return task.result()
    if isinstance(problem, WorkbenchError):
        visit.note.outcome = problem.code
        return _only(f"not run: {problem.message}")
    # Not an answer that breaks off: its client would send the call again.
    visit.note.outcome = InternalError.code
    return _only(f"the server has a defect here; tell who runs it the request id {visit.note.request_id}")


def _only(error: str) -> ToolResult:
    return ToolResult(data={}, error=error)


def _word(outcome: Outcome) -> str:
    if isinstance(outcome, InputRequired):
        return "input_required"
    return _FAILED if outcome.error else "ok"


async def executed(visit: Visit, request: Execute) -> Outcome:
    """Run it, and write it down; cells have a history of their own."""
    router, sandbox = visit.door.service.router, SandboxTools(visit)
    if request.slug in SANDBOX_TOOLS:
        return await router.execute(request, sandbox)
    spec = request.session.spec
    async with noted(visit, "tool.execute", spec.id, spec.user) as entry:
        entry.detail = request.slug if _SLUG.fullmatch(request.slug) else "no name of a tool"
        try:
            result = await router.execute(request, sandbox)
        except QuotaExceeded:
            # BARRIER: who is refused again and again would fill the audit; held by
            # tests/composio/tools/test_execute.py.
            entry.is_news = router.is_news(request.session)
            raise
        entry.outcome = _word(result)
    if isinstance(result, ToolResult):
        visit.door.metrics.tokens(result.prompt_tokens, result.completion_tokens)
    return result


def own_tools(sent: custom.CustomTools | None) -> tuple[Tool, ...]:
    """Those that came with a request, as the router knows tools."""
    if sent is None:
        return ()
    alone = [(one, one.extends_toolkit or _CUSTOM) for one in custom.named_tools(sent)]
    together = [(one, kit.slug) for kit in custom.named_toolkits(sent) for one in kit.tools]
    return tuple(
        Tool(
            slug=one.slug,
            name=one.name,
            description=one.description,
            toolkit=toolkit.lower(),
            input_schema=one.input_schema,
            output_schema=one.output_schema or {"type": "object", "properties": {}},
            no_auth=True,
        )
        for one, toolkit in (*alone, *together)
    )
