"""Toolkits that are added to a project."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from workbench.contracts.added import Standing
from workbench.core.toolkit_requests import AddToolkit, ListToolkits, ToolkitName
from workbench.server.answers import answer
from workbench.server.auth import Administering
from workbench.server.questions import body_of
from workbench.server.routes import BODY, problems
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["toolkits"])

SlugPath = Annotated[str, Path(min_length=1, max_length=40, pattern=r"^[a-z0-9][a-z0-9_]*$", examples=["my_tools"])]
# It asks others, who may fail.
_OTHERS = (429, 501, 502)


@router.post(
    "/toolkits",
    operation_id="add_toolkit",
    summary="Add a toolkit",
    status_code=201,
    response_model=rest.AddedToolkitWithTools,
    responses=problems(*BODY, *_OTHERS, 404, 409),
)
async def add(visit: Administering, sent: Annotated[rest.AddToolkit, body_of(rest.AddToolkit)]) -> Response:
    """From an MCP server, Composio or an OpenAPI document; it is tried first, and there for the next call."""
    given = sent.model_dump(exclude={"slug", "test"}, exclude_none=True)
    request = AddToolkit(by=visit.caller, slug=sent.slug, given=given, try_first=sent.test)
    return answer(_with_tools(await visit.door.service.toolkits.add(request)), 201)


@router.get(
    "/toolkits",
    operation_id="list_toolkits",
    summary="List toolkits that were added",
    response_model=rest.AddedToolkits,
    responses=problems(),
)
async def list_(visit: Administering) -> Response:
    """Those of the key's project and those for all, with how they are; without secrets."""
    found = await visit.door.service.toolkits.list(ListToolkits(by=visit.caller))
    return answer(rest.AddedToolkits(items=[rest.AddedToolkit.model_validate(_told(one)) for one in found.items]))


@router.get(
    "/toolkits/{slug}",
    operation_id="show_toolkit",
    summary="Show a toolkit that was added",
    response_model=rest.AddedToolkitWithTools,
    responses=problems(404),
)
async def show(visit: Administering, slug: SlugPath) -> Response:
    """With its tools."""
    return answer(_with_tools(await visit.door.service.toolkits.show(ToolkitName(by=visit.caller, slug=slug))))


@router.post(
    "/toolkits/{slug}/test",
    operation_id="test_toolkit",
    summary="Try a toolkit that was added",
    response_model=rest.AddedToolkitWithTools,
    responses=problems(*_OTHERS, 404, 409),
)
async def test(visit: Administering, slug: SlugPath) -> Response:
    """Reach it anew, by itself, and list its tools; what is wrong with it is the answer."""
    return answer(_with_tools(await visit.door.service.toolkits.test(ToolkitName(by=visit.caller, slug=slug))))


@router.delete(
    "/toolkits/{slug}",
    operation_id="remove_toolkit",
    summary="Remove a toolkit",
    status_code=204,
    responses=problems(404),
)
async def remove(visit: Administering, slug: SlugPath) -> Response:
    """It is gone for the next call, with its secrets."""
    await visit.door.service.toolkits.remove(ToolkitName(by=visit.caller, slug=slug))
    return Response(status_code=204)


def _told(standing: Standing) -> dict[str, object]:
    added = standing.added
    return {
        "slug": added.slug,
        "kind": added.kind.value,
        "project": added.project,
        "from_file": added.from_file,
        "added_at": added.added_at or None,
        "secrets": sorted(added.secrets),
        "tool_count": len(standing.tools),
        "problem": standing.problem,
        "refused": dict(standing.refused),
    }


def _with_tools(standing: Standing) -> rest.AddedToolkitWithTools:
    tools = [
        rest.ToolkitTool(slug=one.slug, name=one.name, description=one.description, tags=list(one.tags))
        for one in standing.tools
    ]
    return rest.AddedToolkitWithTools.model_validate({**_told(standing), "tools": tools})
