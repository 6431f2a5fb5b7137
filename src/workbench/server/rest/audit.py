"""Who did what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from workbench.core import requests
from workbench.server.answers import answer
from workbench.server.auth import Administering
from workbench.server.routes import problems
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["audit"])


@router.get(
    "/audit", operation_id="list_audit", summary="Read the audit", response_model=rest.Audit, responses=problems()
)
async def list_(
    visit: Administering,
    before: Annotated[
        str,
        Query(
            max_length=40,
            pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}Z)?$",
            description="Only what came before this time: the `at` of the last entry of the page before.",
        ),
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Who made, changed and deleted sessions and keys of the project, newest first. Never what was in them."""
    found = await visit.door.service.access.list_audit(requests.ListAudit(by=visit.caller, before=before, limit=limit))
    return answer(rest.Audit(items=[rest.AuditEntry.model_validate(entry) for entry in found]))
