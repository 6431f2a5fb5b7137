"""Keys of the caller's project, and tokens for one session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from workbench.core import requests
from workbench.local_sandbox import helper_source, variables
from workbench.model.ids import KeyId
from workbench.server.addresses import reached_by
from workbench.server.answers import answer
from workbench.server.auth import Administering, Anyone, OwningSession
from workbench.server.questions import body_of
from workbench.server.routes import BODY, problems
from workbench.server.translate import shown_key, shown_new_key, shown_token
from workbench.wire import rest

router = APIRouter(prefix="/v1", tags=["keys"])

KeyPath = Annotated[str, Path(min_length=1, max_length=48, pattern=r"^[a-z0-9]+$", examples=["5f1c0a9b7d3e"])]


@router.post(
    "/keys",
    operation_id="create_key",
    summary="Make a key",
    status_code=201,
    response_model=rest.NewKey,
    responses=problems(*BODY),
)
async def create(
    visit: Administering,
    sent: Annotated[rest.CreateKey, body_of(rest.CreateKey)] = rest.CreateKey(),  # noqa: B008
) -> Response:
    """A new key of the caller's project, with scopes that the caller has. It is shown this once."""
    request = requests.CreateKey(
        by=visit.caller,
        project=visit.caller.project,
        label=sent.label,
        scopes=frozenset(sent.scopes),
        lifetime_s=sent.lifetime_s,
    )
    return answer(shown_new_key(await visit.door.service.access.create_key(request)), 201)


@router.get("/keys", operation_id="list_keys", summary="List keys", response_model=rest.Keys, responses=problems())
async def list_(visit: Administering) -> Response:
    """Keys of the caller's project, also those that are no more good; without secrets."""
    page = await visit.door.service.access.list_keys(requests.ListKeys(by=visit.caller))
    return answer(rest.Keys(items=[shown_key(key) for key in page.keys]))


@router.delete(
    "/keys/{key_id}",
    operation_id="revoke_key",
    summary="Revoke a key or a token",
    response_model=rest.Key,
    responses=problems(404),
)
async def revoke(visit: Anyone, key_id: KeyPath) -> Response:
    """It is no good from now on. Keys need an admin; tokens do not, and a token may revoke itself."""
    request = requests.RevokeKey(by=visit.caller, key=KeyId(key_id))
    return answer(shown_key(await visit.door.service.access.revoke_key(request)))


@router.post(
    "/keys/{key_id}/rotate",
    operation_id="rotate_key",
    summary="Rotate a key",
    status_code=201,
    response_model=rest.NewKey,
    responses=problems(*BODY, 404, 409),
)
async def rotate(
    visit: Administering,
    key_id: KeyPath,
    sent: Annotated[rest.RotateKey, body_of(rest.RotateKey)] = rest.RotateKey(),  # noqa: B008
) -> Response:
    """A new key in its place; the old one stays good for a while, so that nothing stands still."""
    request = requests.RotateKey(by=visit.caller, key=KeyId(key_id), overlap_s=sent.overlap_s)
    return answer(shown_new_key(await visit.door.service.access.rotate_key(request)), 201)


@router.post(
    "/sessions/{session_id}/tokens",
    operation_id="create_token",
    summary="Make a token",
    status_code=201,
    response_model=rest.Token,
    responses=problems(*BODY, 404, 409),
)
async def create_token(
    visit: OwningSession,
    sent: Annotated[rest.CreateToken, body_of(rest.CreateToken)] = rest.CreateToken(),  # noqa: B008
) -> Response:
    """A token that is good for this session only, and for a while. It is shown this once."""
    request = requests.CreateToken(by=visit.caller, session=visit.session, lifetime_s=sent.lifetime_s)
    return answer(shown_token(await visit.door.service.access.create_token(request)), 201)


@router.post(
    "/sessions/{session_id}/local-sandbox",
    operation_id="create_local_sandbox",
    summary="Run it in a box of your own",
    status_code=201,
    response_model=rest.LocalSandbox,
    responses=problems(*BODY, 404, 409),
)
async def create_local_sandbox(
    request: Request,
    visit: OwningSession,
    sent: Annotated[rest.CreateLocalSandbox, body_of(rest.CreateLocalSandbox)] = rest.CreateLocalSandbox(),  # noqa: B008
) -> Response:
    """The helpers and a token for a box that you run, for a session whose sandbox is off. The token can do what this
    session can, is shown this once, and ends by itself, or when it is revoked.
    """
    wanted = requests.CreateLocalSandbox(by=visit.caller, session=visit.session, lifetime_s=sent.expires_in_s)
    made = await visit.door.service.access.create_local_sandbox(wanted)
    env = variables(
        address=reached_by(request.scope, visit.door.options),
        session=visit.session,
        mount=made.mount,
        token=made.token.presented,
    )
    key = made.token.key
    return answer(
        rest.LocalSandbox(helper_source=helper_source(), env=env, token_id=key.id, expires_at=key.expires_at), 201
    )
