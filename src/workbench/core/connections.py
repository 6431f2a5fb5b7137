"""Connections: which accounts users have with services, and the credential that a call is made with.

How an account comes to be connected is in `connection_links`. Credentials are unsealed for the moment of a call, and
renewed when they are due: by one at a time, also among processes, as many services take a refresh token only once.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.connections import AccountsRequest, ConnectionStore, KeptAccount, TokenEndpoints, Vault
from workbench.contracts.service_calls import ServiceCalls
from workbench.core import identity, oauth
from workbench.core.connection_requests import AccountName, AddAuthConfig, AuthConfigName, ChangeAccount, ListAccounts
from workbench.core.sealing import AccountSecrets, Sealing
from workbench.errors import (
    Conflict,
    Denied,
    InvalidRequest,
    NotConfigured,
    NotFound,
    UpstreamError,
    UpstreamUnavailable,
    WorkbenchError,
)
from workbench.model.connection import (
    ACCESS_TOKEN,
    NOT_CONNECTED,
    AccountId,
    AuthConfig,
    AuthConfigId,
    ConnectedAccount,
    ConnectionStatus,
    Credential,
    Secret,
    checked_alias,
    new_auth_config_id,
)
from workbench.model.ids import ProjectId
from workbench.model.session import Session
from workbench.model.toolkit import AuthKind, AuthScheme, OAuthEndpoints, Reach, Toolkit

LINK_LIFE_S = 1800.0
"""how long a link to connect by is good"""
_DUE_S = 60.0
# A refresh is one bounded request; who was killed in the middle of one keeps the others waiting no longer than this.
_HOLD_S = 60.0
_WAIT_S, _PAUSE_S = 45.0, 0.2
# Services that do not answer keep nobody from being forgotten.
_FORGET_S = 60.0
_OFF = "it was switched off; switch it on again to use it"
_LABEL_S = 5.0
_UNUSED = "its link was not used in time; ask for another"
MOST_ACCOUNTS = 1000
"""of one user's with one toolkit"""
_MOST_CLIENT = 2000

FindToolkit = Callable[[ProjectId, str], Awaitable[Toolkit]]
"""of a project, by slug; raises NotFound"""


class Connections:
    """Accounts and auth configs of all projects. Owns nothing that runs."""

    def __init__(
        self,
        *,
        store: ConnectionStore,
        vault: Vault,
        endpoints: TokenEndpoints,
        clock: Clock,
        find_toolkit: FindToolkit,
        services: ServiceCalls | None = None,
    ) -> None:
        """`services` are asked who an account is, where a toolkit says how; nobody without them."""
        self._store = store
        self._sealing = Sealing(vault)
        self._vault = vault
        self._endpoints = endpoints
        self._clock = clock
        self._find_toolkit = find_toolkit
        self._services = services

    async def toolkit(self, project: ProjectId, slug: str) -> Toolkit:
        """The one that accounts are of. Raises: NotFound."""
        return await self._find_toolkit(project, slug)

    async def list(self, request: ListAccounts) -> tuple[ConnectedAccount, ...]:
        """A page of them, as they are now."""
        asked = AccountsRequest(
            project=request.project,
            user=request.user,
            toolkit=request.toolkit,
            after=request.after,
            limit=request.limit,
        )
        return tuple(self._as_it_is(one) for one in await self._store.list(asked))

    async def get(self, request: AccountName) -> ConnectedAccount:
        """One, as it is now. Raises: NotFound."""
        return self._as_it_is((await self._store.get(request.project, request.account)).account)

    async def standing(self, toolkit: Toolkit, session: Session) -> tuple[Reach, tuple[ConnectedAccount, ...]]:
        """Whether a toolkit that needs an account can be used for the session's user, in words; and the accounts that
        it could be used with, the usual one first: those that are not good follow.
        """
        return _standing(session, toolkit.slug, await self._candidates(session, toolkit.slug))

    async def standings(self, session: Session) -> Callable[[Toolkit], tuple[Reach, tuple[ConnectedAccount, ...]]]:
        """The same for whichever toolkits, asked for at once: there are many, and the user has accounts of few."""
        spec, found = session.spec, collections.defaultdict[str, list[ConnectedAccount]](list)
        after: tuple[str, AccountId] | None = None
        while True:
            asked = ListAccounts(project=spec.project, user=spec.user, after=after, limit=MOST_ACCOUNTS)
            page = await self.list(asked)
            for one in page:
                found[one.toolkit].append(one)
            if len(page) < MOST_ACCOUNTS:
                break
            after = page[-1].created_at, page[-1].id
        return lambda toolkit: _standing(session, toolkit.slug, _allowed(session, toolkit.slug, found[toolkit.slug]))

    async def reach(self, toolkit: Toolkit, session: Session) -> Reach:
        """The first half of it."""
        return (await self.standing(toolkit, session))[0]

    async def credential_for(self, session: Session, toolkit: Toolkit, account: str = "") -> Credential:
        """What a call of the session's is made with; renewed, if it was due. `account` is an id or an alias.

        Raises:
            Denied: there is no active connection; the message says why, and the next step.
            InvalidRequest: there are several and one must be named, or no such one.
            UpstreamError: it had to be renewed, and the service could not be asked.
        """
        found = await self._candidates(session, toolkit.slug)
        chosen = self._chosen(session, toolkit.slug, account, found)
        kept = await self._store.get(session.spec.project, chosen.id)
        scheme = _scheme(toolkit, kept.account.kind)
        if self._is_due(kept.account):
            kept = await self._renewed(kept, scheme)
        return self._credential(kept, scheme)

    async def renewed(self, session: Session, toolkit: Toolkit, refused: Credential) -> Credential:
        """Another credential of the same account, for one that the service refused though its time was not over.

        Raises:
            Denied: there is none; the account is written down as expired.
            UpstreamError: the service could not be asked.
        """
        kept = await self._store.get(session.spec.project, AccountId(refused.account))
        scheme = _scheme(toolkit, kept.account.kind)
        now = self._credential(kept, scheme)
        if now.values != refused.values:
            # Somebody else was first.
            return now
        return self._credential(await self._renewed(kept, scheme, although=kept.revision), scheme)

    async def refresh(self, request: AccountName) -> ConnectedAccount:
        """Renew it now, whether or not that is due.

        Raises:
            NotFound: no such account.
            Denied: there is no way to, or the service does not want to.
            InvalidRequest: it is not of a kind that is renewed.
        """
        kept = await self._store.get(request.project, request.account)
        scheme = _scheme(await self._find_toolkit(kept.account.project, kept.account.toolkit), kept.account.kind)
        if kept.account.kind is not AuthKind.OAUTH2:
            raise InvalidRequest(
                f"{request.account} is of the kind {kept.account.kind}, which is not renewed; connect it again instead",
                {"connected_account": request.account},
            )
        return (await self._renewed(kept, scheme, although=kept.revision)).account

    async def remove(self, request: AccountName) -> bool:
        """Forget it with its secrets, and tell the service if it can be told; whether it was told.

        Raises:
            NotFound: no such account.
        """
        kept = await self._store.get(request.project, request.account)
        told = await self._taken_back(kept)
        if not await self._store.remove(request.project, request.account):
            raise NotFound(f"connected account {request.account!r} was removed by somebody else just now")
        return told

    async def revoke(self, request: AccountName) -> ConnectedAccount:
        """Have the service take its tokens back, and keep the account without them.

        Raises:
            NotFound: no such account.
            InvalidRequest: the service cannot be asked to.
            Conflict: it is not active.
            UpstreamUnavailable: the service did not do it.
        """
        kept = await self._store.get(request.project, request.account)
        named = {"connected_account": request.account}
        if not kept.account.is_active:
            raise Conflict(f"{request.account} is {kept.account.status.lower()}, so there is nothing to revoke", named)
        endpoints = _oauth_of(await self._find_toolkit(kept.account.project, kept.account.toolkit))
        if kept.account.kind is not AuthKind.OAUTH2 or endpoints is None or not endpoints.revoke_url:
            raise InvalidRequest(
                f"{kept.account.toolkit} cannot be asked to take it back; remove it here, and the key there", named
            )
        if not await self._taken_back(kept):
            raise UpstreamUnavailable(f"{kept.account.toolkit} did not take it back; try again, or remove it", named)
        gone = AccountSecrets(values={})
        why = "taken back on request"
        return (await self.keep(kept, gone, status=ConnectionStatus.REVOKED, status_reason=why)).account

    async def change(self, request: ChangeAccount) -> ConnectedAccount:
        """Call it otherwise, or switch it off or on.

        Raises:
            NotFound: no such account.
            InvalidRequest: it cannot be called so.
            Conflict: another account of the user's with this toolkit is called so, or it is not one that is switched.
        """
        kept = await self._store.get(request.project, request.account)
        account, changes = kept.account, dict[str, object]()
        if request.alias is not None and request.alias != account.alias:
            changes["alias"] = await self._free_alias(account, request.alias)
        if request.enabled is not None and request.enabled != account.is_active:
            changes |= _switched(account, enabled=request.enabled)
        if not changes:
            return self._as_it_is(account)
        held = self._sealing.open_account(account, kept.sealed)
        return self._as_it_is((await self.keep(kept, held, **changes)).account)

    async def _free_alias(self, account: ConnectedAccount, alias: str) -> str:
        asked = ListAccounts(project=account.project, user=account.user, toolkit=account.toolkit, limit=MOST_ACCOUNTS)
        if checked_alias(alias) and any(one.alias == alias for one in await self.list(asked) if one.id != account.id):
            raise Conflict(
                f"another account of {account.toolkit} of this user is called {alias!r} already; choose another name",
                {"connected_account": account.id, "alias": alias},
            )
        return alias

    async def labelled(self, kept: KeptAccount, toolkit: Toolkit) -> ConnectedAccount:
        """The account by the name that its service knows it by, where the toolkit says how to ask. That nobody could
        be asked costs nothing but the name.
        """
        if self._services is None or toolkit.identity is None:
            return kept.account
        try:
            credential = self._credential(kept, _scheme(toolkit, kept.account.kind))
            async with asyncio.timeout(_LABEL_S):
                answer = await self._services.call(identity.order(toolkit, toolkit.identity, credential))
            label = identity.label_of(toolkit.identity, answer)
            if not label or label == kept.account.label:
                return kept.account
            held = self._sealing.open_account(kept.account, kept.sealed)
            return (await self.keep(kept, held, label=label)).account
        except (WorkbenchError, TimeoutError):
            return kept.account

    async def forget_user(self, project: ProjectId, user: str) -> None:
        """Tell services that what they granted to a user is not used any more, as far as they listen, and remove the
        accounts. That nothing of them is left is for the store's `forget_user`.
        """
        until = self._clock.monotonic() + _FORGET_S
        while found := await self._store.list(AccountsRequest(project=project, user=user)):
            for account in found:
                with contextlib.suppress(NotFound):
                    if self._clock.monotonic() < until:
                        await self.remove(AccountName(project=project, account=account.id))
                    else:
                        await self._store.remove(project, account.id)

    async def add_config(self, request: AddAuthConfig) -> AuthConfig:
        """A client by which accounts of a toolkit are connected from now on.

        Raises:
            InvalidRequest: the toolkit has no use for one, or the client's id or secret cannot be one.
            NotFound: no such toolkit.
        """
        toolkit = await self._find_toolkit(request.project, request.toolkit)
        is_client = request.kind is AuthKind.OAUTH2
        if is_client and _oauth_of(toolkit) is None:
            raise InvalidRequest(
                f"accounts of {toolkit.slug} are not connected by OAuth2, so no client is needed; "
                f"`workbench connect {toolkit.slug}` connects one",
                {"toolkit": toolkit.slug},
            )
        if request.kind not in {one.kind for one in toolkit.auth} - {AuthKind.NO_AUTH}:
            raise InvalidRequest(
                f"accounts of {toolkit.slug} are not connected by {request.kind}; they are by: "
                f"{', '.join(toolkit.auth_schemes) or 'nothing, as it needs none'}",
                {"toolkit": toolkit.slug},
            )
        for what, text in (("client id", request.client_id), ("client secret", request.client_secret.reveal())):
            if len(text) > _MOST_CLIENT or not text.isprintable() or text != text.strip():
                raise InvalidRequest(f"that is no {what}: it has spaces around it, or characters that do not print")
        if is_client and not request.client_id:
            raise InvalidRequest("a client id is needed: the service gives one to who registers an app with it")
        config = AuthConfig(
            id=new_auth_config_id(),
            project=request.project,
            toolkit=toolkit.slug,
            kind=request.kind,
            client_id=request.client_id if is_client else "",
            scopes=request.scopes if is_client else (),
            created_at=self._clock.now_iso(),
        )
        secret = request.client_secret if is_client else Secret("")
        await self._store.add_config(config, self._sealing.seal_config(config, secret))
        return config

    async def configs(self, project: ProjectId, toolkit: str | None = None) -> tuple[AuthConfig, ...]:
        """Those of a project, newest first."""
        return await self._store.configs(project, toolkit)

    async def config(self, request: AuthConfigName) -> AuthConfig:
        """One. Raises: NotFound."""
        return (await self._store.config(request.project, request.config))[0]

    async def remove_config(self, request: AuthConfigName) -> None:
        """Accounts that were connected by it are good until their present token is not.

        Raises:
            NotFound: no such auth config.
        """
        if not await self._store.remove_config(request.project, request.config):
            # In the words of the store.
            await self._store.config(request.project, request.config)

    async def client(self, project: ProjectId, config: AuthConfigId) -> oauth.Client:
        """As whom a service is asked. Raises: NotFound."""
        found, sealed = await self._store.config(project, config)
        secret = self._sealing.open_config(found, sealed)
        return oauth.Client(id=found.client_id, secret=secret, scopes=found.scopes)

    async def keep(self, kept: KeptAccount, held: AccountSecrets, **changes: object) -> KeptAccount:
        """The account with these secrets and changes, if nobody changed it meanwhile.

        Raises:
            NotFound: it was removed, or somebody else connected it just now.
        """
        new = replace(kept.account, updated_at=self._clock.now_iso(), **changes)  # type: ignore[arg-type]
        sealed = self._sealing.seal_account(new, held) if held.values else b""
        if not await self._store.replace(kept, new, sealed):
            raise NotFound(
                f"connected account {new.id!r} was removed or changed by somebody else just now; look at it again"
            )
        return KeptAccount(account=new, sealed=sealed, revision=kept.revision + 1)

    async def keep_tokens(
        self, kept: KeptAccount, tokens: oauth.Tokens, asked: Sequence[str], **changes: object
    ) -> KeptAccount:
        """The account with what a service granted."""
        old = self._sealing.open_account(kept.account, kept.sealed)
        held = AccountSecrets(
            values={**old.values, ACCESS_TOKEN: tokens.access},
            # One that gave none with a renewal goes on with the old one.
            refresh=tokens.refresh or old.refresh,
        )
        return await self.keep(
            kept,
            held,
            **{
                "kind": AuthKind.OAUTH2,
                "status": ConnectionStatus.ACTIVE,
                "status_reason": "",
                "scopes": tokens.scopes if tokens.scopes is not None else tuple(asked),
                "expires_at": "" if tokens.lives_s is None else self._clock.after(tokens.lives_s),
                **changes,
            },
        )

    async def sweep(self) -> int:
        """Drop links whose time is over; how many there were. Accounts that nobody finished by them are written down
        as expired.
        """
        now = self._clock.now_iso()
        await self._store.expire_unused(self._clock.after(-LINK_LIFE_S), now, _UNUSED)
        return await self._store.drop_links_expired_before(now)

    async def reseal(self) -> int:
        """Seal everything by the newest key of the vault; how much there was.

        Raises:
            StoreUnavailable: something is sealed by a key that is not there.
        """
        count, after = 0, ""
        while page := await self._store.sealed_under(after, 100):
            for name, sealed in page:
                # What was changed meanwhile was sealed by the newest.
                count += await self._store.reseal(name, sealed, self._vault.resealed(sealed))
                after = name
        return count

    async def _candidates(self, session: Session, toolkit: str) -> tuple[ConnectedAccount, ...]:
        """The user's of this toolkit, the oldest first; only those that the configuration names, if it names some."""
        spec = session.spec
        found = await self.list(
            ListAccounts(project=spec.project, user=spec.user, toolkit=toolkit, limit=MOST_ACCOUNTS)
        )
        return _allowed(session, toolkit, found)

    def _chosen(
        self, session: Session, toolkit: str, account: str, found: Sequence[ConnectedAccount]
    ) -> ConnectedAccount:
        active = [one for one in found if one.is_active]
        if account:
            named = [one for one in found if account in (one.id, one.alias)]
            good = [one for one in named if one.is_active]
            if good:
                return good[-1]
            if named:
                raise Denied(_why_none(session, toolkit, named), {"toolkit": toolkit, "reason": NOT_CONNECTED})
            there = ", ".join(_named(one) for one in active) or "none"
            raise InvalidRequest(
                f"no account {account[:100]!r} of {toolkit} here for this user; there are: {there}",
                {"toolkit": toolkit},
            )
        if not active:
            raise Denied(_why_none(session, toolkit, found), {"toolkit": toolkit, "reason": NOT_CONNECTED})
        several = session.spec.config.multi_account
        if len(active) > 1 and several is not None and several.enable and several.require_explicit_selection:
            there = ", ".join(_named(one) for one in active)
            raise InvalidRequest(
                f"the user has several accounts of {toolkit}, and this session wants one to be named: pass one as "
                f"`account`: {there}",
                {"toolkit": toolkit},
            )
        return active[-1]

    def _as_it_is(self, account: ConnectedAccount) -> ConnectedAccount:
        """A link that nobody used in time is over, whoever writes that down."""
        if account.status is ConnectionStatus.INITIATED and account.updated_at < self._clock.after(-LINK_LIFE_S):
            return replace(account, status=ConnectionStatus.EXPIRED, status_reason=_UNUSED)
        return account

    def was_never_used(self, account: ConnectedAccount) -> bool:
        """Whether it is one whose link nobody used in time."""
        return account.status is ConnectionStatus.EXPIRED and account.status_reason == _UNUSED

    def _is_due(self, account: ConnectedAccount) -> bool:
        return bool(account.expires_at) and account.expires_at <= self._clock.after(_DUE_S)

    def _credential(self, kept: KeptAccount, scheme: AuthScheme) -> Credential:
        held = self._sealing.open_account(kept.account, kept.sealed)
        return Credential(kind=scheme.kind, scheme=scheme, values=held.values, account=kept.account.id)

    async def _renewed(self, kept: KeptAccount, scheme: AuthScheme, although: int | None = None) -> KeptAccount:
        """With a token that is not due; `although` is the revision of one that is to be renewed in any case."""
        async with self._held(kept.account):
            kept = await self._store.get(kept.account.project, kept.account.id)
            if kept.revision != although and not self._is_due(kept.account):
                return kept
            if not kept.account.is_active and although is None:
                raise _over(kept.account)
            return await self._asked_anew(kept, scheme, forced=although is not None)

    async def _asked_anew(self, kept: KeptAccount, scheme: AuthScheme, *, forced: bool) -> KeptAccount:
        # Soon is not yet: what is good until then can be used, and is asked for again with the next call.
        still_good = not forced and kept.account.expires_at > self._clock.now_iso()
        account, held = kept.account, self._sealing.open_account(kept.account, kept.sealed)
        if scheme.oauth is None or not held.refresh or account.auth_config is None:
            if still_good:
                return kept
            why = "the service does not take it any more" if forced else "its time is over"
            return await self._expired(kept, held, f"{why}, and there is nothing to renew it with")
        try:
            client = await self.client(account.project, account.auth_config)
            endpoints = oauth.filled(scheme.oauth, held.values)
            tokens = oauth.tokens_of(
                await self._endpoints.ask(oauth.refresh_request(endpoints, client, held.refresh)), endpoints
            )
        except NotFound:
            return await self._expired(kept, held, "the auth config that it was connected by was removed")
        except oauth.Refusal as problem:
            return await self._expired(kept, held, f"the service does not renew it any more ({problem.code})")
        except UpstreamError:
            if still_good:
                return kept
            raise
        return await self.keep_tokens(kept, tokens, account.scopes)

    async def _expired(self, kept: KeptAccount, held: AccountSecrets, why: str) -> KeptAccount:
        kept = await self.keep(kept, held, status=ConnectionStatus.EXPIRED, status_reason=why)
        raise _over(kept.account)

    @contextlib.asynccontextmanager
    async def _held(self, account: ConnectedAccount) -> AsyncIterator[None]:
        """Nobody else renews it meanwhile, in whichever process."""
        holder, until = secrets.token_hex(8), self._clock.monotonic() + _WAIT_S
        while not await self._store.hold(account.id, holder, self._clock.now_iso(), self._clock.after(_HOLD_S)):
            if self._clock.monotonic() > until:
                raise UpstreamUnavailable(
                    f"the account {account.id} of {account.toolkit} is being renewed for long; try again in a minute",
                    {"connected_account": account.id},
                )
            await self._store.get(account.project, account.id)
            await self._clock.pause(_PAUSE_S)
        try:
            yield
        finally:
            await self._store.let_go(account.id, holder)

    async def _taken_back(self, kept: KeptAccount) -> bool:
        """Whether the service knows that it is over. That it cannot be told keeps nobody from forgetting it."""
        account = kept.account
        try:
            endpoints = _oauth_of(await self._find_toolkit(account.project, account.toolkit))
            if endpoints is None or not endpoints.revoke_url or account.auth_config is None or not kept.sealed:
                return False
            held = self._sealing.open_account(account, kept.sealed)
            client = await self.client(account.project, account.auth_config)
            token, hint = (held.refresh, "refresh_token") if held.refresh else (held.values[ACCESS_TOKEN], ACCESS_TOKEN)
            asked = oauth.revoke_request(oauth.filled(endpoints, held.values), client, token, hint)
            answer = await self._endpoints.ask(asked)
        except (WorkbenchError, LookupError):
            return False
        return 200 <= answer.status < 300


def _switched(account: ConnectedAccount, *, enabled: bool) -> dict[str, object]:
    wanted = ConnectionStatus.INACTIVE if enabled else ConnectionStatus.ACTIVE
    if account.status is not wanted:
        raise Conflict(
            f"{account.id} is {account.status.lower()}, and only what is {wanted.lower()} can be switched "
            f"{'on' if enabled else 'off'}; {'connect it again' if enabled else 'there is nothing to switch off'}",
            {"connected_account": account.id},
        )
    if enabled:
        return {"status": ConnectionStatus.ACTIVE, "status_reason": ""}
    return {"status": ConnectionStatus.INACTIVE, "status_reason": _OFF}


def _oauth_of(toolkit: Toolkit) -> OAuthEndpoints | None:
    return next((one.oauth for one in toolkit.auth if one.kind is AuthKind.OAUTH2 and one.oauth), None)


def _allowed(session: Session, toolkit: str, found: Sequence[ConnectedAccount]) -> tuple[ConnectedAccount, ...]:
    """Only those that the configuration names, if it names some."""
    named = session.spec.config.accounts_of(toolkit)
    return tuple(one for one in found if not named or one.id in named)


def _standing(
    session: Session, toolkit: str, found: Sequence[ConnectedAccount]
) -> tuple[Reach, tuple[ConnectedAccount, ...]]:
    newest_first = found[::-1]
    accounts = tuple(sorted(newest_first, key=lambda one: not one.is_active))
    active = [one for one in found if one.is_active]
    if not active:
        return Reach(toolkit=toolkit, is_active=False, words=_why_none(session, toolkit, found)), accounts
    named = ", ".join(_named(one) for one in active)
    return Reach(toolkit=toolkit, is_active=True, words=f"Connected: {named}."), accounts


def _scheme(toolkit: Toolkit, kind: AuthKind) -> AuthScheme:
    for scheme in toolkit.auth:
        if scheme.kind is kind:
            return scheme
    raise NotConfigured(
        f"accounts of {toolkit.slug} are not connected by {kind} any more; remove this one and connect it again",
        {"toolkit": toolkit.slug},
    )


def _named(account: ConnectedAccount) -> str:
    more = ", ".join(filter(None, (account.alias, account.label)))
    return f"{account.id} ({more})" if more else account.id


def _over(account: ConnectedAccount) -> Denied:
    return Denied(
        f"the account {account.id} of {account.toolkit} is {account.status.lower()}: "
        f"{account.status_reason or 'no reason is known'}; {_next_step(account.toolkit, account.user)}",
        {"toolkit": account.toolkit, "connected_account": account.id, "status": account.status.value},
    )


def _why_none(session: Session, toolkit: str, found: Sequence[ConnectedAccount]) -> str:
    user = session.spec.user
    if not found:
        return f"no active connection of user {user!r} with {toolkit}; {_next_step(toolkit, user)}"
    last = found[-1]
    if last.status is ConnectionStatus.INITIATED:
        return (
            f"no active connection of user {user!r} with {toolkit}: the link for {last.id} was made and not finished "
            "yet; finish it in a browser, or ask for another"
        )
    why = last.status_reason or "no reason is known"
    return (
        f"no active connection of user {user!r} with {toolkit}: {last.id} is {last.status.lower()} ({why}); "
        f"{_next_step(toolkit, user)}"
    )


def _next_step(toolkit: str, user: str) -> str:
    return (
        f"connect it by COMPOSIO_MANAGE_CONNECTIONS, by session.authorize({toolkit!r}), or by "
        f"`workbench connect {toolkit} --user {shlex.quote(user)}`"
    )
