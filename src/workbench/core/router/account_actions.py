"""What COMPOSIO_MANAGE_CONNECTIONS does with accounts that there are: list, rename and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.core.router.accounts import Accounts, Standing
from workbench.errors import Denied, InvalidRequest
from workbench.model.connection import ConnectedAccount
from workbench.model.session import Session
from workbench.model.toolkit import Json, Toolkit

INITIATE, LIST, RENAME, REMOVE = "initiate", "list", "rename", "remove"
ACTIONS = (INITIATE, LIST, RENAME, REMOVE)
_MOST_TOLD = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for of one toolkit."""

    toolkit: str
    """the slug of it"""
    action: str = INITIATE
    account: str = ""
    """an id or an alias"""
    alias: str | None = None
    """what it is to be called from now on"""


def wishes_of(given: Sequence[str | Mapping[str, Any]]) -> list[Wish]:
    """Each once, in their order. Raises: InvalidRequest: one toolkit is named twice, for different things."""
    found: dict[str, Wish] = {}
    for one in given:
        wish = _wish(one)
        if found.setdefault(wish.toolkit, wish) != wish:
            raise InvalidRequest(
                f"`toolkits` names {wish.toolkit[:60]} twice, for different things: ask for one of them at a time",
                {"toolkit": wish.toolkit[:60]},
            )
    return list(found.values())


def _wish(given: str | Mapping[str, Any]) -> Wish:
    if isinstance(given, str):
        return Wish(toolkit=given.strip().lower())
    return Wish(
        toolkit=given["toolkit"].strip().lower(),
        action=given.get("action") or INITIATE,
        account=given.get("account") or "",
        alias=given.get("alias"),
    )


async def done(accounts: Accounts, session: Session, toolkit: Toolkit, wish: Wish, *, for_code: bool) -> Json:
    """What became of one that is not to begin anything.

    Raises:
        Denied: the session may not.
        InvalidRequest: no such account, or it has to be named.
        Conflict: another one is called so.
    """
    standing = await accounts.standing(session, toolkit)
    if wish.action == LIST:
        return {**_state(toolkit, standing), "accounts": [_told(one) for one in standing.accounts[:_MOST_TOLD]]}
    # BARRIER: code that somebody sent an agent would take the user's accounts away, or give one the name of another;
    # held by tests/composio/tools/apps/test_managing.py.
    if for_code:
        raise Denied("code does not rename or remove accounts: the agent or the user does", {"toolkit": toolkit.slug})
    account = _named(toolkit, wish, standing.accounts)
    if wish.action == RENAME:
        if wish.alias is None:
            raise InvalidRequest("`alias` is missing: what the account is to be called", {"field": "alias"})
        renamed = await accounts.rename(account, wish.alias)
        after = await accounts.standing(session, toolkit)
        return {
            **_state(toolkit, after),
            "status": "renamed",
            "connected_account_id": account.id,
            "alias": renamed.alias,
        }
    if not session.spec.config.manage_connections.connection_removal:
        raise Denied(
            f"connections are not removed in session {session.spec.id}, whose "
            "`manage_connections.enable_connection_removal` is false; the user removes them elsewhere",
            {"toolkit": toolkit.slug},
        )
    was_told = await accounts.remove(account)
    after = await accounts.standing(session, toolkit)
    told = f"{toolkit.name} was told to take its access back." if was_told else f"{toolkit.name} could not be told."
    return {
        **_state(toolkit, after),
        "status": "removed",
        "connected_account_id": account.id,
        "instruction": f"The account is removed here with its secrets. {told}",
    }


def _state(toolkit: Toolkit, standing: Standing) -> Json:
    waiting = any(one.status == "INITIATED" for one in standing.accounts)
    status = "active" if standing.reach.is_active else "initiated" if waiting else "failed"
    return {
        "toolkit": toolkit.slug,
        "status": status,
        "has_active_connection": standing.reach.is_active,
        "instruction": standing.reach.words,
    }


def _told(account: ConnectedAccount) -> Json:
    return {
        "id": account.id,
        "alias": account.alias,
        "name": account.label,
        "status": account.status.value,
        "created_at": account.created_at,
    }


def _named(toolkit: Toolkit, wish: Wish, there: Sequence[ConnectedAccount]) -> ConnectedAccount:
    # BARRIER: only what the session may use itself: an id of somebody else's is none here; held by
    # tests/composio/tools/apps/test_managing.py.
    found = [one for one in there if wish.account in (one.id, one.alias)] if wish.account else list(there)
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{one.id} ({one.alias})" if one.alias else one.id for one in there[:_MOST_TOLD]) or "none"
    if not wish.account and there:
        raise InvalidRequest(
            f"the user has several accounts of {toolkit.slug}: name one as `account`: {known}", {"field": "account"}
        )
    raise InvalidRequest(
        f"no account {wish.account[:100]!r} of {toolkit.slug} here for this user; there are: {known}",
        {"field": "account"},
    )
