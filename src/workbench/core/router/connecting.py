"""COMPOSIO_MANAGE_CONNECTIONS and COMPOSIO_WAIT_FOR_CONNECTIONS: how the session's user is connected with toolkits."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.contracts.clock import Clock
from workbench.core.connection_requests import BegunConnection
from workbench.core.connections import LINK_LIFE_S
from workbench.core.router.account_actions import INITIATE, Wish, done, wishes_of
from workbench.core.router.accounts import Accounts, Standing
from workbench.core.router.catalogue import Catalogue, is_enabled
from workbench.core.router.offered import WAIT_FOR_CONNECTIONS, offered
from workbench.core.router.rules import Rules
from workbench.errors import Denied, InvalidRequest, NotConfigured, NotFound, WorkbenchError
from workbench.model.connection import ConnectedAccount, ConnectionStatus
from workbench.model.session import Session
from workbench.model.toolkit import Json, Reach, Toolkit

# Clients of MCP give up after a minute; whoever wants to wait longer asks again.
_WAIT_S, _PAUSE_S = 50.0, 1.0
_MOST_ACCOUNTS = 10
_NO_ACCOUNT = "It needs no account, and can be used right away."
_NOT_FOUND = "NOT_FOUND"
_NO_SERVER = (
    "a link to connect {slug} by needs a workbench server that it leads to, and none runs here: start one by "
    "`workbench serve`, or connect it by `workbench connect {slug} --user {user}`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitState:
    """A toolkit as a session sees it."""

    toolkit: Toolkit
    is_enabled: bool
    connection: Reach
    account: ConnectedAccount | None = None
    """the usual one, be it good or not"""


class Connecting:
    """Asks the catalogue, and whoever knows the accounts, for sessions."""

    def __init__(self, catalogue: Catalogue, accounts: Accounts, clock: Clock) -> None:
        self._catalogue = catalogue
        self._accounts = accounts
        self._clock = clock

    async def states(self, session: Session) -> list[ToolkitState]:
        """Of every toolkit there is, by slug."""
        toolkits = await self._catalogue.of(session.spec.project).toolkits()
        rules = Rules(session.spec.config)
        standings = await self._accounts.standings(session, toolkits)
        return [
            ToolkitState(
                toolkit=toolkit,
                is_enabled=not rules.why_not_toolkit(toolkit),
                connection=_usable(toolkit) if toolkit.no_auth else standing.reach,
                account=standing.accounts[0] if standing.accounts and not toolkit.no_auth else None,
            )
            for toolkit, standing in zip(toolkits, standings, strict=True)
        ]

    async def begin(
        self, session: Session, toolkit: str, *, callback_url: str = "", alias: str = ""
    ) -> BegunConnection:
        """A link by which the user connects an account.

        Raises:
            InvalidRequest: the toolkit needs none.
            NotFound: there is no such toolkit.
            NotConfigured: its accounts cannot be connected here.
            Denied: the session may not use it.
            QuotaExceeded: the user has as many as the session allows.
        """
        found = await self._catalogue.of(session.spec.project).toolkit(toolkit.strip().lower())
        if found.no_auth:
            raise InvalidRequest(
                f"the toolkit {found.slug} needs no account, so there is nothing to connect; call its tools",
                {"toolkit": found.slug, "no_auth": "yes"},
            )
        if not is_enabled(session.spec.config, found):
            raise Denied(
                f"the toolkit {found.slug} is not enabled in session {session.spec.id}, so nothing is connected for it",
                {"toolkit": found.slug},
            )
        callback = callback_url or session.spec.config.manage_connections.callback_url
        return await self._accounts.begin(session, found, callback_url=callback, alias=alias)

    async def manage(
        self,
        session: Session,
        toolkits: Sequence[str | Mapping[str, Any]],
        address: str,
        *,
        anew: bool = False,
        for_code: bool = False,
    ) -> Json:
        """What agents are told: which are connected, and links for those that are not; `anew` for those that are.
        Links lead to `address`. What is asked for as an object may be to list, rename or remove accounts.
        """
        results = {
            wish.toolkit: await self._managed(session, wish, address, anew=anew, for_code=for_code)
            for wish in wishes_of(toolkits)
        }
        counts = {
            status: sum(one["status"] == status for one in results.values())
            for status in ("active", "initiated", "failed")
        }
        usable = sum(one["has_active_connection"] for one in results.values())
        message = f"{usable} of {len(results)} toolkits can be used."
        if counts["initiated"]:
            wait = WAIT_FOR_CONNECTIONS in offered(session.spec.config)
            then = f"call {WAIT_FOR_CONNECTIONS}" if wait else "ask them to say when it is done"
            message += f" Give each `redirect_url` to the user, and {then}."
        return {
            "message": message,
            "results": results,
            "summary": {
                "total_toolkits": len(results),
                "active_connections": counts["active"],
                "initiated_connections": counts["initiated"],
                "failed_connections": counts["failed"],
            },
        }

    async def _managed(self, session: Session, wish: Wish, address: str, *, anew: bool, for_code: bool) -> Json:
        slug = wish.toolkit
        try:
            toolkit = await self._catalogue.of(session.spec.project).toolkit(slug)
            if wish.action != INITIATE and not toolkit.no_auth:
                return await done(self._accounts, session, toolkit, wish, for_code=for_code)
            standing = await standing_of(self._accounts, session, toolkit)
            # One that is to be called otherwise than those there are is another one.
            more = bool(wish.alias) and all(one.alias != wish.alias for one in standing.accounts if one.is_active)
            if standing.reach.is_active and (toolkit.no_auth or not (anew or more)):
                return _active(slug, standing)
            if not address:
                raise NotConfigured(_NO_SERVER.format(slug=slug, user=shlex.quote(session.spec.user)))
            begun = await self.begin(session, slug, alias=wish.alias or "")
        except WorkbenchError as problem:
            return {
                "toolkit": slug,
                "status": "failed",
                "has_active_connection": False,
                "error_message": problem.message,
            }
        return {
            "toolkit": slug,
            "status": "initiated",
            "has_active_connection": standing.reach.is_active,
            "redirect_url": f"{address}{begun.path}",
            "connected_account_id": begun.account.id,
            "created_at": begun.account.created_at,
            "was_reinitiated": bool(standing.accounts),
            "instruction": f"The user opens redirect_url in a browser and connects {slug} there; the link is good for "
            f"{LINK_LIFE_S / 60:g} minutes, once.",
        }

    async def wait(self, session: Session, toolkits: Sequence[str], *, for_all: bool = False) -> Json:
        """Until one of them can be used, or all, or nothing can change any more; not longer than a minute."""
        slugs, until = _slugs(toolkits), self._clock.monotonic() + _WAIT_S
        while True:
            results = {slug: await self._waited(session, slug) for slug in slugs}
            active = sum(one["status"] == ConnectionStatus.ACTIVE for one in results.values())
            under_way = sum(one["status"] == ConnectionStatus.INITIATED for one in results.values())
            if active == len(results) or not under_way or (active and not for_all):
                break
            if self._clock.monotonic() >= until:
                break
            await self._clock.pause(_PAUSE_S)
        words = f"{under_way} not finished yet; ask again" if under_way else "nothing is under way for the others"
        done = f"{active} of {len(results)} toolkits are connected"
        return {"message": f"{done}." if active == len(results) else f"{done}; {words}.", "results": results}

    async def _waited(self, session: Session, slug: str) -> Json:
        try:
            toolkit = await self._catalogue.of(session.spec.project).toolkit(slug)
        except NotFound as problem:
            return {"toolkit": slug, "status": _NOT_FOUND, "error_message": problem.message}
        standing = await standing_of(self._accounts, session, toolkit)
        if standing.reach.is_active:
            return {**_active(slug, standing), "status": str(ConnectionStatus.ACTIVE)}
        if not standing.accounts:
            return {"toolkit": slug, "status": _NOT_FOUND, "error_message": standing.reach.words}
        account = standing.accounts[0]
        is_waiting = account.status is ConnectionStatus.INITIATED
        return {
            "toolkit": slug,
            "status": str(ConnectionStatus.INITIATED if is_waiting else ConnectionStatus.FAILED),
            "connected_account_id": account.id,
            "has_active_connection": False,
            "error_message": standing.reach.words,
        }


async def standing_of(accounts: Accounts, session: Session, toolkit: Toolkit) -> Standing:
    """Also for toolkits that need no account."""
    if toolkit.no_auth:
        return Standing(reach=_usable(toolkit))
    return await accounts.standing(session, toolkit)


def _usable(toolkit: Toolkit) -> Reach:
    """For one that needs no account."""
    return Reach(toolkit=toolkit.slug, is_active=True, words=_NO_ACCOUNT)


def _active(slug: str, standing: Standing) -> Json:
    told: Json = {
        "toolkit": slug,
        "status": "active",
        "has_active_connection": True,
        "instruction": standing.reach.words,
    }
    active = [one for one in standing.accounts if one.is_active]
    if active:
        told |= {"connected_account_id": active[0].id, "created_at": active[0].created_at}
        if active[0].label:
            told["current_user_info"] = {"name": active[0].label}
    if len(active) > 1:
        told["accounts"] = accounts_told(active)
    return told


def accounts_told(accounts: Sequence[ConnectedAccount]) -> list[Json]:
    """By which names they are passed as `account`."""
    return [
        {"id": one.id, **({"alias": one.alias} if one.alias else {}), **({"name": one.label} if one.label else {})}
        for one in accounts[:_MOST_ACCOUNTS]
    ]


def _slugs(toolkits: Sequence[str]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys(slug.strip().lower() for slug in toolkits))
