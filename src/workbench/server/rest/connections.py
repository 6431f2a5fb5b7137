"""Connected accounts of users, and the clients by which they are connected."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core import connection_requests as requests
from workbench.model import connection as model
from workbench.model.connection import AccountId, AuthConfigId, Secret
from workbench.server.addresses import reached_by
from workbench.server.answers import answer, nothing
from workbench.server.auth import Administering, InProject
from workbench.server.questions import body_of
from workbench.server.rest.sessions import noted
from workbench.server.routes import BODY, problems
from workbench.server.translate import ACCOUNT_CURSOR, account_cursor, after_account
from workbench.wire import rest
from workbench.wire import rest_connections as wire

router = APIRouter(prefix="/v1", tags=["connections"])

AccountPath = Annotated[wire.AccountName, Path(description="Its id.")]
ConfigPath = Annotated[wire.ConfigName, Path(description="Its id.")]


@router.post(
    "/connections",
    operation_id="begin_connection",
    summary="Begin to connect an account",
    status_code=201,
    response_model=wire.ConnectionBegun,
    responses=problems(*BODY, 404, 429, 501),
)
async def begin(
    request: Request, visit: InProject, sent: Annotated[wire.BeginConnection, body_of(wire.BeginConnection)]
) -> Response:
    """A link for a person, who connects an account of theirs in a browser. The connection is `ACTIVE` once they did."""
    ask = requests.BeginConnection(
        project=visit.caller.project,
        user=sent.user_id,
        toolkit=sent.toolkit,
        callback_url=sent.callback_url or "",
        alias=sent.alias,
        auth_config=sent.auth_config_id or "",
    )
    async with noted(visit, "connection.begin", user=sent.user_id) as entry:
        begun = await visit.door.service.links.begin(ask)
        entry.detail = f"{begun.account.toolkit} {begun.account.id}"
    url = f"{reached_by(request.scope, visit.door.options)}{begun.path}"
    return answer(wire.ConnectionBegun(url=url, connection=shown(begun.account)), 201)


@router.get(
    "/connections",
    operation_id="list_connections",
    summary="List connected accounts",
    response_model=wire.ConnectionPage,
    responses=problems(),
)
async def list_(
    visit: InProject,
    user_id: Annotated[rest.UserName | SkipJsonSchema[None], Query(description="Only those of this user.")] = None,
    toolkit: Annotated[wire.ToolkitName | SkipJsonSchema[None], Query(description="Only those of this one.")] = None,
    cursor: Annotated[
        Annotated[str, Field(pattern=ACCOUNT_CURSOR)] | SkipJsonSchema[None],
        Query(description="The `next_cursor` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """A page of the project's, oldest first; also those that are not good any more."""
    found = await visit.door.service.connections.list(
        requests.ListAccounts(
            project=visit.caller.project, user=user_id, toolkit=toolkit, after=after_account(cursor), limit=limit
        )
    )
    return answer(wire.ConnectionPage(items=[shown(one) for one in found], next_cursor=account_cursor(found, limit)))


@router.get(
    "/connections/{connection_id}",
    operation_id="get_connection",
    summary="Look at a connected account",
    response_model=wire.Connection,
    responses=problems(404),
)
async def get(visit: InProject, connection_id: AccountPath) -> Response:
    """How it is now."""
    return answer(shown(await visit.door.service.connections.get(_named(visit, connection_id))))


@router.post(
    "/connections/{connection_id}/refresh",
    operation_id="refresh_connection",
    summary="Renew a connected account",
    response_model=wire.Connection,
    responses=problems(404, 502),
)
async def refresh(visit: InProject, connection_id: AccountPath) -> Response:
    """Ask the service for a new token now. Calls do so by themselves when it is due."""
    async with noted(visit, "connection.refresh") as entry:
        entry.detail = connection_id
        account = await visit.door.service.connections.refresh(_named(visit, connection_id))
    return answer(shown(account))


@router.delete(
    "/connections/{connection_id}",
    operation_id="remove_connection",
    summary="Remove a connected account",
    response_model=wire.ConnectionRemoved,
    responses=problems(404),
)
async def remove(visit: InProject, connection_id: AccountPath) -> Response:
    """Forget it with its secrets, and have the service take its tokens back where that can be asked for."""
    async with noted(visit, "connection.remove") as entry:
        entry.detail = connection_id
        told = await visit.door.service.connections.remove(_named(visit, connection_id))
    return answer(wire.ConnectionRemoved(told_service=told))


@router.post(
    "/auth-configs",
    operation_id="create_auth_config",
    summary="Set up a client for OAuth2",
    status_code=201,
    response_model=wire.AuthConfig,
    responses=problems(*BODY, 404),
)
async def create_config(
    visit: Administering, sent: Annotated[wire.CreateAuthConfig, body_of(wire.CreateAuthConfig)]
) -> Response:
    """As which client accounts of a toolkit are connected from now on; the service is told `…/connect/callback`."""
    ask = requests.AddAuthConfig(
        project=visit.caller.project,
        toolkit=sent.toolkit,
        client_id=sent.client_id,
        client_secret=Secret(sent.client_secret),
        scopes=tuple(sent.scopes),
    )
    async with noted(visit, "auth_config.create") as entry:
        config = await visit.door.service.connections.add_config(ask)
        entry.detail = f"{config.toolkit} {config.id}"
    return answer(_shown_config(config), 201)


@router.get(
    "/auth-configs",
    operation_id="list_auth_configs",
    summary="List clients for OAuth2",
    response_model=wire.AuthConfigs,
    responses=problems(),
)
async def list_configs(visit: InProject) -> Response:
    """Those of the project, newest first; without their secrets."""
    found = await visit.door.service.connections.configs(visit.caller.project)
    return answer(wire.AuthConfigs(items=[_shown_config(one) for one in found]))


@router.delete(
    "/auth-configs/{auth_config_id}",
    operation_id="remove_auth_config",
    summary="Remove a client for OAuth2",
    status_code=204,
    responses=problems(404),
)
async def remove_config(visit: Administering, auth_config_id: ConfigPath) -> Response:
    """Accounts that were connected by it cannot be renewed any more."""
    named = requests.AuthConfigName(project=visit.caller.project, config=AuthConfigId(auth_config_id))
    async with noted(visit, "auth_config.remove") as entry:
        entry.detail = auth_config_id
        await visit.door.service.connections.remove_config(named)
    return nothing()


def shown(account: model.ConnectedAccount) -> wire.Connection:
    """As REST tells it."""
    return wire.Connection(
        id=account.id,
        user_id=account.user,
        toolkit=account.toolkit,
        alias=account.alias,
        auth_config_id=account.auth_config,
        kind=account.kind,
        status=account.status,
        status_reason=account.status_reason,
        scopes=list(account.scopes),
        created_at=account.created_at,
        updated_at=account.updated_at,
        expires_at=account.expires_at,
        label=account.label,
    )


def _named(visit: InProject, account: str) -> requests.AccountName:
    return requests.AccountName(project=visit.caller.project, account=AccountId(account))


def _shown_config(config: model.AuthConfig) -> wire.AuthConfig:
    return wire.AuthConfig(
        id=config.id,
        toolkit=config.toolkit,
        kind=config.kind,
        client_id=config.client_id,
        scopes=list(config.scopes),
        created_at=config.created_at,
    )
