"""Connected accounts, as clients of the sessions API ask for them: begun, looked at, listed, changed, renewed, taken
back, removed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query, Request
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core.connection_requests import (
    AccountName,
    AuthConfigName,
    BeginConnection,
    BegunConnection,
    ChangeAccount,
    ExchangeKey,
    ImportAccount,
    ListAccounts,
)
from workbench.errors import InvalidRequest
from workbench.model.connection import API_KEY, AccountId, AuthConfigId, ConnectedAccount, ConnectionStatus
from workbench.model.toolkit import AuthKind
from workbench.server.addresses import reached_by
from workbench.server.answers import answer
from workbench.server.auth import InProject
from workbench.server.composio.paging import Cursor, page_of
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.rest.sessions import noted
from workbench.wire import composio_accounts as accounts
from workbench.wire import composio_tools as wire

api = Api()

AccountPath = Annotated[str, Path(min_length=1, max_length=200)]
Names = Annotated[list[str] | SkipJsonSchema[None], Query(description="Only these; repeated, or with commas.")]
_MOST, _DEFAULT = 1000, 20
# What is held to be sorted and filtered; a project that has more asks by user.
_MOST_HELD = 10_000


@api.route(
    "GET",
    "/connected_accounts",
    operation_id="api_list_connected_accounts",
    summary="List connected accounts",
    answers=wire.ConnectedAccountPage,
    responses=problems(),
)
async def list_accounts(
    visit: InProject,
    user_ids: Names = None,
    toolkit_slugs: Names = None,
    statuses: Names = None,
    auth_config_ids: Names = None,
    connected_account_ids: Names = None,
    order_by: Literal["created_at", "updated_at"] = "created_at",
    order_direction: Literal["asc", "desc"] = "desc",
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = _DEFAULT,
) -> Response:
    """A page of the project's, the newest first unless asked otherwise."""
    users, kits = _several(user_ids), _several(toolkit_slugs)
    asked = ListAccounts(
        project=visit.caller.project,
        user=next(iter(users)) if len(users) == 1 else None,
        toolkit=next(iter(kits)).lower() if len(kits) == 1 else None,
        limit=_MOST_HELD,
    )
    wanted = {
        "user": users,
        "toolkit": {one.lower() for one in kits},
        "status": _several(statuses),
        "auth_config": _several(auth_config_ids),
        "id": _several(connected_account_ids),
    }
    found = [
        one
        for one in await visit.door.service.connections.list(asked)
        if all(not names or getattr(one, field) in names for field, names in wanted.items())
    ]
    found.sort(key=lambda one: (getattr(one, order_by), one.id), reverse=order_direction == "desc")
    page = page_of(found, cursor, limit)
    return answer(
        wire.ConnectedAccountPage(
            items=[shown_account(one) for one in page.items],
            next_cursor=page.next_cursor,
            total_pages=page.total_pages,
            current_page=page.current_page,
            total_items=page.total_items,
        )
    )


@api.route(
    "GET",
    "/connected_accounts/{account_id}",
    operation_id="api_get_connected_account",
    summary="Look at a connected account",
    answers=wire.ConnectedAccount,
    responses=problems(404),
)
async def get_account(visit: InProject, account_id: AccountPath) -> Response:
    """How it is, and never what it is called with."""
    return answer(shown_account(await visit.door.service.connections.get(_named(visit, account_id))))


@api.route(
    "DELETE",
    "/connected_accounts/{account_id}",
    operation_id="api_delete_connected_account",
    summary="Remove a connected account",
    answers=wire.AccountDeleted,
    responses=problems(404),
)
async def delete_account(visit: InProject, account_id: AccountPath) -> Response:
    """Forget it with its secrets, and have the service take its tokens back where that can be asked for."""
    async with noted(visit, "connection.remove") as entry:
        entry.detail = account_id[:60]
        await visit.door.service.connections.remove(_named(visit, account_id))
    return answer(wire.AccountDeleted(success=True))


@api.route(
    "POST",
    "/connected_accounts/{account_id}/refresh",
    operation_id="api_refresh_connected_account",
    summary="Renew a connected account",
    answers=wire.AccountRefreshed,
    responses=problems(404, 502),
)
async def refresh_account(visit: InProject, account_id: AccountPath) -> Response:
    """Ask the service for a new token now. Calls do so by themselves when it is due."""
    async with noted(visit, "connection.refresh") as entry:
        entry.detail = account_id[:60]
        account = await visit.door.service.connections.refresh(_named(visit, account_id))
    return answer(wire.AccountRefreshed(id=account.id, status=account.status.value))


@api.route(
    "POST",
    "/connected_accounts/{account_id}/revoke",
    operation_id="api_revoke_connected_account",
    summary="Take a connected account back",
    answers=accounts.AccountRevoked,
    responses=problems(404, 409),
)
async def revoke_account(visit: InProject, account_id: AccountPath) -> Response:
    """Have the service take its tokens back, and drop them here; the account stays, as revoked."""
    async with noted(visit, "connection.revoke") as entry:
        entry.detail = account_id[:60]
        account = await visit.door.service.connections.revoke(_named(visit, account_id))
    shown = shown_account(account)
    return answer(accounts.AccountRevoked(**shown.model_dump(), revoked_tokens=["credential"], connected_account=shown))


@api.route(
    "POST",
    "/connected_accounts/link",
    operation_id="api_link_account",
    summary="Begin to connect an account",
    status=201,
    answers=accounts.AccountLinked,
    responses=problems(*BODY, 404, 429),
)
async def link_account(
    request: Request, visit: InProject, sent: Annotated[accounts.LinkAccount, api_body(accounts.LinkAccount)]
) -> Response:
    """A link for a person, by an auth config. The account is `ACTIVE` once they have connected it."""
    ask = await _begin(visit, sent.auth_config_id, sent.user_id, sent.callback_url, sent.alias)
    begun = await _begun(visit, ask)
    return answer(
        accounts.AccountLinked(
            link_token=begun.token,
            redirect_url=f"{reached_by(request.scope, visit.door.options)}{begun.path}",
            connected_account_id=begun.account.id,
            expires_at=begun.expires_at,
        ),
        201,
    )


@api.route(
    "POST",
    "/connected_accounts",
    operation_id="api_create_connected_account",
    summary="Connect an account",
    status=201,
    answers=accounts.AccountCreated,
    responses=problems(*BODY, 404, 429),
)
async def create_account(
    request: Request, visit: InProject, sent: Annotated[accounts.CreateAccount, api_body(accounts.CreateAccount)]
) -> Response:
    """With a key that is known already; without one, a link for a person as `redirect_url`."""
    wanted, given = sent.connection, sent.connection.state
    ask = await _begin(visit, sent.auth_config.id, wanted.user_id, wanted.callback_url, wanted.alias)
    values = _values(given)
    if given is None or not values:
        begun = await _begun(visit, ask)
        return answer(_created(begun.account, f"{reached_by(request.scope, visit.door.options)}{begun.path}"), 201)
    if given.authScheme == AuthKind.OAUTH2:
        raise InvalidRequest(
            "tokens of OAuth2 are not taken from elsewhere: leave `connection.state` out, and the user connects the "
            "account at `redirect_url`",
            {"field": "connection.state"},
        )
    async with noted(visit, "connection.add", user=ask.user) as entry:
        known = ImportAccount(begin=ask, kind=AuthKind(given.authScheme), values=values)
        account = await visit.door.service.links.add(known)
        entry.detail = f"{account.toolkit} {account.id}"
    return answer(_created(account, None), 201)


@api.route(
    "PATCH",
    "/connected_accounts/{account_id}",
    operation_id="api_change_connected_account",
    summary="Change a connected account",
    answers=accounts.AccountChanged,
    responses=problems(*BODY, 404, 409),
)
async def change_account(
    visit: InProject,
    account_id: AccountPath,
    sent: Annotated[accounts.ChangeAccount, api_body(accounts.ChangeAccount)],
) -> Response:
    """Call it otherwise, or give it another key of the same kind."""
    named, service = _named(visit, account_id), visit.door.service
    async with noted(visit, "connection.change") as entry:
        entry.detail = account_id[:60]
        if sent.connection is not None:
            given = sent.connection.state
            await service.links.exchange(
                ExchangeKey(
                    project=named.project,
                    account=named.account,
                    kind=AuthKind(given.authScheme),
                    values=_values(given),
                )
            )
        change = ChangeAccount(project=named.project, account=named.account, alias=sent.alias)
        account = await service.connections.change(change)
    return answer(accounts.AccountChanged(id=account.id, status=account.status))


@api.route(
    "PATCH",
    "/connected_accounts/{account_id}/status",
    operation_id="api_switch_connected_account",
    summary="Switch a connected account off or on",
    answers=accounts.AccountSwitched,
    responses=problems(*BODY, 404, 409),
)
async def switch_account(
    visit: InProject,
    account_id: AccountPath,
    sent: Annotated[accounts.SwitchAccount, api_body(accounts.SwitchAccount)],
) -> Response:
    """What is off is kept with its secrets, and not used."""
    named = _named(visit, account_id)
    async with noted(visit, "connection.switch") as entry:
        entry.detail = f"{account_id[:60]} {'on' if sent.enabled else 'off'}"
        change = ChangeAccount(project=named.project, account=named.account, enabled=sent.enabled)
        await visit.door.service.connections.change(change)
    return answer(accounts.AccountSwitched())


async def _begin(
    visit: InProject, config: str, user: str, callback_url: str | None, alias: str | None
) -> BeginConnection:
    chosen = AuthConfigName(project=visit.caller.project, config=AuthConfigId(config))
    found = await visit.door.service.connections.config(chosen)
    return BeginConnection(
        project=visit.caller.project,
        user=user,
        toolkit=found.toolkit,
        callback_url=callback_url or "",
        alias=alias or "",
        auth_config=found.id,
    )


async def _begun(visit: InProject, ask: BeginConnection) -> BegunConnection:
    async with noted(visit, "connection.begin", user=ask.user) as entry:
        begun = await visit.door.service.links.begin(ask)
        entry.detail = f"{begun.account.toolkit} {begun.account.id}"
    return begun


def _values(given: accounts.Given | None) -> dict[str, str]:
    """By our names of them."""
    val = given.val if given is not None else {}
    values = {name: one for name, one in val.items() if isinstance(one, str) and name != "status"}
    if "generic_api_key" in values:
        values.setdefault(API_KEY, values.pop("generic_api_key"))
    return values


def _created(account: ConnectedAccount, redirect_url: str | None) -> accounts.AccountCreated:
    val = {"status": account.status.value}
    if redirect_url is not None:
        # By one name for OAuth2, and by the other for what is not sent anywhere, as clients read it.
        val |= {"redirectUrl": redirect_url, "redirect_url": redirect_url}
    return accounts.AccountCreated(
        id=account.id,
        status=account.status,
        redirect_url=redirect_url,
        redirect_uri=redirect_url,
        connectionData=accounts.ConnectionData(authScheme=account.kind, val=val),
    )


def shown_account(account: ConnectedAccount) -> wire.ConnectedAccount:
    """As the API tells it."""
    return wire.ConnectedAccount(
        id=account.id,
        status=account.status,
        status_reason=account.status_reason or None,
        user_id=account.user,
        alias=account.alias or None,
        toolkit=wire.ToolkitNamed(slug=account.toolkit, name=account.toolkit),
        auth_config=shown_config(account),
        created_at=account.created_at,
        updated_at=account.updated_at,
        is_disabled=account.status is ConnectionStatus.INACTIVE,
        state=wire.AccountState(authScheme=account.kind),
    )


def shown_config(account: ConnectedAccount) -> wire.AccountConfig:
    """By what it was connected."""
    return wire.AccountConfig(id=account.auth_config or "", auth_scheme=account.kind)


def _several(given: list[str] | None) -> set[str]:
    return {part.strip() for one in given or () for part in one.split(",") if part.strip()}


def _named(visit: InProject, account: str) -> AccountName:
    return AccountName(project=visit.caller.project, account=AccountId(account))
