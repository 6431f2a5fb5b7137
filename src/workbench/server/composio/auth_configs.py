"""Auth configs, as clients of the sessions API ask for them: how accounts of a toolkit are connected."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core.connection_requests import AddAuthConfig, AuthConfigName, ListAccounts
from workbench.errors import InvalidRequest, NotFound
from workbench.model import connection as model
from workbench.model.connection import AuthConfigId, Secret
from workbench.model.ids import ProjectId
from workbench.model.toolkit import AuthField, AuthKind, Toolkit
from workbench.server.answers import answer
from workbench.server.auth import Administering, InProject
from workbench.server.composio.paging import Cursor, page_of
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.door import Door
from workbench.server.rest.sessions import noted
from workbench.wire import composio_accounts as wire

api = Api()

ConfigPath = Annotated[str, Path(min_length=1, max_length=200)]
_MOST, _DEFAULT = 1000, 20
# What is counted of one toolkit's accounts; a project that has more is told this.
_MOST_COUNTED = 10_000


@api.route(
    "POST",
    "/auth_configs",
    operation_id="api_create_auth_config",
    summary="Set up how accounts are connected",
    status=201,
    answers=wire.AuthConfigMade,
    responses=problems(*BODY, 404),
)
async def create(
    visit: Administering, sent: Annotated[wire.CreateAuthConfig, api_body(wire.CreateAuthConfig)]
) -> Response:
    """As which client accounts of a toolkit are connected by OAuth2, or that they are by a key."""
    project, wanted = visit.caller.project, sent.auth_config
    toolkit = await visit.door.service.connections.toolkit(project, sent.toolkit.slug.strip().lower())
    if wanted.type == "use_composio_managed_auth":
        raise InvalidRequest(
            f"there is no app of ours with {toolkit.name}; register one there, and give its `client_id` and "
            "`client_secret` with `type: use_custom_auth`",
            {"toolkit": toolkit.slug, "no_managed_auth": "yes"},
        )
    client = wanted.credentials or wire.Client()
    ask = AddAuthConfig(
        project=project,
        toolkit=toolkit.slug,
        kind=_kind(wanted.authScheme, toolkit),
        client_id=client.client_id or "",
        client_secret=Secret(client.client_secret or ""),
        scopes=_scopes(client.scopes),
    )
    async with noted(visit, "auth_config.create") as entry:
        config = await visit.door.service.connections.add_config(ask)
        entry.detail = f"{config.toolkit} {config.id}"
    return answer(
        wire.AuthConfigMade(
            toolkit=wire.ToolkitSlug(slug=config.toolkit),
            auth_config=wire.AuthConfigNamed(id=config.id, auth_scheme=config.kind),
        ),
        201,
    )


@api.route(
    "GET",
    "/auth_configs",
    operation_id="api_list_auth_configs",
    summary="List how accounts are connected",
    answers=wire.AuthConfigPage,
    responses=problems(),
)
async def list_configs(
    visit: InProject,
    toolkit_slug: Annotated[str | SkipJsonSchema[None], Query(description="Only of these, by commas.")] = None,
    search: Annotated[str | SkipJsonSchema[None], Query(description="Only whose name or id has this.")] = None,
    is_composio_managed: Annotated[
        Literal["true", "false"] | SkipJsonSchema[None], Query(description="None is managed by somebody else.")
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = _DEFAULT,
) -> Response:
    """A page of the project's, the newest first; without their secrets."""
    wanted = {slug.strip().lower() for slug in (toolkit_slug or "").split(",") if slug.strip()}
    found = [
        one
        for one in await visit.door.service.connections.configs(visit.caller.project)
        if (not wanted or one.toolkit in wanted)
        and (not search or search.lower() in f"{one.id} {_name(one)}".lower())
        and is_composio_managed != "true"
    ]
    page = page_of(found, cursor, limit)
    return answer(
        wire.AuthConfigPage(
            items=[await _shown(visit.door, visit.caller.project, one) for one in page.items],
            next_cursor=page.next_cursor,
            total_pages=page.total_pages,
            current_page=page.current_page,
            total_items=page.total_items,
        )
    )


@api.route(
    "GET",
    "/auth_configs/{auth_config_id}",
    operation_id="api_get_auth_config",
    summary="Look at how accounts are connected",
    answers=wire.AuthConfig,
    responses=problems(404),
)
async def get_config(visit: InProject, auth_config_id: ConfigPath) -> Response:
    """One, without its secret."""
    config = await visit.door.service.connections.config(_named(visit.caller.project, auth_config_id))
    return answer(await _shown(visit.door, visit.caller.project, config))


@api.route(
    "DELETE",
    "/auth_configs/{auth_config_id}",
    operation_id="api_delete_auth_config",
    summary="Remove a way to connect accounts",
    answers=wire.AuthConfigDeleted,
    responses=problems(404),
)
async def delete_config(visit: Administering, auth_config_id: ConfigPath) -> Response:
    """Accounts that were connected by it stay, and cannot be renewed any more."""
    async with noted(visit, "auth_config.remove") as entry:
        entry.detail = auth_config_id[:60]
        await visit.door.service.connections.remove_config(_named(visit.caller.project, auth_config_id))
    return answer(wire.AuthConfigDeleted(message=f"{auth_config_id} is removed."))


async def _shown(door: Door, project: ProjectId, config: model.AuthConfig) -> wire.AuthConfig:
    connections = door.service.connections
    of_toolkit = ListAccounts(project=project, toolkit=config.toolkit, limit=_MOST_COUNTED)
    active = [one for one in await connections.list(of_toolkit) if one.is_active and one.auth_config == config.id]
    try:
        toolkit: Toolkit | None = await connections.toolkit(project, config.toolkit)
    except NotFound:
        # It was removed since.
        toolkit = None
    scheme = next((one for one in toolkit.auth if one.kind is config.kind), None) if toolkit is not None else None
    return wire.AuthConfig(
        id=config.id,
        uuid=config.id,
        name=_name(config),
        auth_scheme=config.kind,
        toolkit=wire.ToolkitLogo(slug=config.toolkit, logo=toolkit.logo if toolkit is not None else ""),
        credentials={"client_id": config.client_id, "scopes": list(config.scopes)} if config.client_id else {},
        expected_input_fields=[_field(one) for one in scheme.fields] if scheme is not None else [],
        no_of_connections=len(active),
        created_at=config.created_at,
        last_updated_at=config.created_at,
    )


def _field(field: AuthField) -> dict[str, object]:
    return {
        "name": field.name,
        "displayName": field.label,
        "description": field.description,
        "type": "string",
        "required": field.is_required,
        "is_secret": field.is_secret,
    }


def _name(config: model.AuthConfig) -> str:
    return f"{config.toolkit} {config.kind.lower()} {config.id[-6:]}"


def _kind(given: str | None, toolkit: Toolkit) -> AuthKind:
    if given is not None:
        return AuthKind(given)
    return next((one.kind for one in toolkit.auth), AuthKind.NO_AUTH)


def _scopes(given: list[str] | str | None) -> tuple[str, ...]:
    several = given.replace(",", " ").split() if isinstance(given, str) else given or ()
    return tuple(filter(None, several))


def _named(project: ProjectId, config: str) -> AuthConfigName:
    return AuthConfigName(project=project, config=AuthConfigId(config))
