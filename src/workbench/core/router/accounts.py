"""Accounts of users, as far as the router is concerned with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from workbench.core.connection_links import ConnectionLinks
from workbench.core.connection_requests import AccountName, BeginConnection, BegunConnection, ChangeAccount
from workbench.core.connections import Connections
from workbench.errors import Denied, NotConfigured, NotFound
from workbench.model.connection import ConnectedAccount, Credential
from workbench.model.session import Session
from workbench.model.toolkit import Reach, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a session's user stands with a toolkit that needs an account."""

    reach: Reach
    accounts: tuple[ConnectedAccount, ...] = ()
    """those that the session may use, the usual one first; also such as are not good, if there are no others"""

    def names_of(self, account: str) -> tuple[str, ...]:
        """All names of the one that is used where a call names this, or none."""
        for one in self.accounts:
            if one.is_active and (not account or account in (one.id, one.alias)):
                return (one.id, one.alias) if one.alias else (one.id,)
        return ()


class Accounts(Protocol):
    """Of all users. Owned by who wired it."""

    async def standing(self, session: Session, toolkit: Toolkit) -> Standing:
        """How it is now."""
        ...

    async def standings(self, session: Session, toolkits: Sequence[Toolkit]) -> list[Standing]:
        """Of each, asked for at once."""
        ...

    async def credential_for(self, session: Session, toolkit: Toolkit, account: str) -> Credential:
        """To call with, made new if it has to be. `account` is an id or an alias; empty for the usual one.

        Raises:
            Denied: there is no account that is active; the message says what to do.
            InvalidRequest: there are several and one must be named, or no such one.
            UpstreamError: it had to be renewed, and the service could not be asked.
        """
        ...

    async def renewed(self, session: Session, toolkit: Toolkit, refused: Credential) -> Credential:
        """Another one of the same account, for one that the service refused.

        Raises:
            Denied: there is none.
            UpstreamError: the service could not be asked.
        """
        ...

    async def begin(
        self, session: Session, toolkit: Toolkit, *, callback_url: str = "", alias: str = ""
    ) -> BegunConnection:
        """A link by which the user connects an account.

        Raises:
            InvalidRequest: a value cannot be used.
            NotConfigured: accounts of it cannot be connected here yet; the message says what is missing.
            QuotaExceeded: the user has as many as the session allows.
        """
        ...

    async def rename(self, account: ConnectedAccount, alias: str) -> ConnectedAccount:
        """Call it so.

        Raises:
            NotFound: it is gone.
            InvalidRequest: it cannot be called so.
            Conflict: another one is.
        """
        ...

    async def remove(self, account: ConnectedAccount) -> bool:
        """Forget it with its secrets; whether its service was told. Raises: NotFound: it is gone."""
        ...


class UserAccounts:
    """Accounts by `core.connections`."""

    def __init__(self, connections: Connections, links: ConnectionLinks) -> None:
        self._connections = connections
        self._links = links

    async def standing(self, session: Session, toolkit: Toolkit) -> Standing:
        """As the protocol has it."""
        reach, accounts = await self._connections.standing(toolkit, session)
        return Standing(reach=reach, accounts=accounts)

    async def standings(self, session: Session, toolkits: Sequence[Toolkit]) -> list[Standing]:
        """As the protocol has it."""
        of = await self._connections.standings(session)
        return [Standing(reach=reach, accounts=accounts) for reach, accounts in map(of, toolkits)]

    async def credential_for(self, session: Session, toolkit: Toolkit, account: str) -> Credential:
        """As the protocol has it."""
        return await self._connections.credential_for(session, toolkit, account)

    async def renewed(self, session: Session, toolkit: Toolkit, refused: Credential) -> Credential:
        """As the protocol has it."""
        return await self._connections.renewed(session, toolkit, refused)

    async def begin(
        self, session: Session, toolkit: Toolkit, *, callback_url: str = "", alias: str = ""
    ) -> BegunConnection:
        """As the protocol has it."""
        spec = session.spec
        several = spec.config.multi_account
        most = several.max_accounts_per_toolkit if several is not None and several.enable else None
        return await self._links.begin(
            BeginConnection(
                project=spec.project,
                user=spec.user,
                toolkit=toolkit.slug,
                callback_url=callback_url,
                alias=alias,
                auth_config=spec.config.auth_config_of(toolkit.slug),
                most_accounts=most,
            )
        )

    async def rename(self, account: ConnectedAccount, alias: str) -> ConnectedAccount:
        """As the protocol has it."""
        asked = ChangeAccount(project=account.project, account=account.id, alias=alias)
        return await self._connections.change(asked)

    async def remove(self, account: ConnectedAccount) -> bool:
        """As the protocol has it."""
        return await self._connections.remove(AccountName(project=account.project, account=account.id))


class NoAccounts:
    """Where nobody can be connected."""

    async def standing(self, session: Session, toolkit: Toolkit) -> Standing:
        """None."""
        del session
        return Standing(reach=Reach(toolkit=toolkit.slug, is_active=False, words=_words(toolkit)))

    async def standings(self, session: Session, toolkits: Sequence[Toolkit]) -> list[Standing]:
        """None."""
        return [await self.standing(session, one) for one in toolkits]

    async def credential_for(self, session: Session, toolkit: Toolkit, account: str) -> Credential:
        """None. Raises: Denied."""
        del session, account
        raise Denied(_words(toolkit), {"toolkit": toolkit.slug})

    async def renewed(self, session: Session, toolkit: Toolkit, refused: Credential) -> Credential:
        """None. Raises: Denied."""
        del session, refused
        raise Denied(_words(toolkit), {"toolkit": toolkit.slug})

    async def begin(
        self, session: Session, toolkit: Toolkit, *, callback_url: str = "", alias: str = ""
    ) -> BegunConnection:
        """None. Raises: NotConfigured."""
        del session, callback_url, alias
        raise NotConfigured(_words(toolkit), {"toolkit": toolkit.slug})

    async def rename(self, account: ConnectedAccount, alias: str) -> ConnectedAccount:
        """None. Raises: NotFound."""
        del alias
        raise NotFound(f"no connected account {account.id!r} here")

    async def remove(self, account: ConnectedAccount) -> bool:
        """None. Raises: NotFound."""
        raise NotFound(f"no connected account {account.id!r} here")


def _words(toolkit: Toolkit) -> str:
    return f"no account of {toolkit.slug} can be connected on this workbench"
