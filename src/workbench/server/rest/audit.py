"""Who did what."""

from __future__ import annotations

import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from workbench.core import requests
from workbench.errors import InvalidRequest
from workbench.model.ids import SessionId
from workbench.server.answers import answer
from workbench.server.auth import Administering
from workbench.server.routes import problems
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["audit"])

# All that a pattern can say about days; the 29th of February is looked at afterwards.
_LONG = "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
_SHORT = "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
_DATE = f"[1-9][0-9]{{3}}-({_LONG}|{_SHORT}|02-(0[1-9]|[12][0-9]))"
_OF_DAY = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"


@router.get(
    "/audit", operation_id="list_audit", summary="Read the audit", response_model=rest.Audit, responses=problems()
)
async def list_(
    visit: Administering,
    before: Annotated[
        str,
        Query(
            max_length=40,
            pattern=f"^({_DATE}T{_OF_DAY}Z)?$",
            description="Only what came before this time: the `at` of the last entry of the page before.",
        ),
    ] = "",
    session: Annotated[rest.SessionName | None, Query(description="Only what is about this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Who made, changed and deleted sessions and keys of the project, and what code in sessions asked of the workbench;
    newest first. Never what was in it.
    """
    about = SessionId(session) if session is not None else None
    ask = requests.ListAudit(by=visit.caller, before=_time(before), session=about, limit=limit)
    found = await visit.door.service.access.list_audit(ask)
    return answer(rest.Audit(items=[rest.AuditEntry.model_validate(entry) for entry in found]))


def _time(text: str) -> str:
    """As times are written down here, which are compared as text."""
    if not text:
        return ""
    try:
        # The pattern lets no other zone than UTC through.
        return datetime.datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        raise InvalidRequest(
            f"query parameter 'before': {text!r} is no time; send one like 2026-01-31T12:00:00.000000Z",
            {"parameter": "before"},
        ) from None
