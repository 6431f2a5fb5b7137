"""How often mistakes of code were corrected."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from workbench.server.answers import answer
from workbench.server.auth import InProject
from workbench.server.routes import problems
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["corrections"])


@router.get(
    "/corrections",
    operation_id="count_corrections",
    summary="Count corrections",
    response_model=rest.RuleCounts,
    responses=problems(),
)
async def count(visit: InProject) -> Response:
    """How often each rule of the corrections had something to do in the project, since it is counted."""
    found = await visit.workbench.count_corrections()
    return answer(rest.RuleCounts(items=[rest.RuleCount.model_validate(one) for one in found]))
