"""Users: who they are is the caller's business; here they only have sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from workbench.core import requests
from workbench.server.answers import answer
from workbench.server.auth import Administering
from workbench.server.rest.sessions import noted
from workbench.server.routes import problems
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["users"])


@router.delete(
    # A user's name may have a slash in it.
    "/users/{user_id:path}",
    operation_id="delete_user",
    summary="Delete a user's data",
    response_model=rest.UserDeleted,
    responses=problems(409),
)
async def delete(
    visit: Administering, user_id: Annotated[rest.UserName, Path(description="In your words.")]
) -> Response:
    """All their sessions with files and history, their connections, and whatever is written down of them, for good."""
    # Without the name, which is to be forgotten.
    async with noted(visit, "user.delete"):
        await visit.door.service.connections.forget_user(visit.caller.project, user_id)
        deleted = await visit.workbench.delete_user(requests.DeleteUser(user=user_id))
    return answer(rest.UserDeleted(sessions=deleted))
