"""Links by which a person connects an account: by filling in a key, by going to the service and coming back, or by
typing in a code there.

BARRIER: who has the link connects an account for its user, and nothing else; it is good for half an hour, and until it
was used. It is kept as a digest. Who was sent to a service comes back in the same browser, with a state that is good
once: so nobody has a stranger finish what they began. Held by tests/connections/test_links.py.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from workbench.contracts.clock import Clock
from workbench.contracts.connections import ConnectionStore, KeptAccount, TokenEndpoints, Vault
from workbench.core import oauth
from workbench.core.connection_requests import (
    Authorize,
    BeginConnection,
    BegunConnection,
    DeviceView,
    ExchangeKey,
    FinishByFields,
    ImportAccount,
    LinkView,
    ListAccounts,
    Returned,
    Way,
)
from workbench.core.connections import LINK_LIFE_S, MOST_ACCOUNTS, Connections, FindToolkit
from workbench.core.identity import MOST_LABEL
from workbench.core.sealing import AccountSecrets, Sealing
from workbench.errors import Conflict, Denied, InvalidRequest, NotConfigured, NotFound, QuotaExceeded
from workbench.model.access import digest_of, new_secret
from workbench.model.connection import (
    API_KEY,
    PASSWORD,
    TOKEN,
    USERNAME,
    AuthConfig,
    ConnectedAccount,
    ConnectionStatus,
    PendingLink,
    Secret,
    checked_alias,
    new_account_id,
)
from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, OAuthEndpoints, Toolkit

_MOST_VALUE = 8192
_MOST_WAITING = 20
_MOST_USER = 200
_MOST_URL = 2000
_FIELDS: dict[AuthKind, tuple[AuthField, ...]] = {
    AuthKind.API_KEY: (AuthField(name=API_KEY, label="API key"),),
    AuthKind.BEARER_TOKEN: (AuthField(name=TOKEN, label="Token"),),
    AuthKind.BASIC: (
        AuthField(name=USERNAME, label="User name", is_secret=False),
        AuthField(name=PASSWORD, label="Password"),
    ),
}
# The person has not answered yet.
_PENDING = ("authorization_pending", "slow_down")


class ConnectionLinks:
    """Links of all projects. Owns nothing that runs."""

    def __init__(
        self,
        *,
        store: ConnectionStore,
        vault: Vault,
        endpoints: TokenEndpoints,
        clock: Clock,
        find_toolkit: FindToolkit,
        connections: Connections,
    ) -> None:
        self._store = store
        self._sealing = Sealing(vault)
        self._endpoints = endpoints
        self._clock = clock
        self._find_toolkit = find_toolkit
        self._connections = connections

    async def begin(self, request: BeginConnection) -> BegunConnection:
        """An account that waits for its person, and the link to it.

        Raises:
            InvalidRequest: the toolkit needs no account, or a value cannot be used.
            NotFound: there is no such toolkit, or no such auth config of it.
            NotConfigured: nothing is here to connect it with; the message says what to do.
            QuotaExceeded: the user has as many as the session allows.
        """
        toolkit = await self._find_toolkit(request.project, request.toolkit.strip().lower())
        if not request.user or len(request.user) > _MOST_USER:
            raise InvalidRequest(f"an account is a user's: name one, of at most {_MOST_USER} characters")
        if toolkit.no_auth:
            raise InvalidRequest(
                f"the toolkit {toolkit.slug} needs no account, so there is nothing to connect; call its tools",
                {"toolkit": toolkit.slug, "no_auth": "yes"},
            )
        callback = checked_callback(request.callback_url)
        config = await self._config(request, toolkit)
        ways = _ways(toolkit, config)
        if not ways:
            raise _no_way(toolkit)
        await self._check_room(request, toolkit)
        now = self._clock.now_iso()
        account = ConnectedAccount(
            id=new_account_id(),
            project=request.project,
            user=request.user,
            toolkit=toolkit.slug,
            alias=checked_alias(request.alias),
            auth_config=config.id if config is not None else None,
            kind=ways[0].kind,
            status=ConnectionStatus.INITIATED,
            created_at=now,
            updated_at=now,
        )
        token, over = new_secret(), self._clock.after(LINK_LIFE_S)
        await self._store.add(account)
        await self._store.add_link(
            PendingLink(
                digest=digest_of(token),
                account=account.id,
                project=account.project,
                user=account.user,
                toolkit=account.toolkit,
                callback_url=callback,
                created_at=now,
                expires_at=over,
            )
        )
        return BegunConnection(account=account, token=token, expires_at=over)

    async def look(self, token: str) -> LinkView:
        """What its page shows. Changes nothing.

        Raises:
            NotFound: no such link, or its time is over.
        """
        link, _ = await self._open(token)
        return await self._view(link)

    async def finish(self, request: FinishByFields) -> ConnectedAccount:
        """With what the person filled in. What it is good for the service says, with the first call.

        Raises:
            NotFound: no such link, or its time is over.
            Conflict: it was used already.
            InvalidRequest: something is missing, or cannot be one; the message names it.

        What OAuth2 wants to know first is only written down: the person goes on to the service.
        """
        link, _ = await self._open(request.token)
        view = await self._view(link)
        way = next((one for one in view.ways if one.kind is request.kind and one.fields), None)
        if way is None:
            raise InvalidRequest(f"accounts of {link.toolkit} are not connected by {request.kind} here")
        held = AccountSecrets(values=_checked_values(way.fields, request.values))
        if way.scheme.oauth is not None:
            return await self._told_first(link, way.scheme.oauth, held)
        await self._use(link)
        kept = await self._connections.keep(
            await self._kept(link),
            held,
            kind=way.kind,
            status=ConnectionStatus.ACTIVE,
            status_reason="",
            auth_config=view.config.id if view.config is not None and view.config.kind is way.kind else None,
            label=_shown_name(held),
        )
        return await self._connections.labelled(kept, view.toolkit)

    async def add(self, request: ImportAccount) -> ConnectedAccount:
        """One whose key is known already.

        Raises:
            as `begin` and `finish`.
        """
        begun = await self.begin(request.begin)
        try:
            return await self.finish(FinishByFields(token=begun.token, kind=request.kind, values=request.values))
        except BaseException:
            # Nobody has its link.
            await self._store.remove(begun.account.project, begun.account.id)
            raise

    async def exchange(self, request: ExchangeKey) -> ConnectedAccount:
        """The account with another key, active again if it was not.

        Raises:
            NotFound: no such account.
            Conflict: it waits for its person still.
            InvalidRequest: it has no key that could be exchanged, or something is missing or cannot be one.
        """
        kept = await self._store.get(request.project, request.account)
        account, toolkit = kept.account, await self._find_toolkit(request.project, kept.account.toolkit)
        way = next((one for one in _ways(toolkit, None) if one.kind is request.kind is account.kind), None)
        if way is None:
            raise InvalidRequest(
                f"{account.id} is connected by {account.kind}, and only a key of the same kind takes the place of one; "
                "connect it again instead",
                {"connected_account": account.id},
            )
        if account.status is ConnectionStatus.INITIATED:
            raise Conflict(f"{account.id} was not connected yet; finish its link", {"connected_account": account.id})
        held = AccountSecrets(values=_checked_values(way.fields, request.values))
        new = await self._connections.keep(
            kept, held, status=ConnectionStatus.ACTIVE, status_reason="", label=_shown_name(held)
        )
        return await self._connections.labelled(new, toolkit)

    async def _told_first(self, link: PendingLink, endpoints: OAuthEndpoints, held: AccountSecrets) -> ConnectedAccount:
        """What the service's addresses have in them, or its calls; the person goes on from there."""
        if link.finished_at:
            raise _used()
        oauth.filled(endpoints, held.values)
        # Whoever is at the service now began with something else.
        if not await self._store.replace_link(link, replace(link, state=""), b""):
            raise _used()
        return (await self._connections.keep(await self._kept(link), held)).account

    async def authorize(self, request: Authorize) -> str:
        """Where the person is sent now; from then on what was sent before is no good.

        Raises:
            NotFound: no such link, or its time is over.
            Conflict: it was used already.
            InvalidRequest: the toolkit is not connected so.
        """
        link, sealed = await self._open(request.token)
        endpoints, client = await self._oauth(link)
        if not endpoints.authorize_url:
            raise InvalidRequest(f"accounts of {link.toolkit} are not connected in a browser here")
        state, verifier = new_secret(), oauth.new_verifier()
        held = self._sealing.seal_link(
            link.digest,
            {
                "verifier": verifier,
                "redirect_uri": request.redirect_uri,
                "browser": digest_of(request.browser),
            },
        )
        del sealed
        if not await self._store.replace_link(link, replace(link, state=digest_of(state)), held):
            raise _used()
        return oauth.authorize_url(endpoints, client, state=state, verifier=verifier, redirect_uri=request.redirect_uri)

    async def returned(self, request: Returned) -> LinkView:
        """The person is back: connected, or not, which the account says.

        Raises:
            NotFound: nobody was sent away with this state, it was used already, or its time is over.
            Denied: it is another browser than that which was sent away.
            UpstreamError: the service could not be asked, and the account has failed.
        """
        link, sealed = await self._store.link_by_state(digest_of(request.state))
        self._check_time(link)
        held = self._sealing.open_link(link.digest, sealed)
        # BARRIER: whoever gets a stranger to open the service's page for them would have the stranger's account.
        if not hmac.compare_digest(held.get("browser", ""), digest_of(request.browser)):
            raise Denied(
                "this was begun in another browser, or cookies are switched off; open the link again and do all of it "
                "in one browser"
            )
        fresh = replace(link, state="")
        if not await self._store.replace_link(link, fresh, b""):
            raise _used()
        if request.error or not request.code:
            why = oauth.error_word(request.error) or "no code came with the answer"
            return await self._failed(fresh, f"the service did not grant it ({why})")
        endpoints, client = await self._oauth(fresh)
        asked = oauth.code_request(
            endpoints,
            client,
            code=request.code,
            verifier=held["verifier"],
            redirect_uri=held["redirect_uri"],
        )
        try:
            tokens = oauth.tokens_of(await self._endpoints.ask(asked), endpoints)
        except oauth.Refusal as problem:
            return await self._failed(fresh, f"the service gave no token for its code ({problem.code})")
        await self._granted(fresh, tokens, client.scopes or endpoints.scopes)
        return await self._view(await self._again(fresh))

    async def device(self, token: str) -> DeviceView:
        """What the person types in elsewhere; asked anew no more often than the service wants. The account is active
        once it was done.

        Raises:
            NotFound: no such link, or its time is over.
            InvalidRequest: the toolkit is not connected so.
            Denied: the service did not grant it.
            UpstreamError: the service could not be asked.
        """
        link, sealed = await self._open(token)
        endpoints, client = await self._oauth(link)
        if not endpoints.device_url:
            raise InvalidRequest(f"accounts of {link.toolkit} are not connected by a code here")
        held = self._sealing.open_link(link.digest, sealed)
        now = self._clock.now_iso()
        if "device_code" not in held or held["over_at"] < now:
            held = await self._begun_device(link, endpoints, client)
        elif held["ask_at"] <= now:
            held = await self._asked_device(link, held, endpoints, client)
        account = (await self._kept(link)).account
        return DeviceView(
            user_code=held["user_code"],
            verification_uri=held["verification_uri"],
            complete_uri=held["complete_uri"],
            interval_s=int(held["interval_s"]),
            account=account,
        )

    async def _begun_device(self, link: PendingLink, endpoints: OAuthEndpoints, client: oauth.Client) -> dict[str, str]:
        try:
            grant = oauth.device_of(await self._endpoints.ask(oauth.device_request(endpoints, client)))
        except oauth.Refusal as problem:
            await self._failed(link, f"the service gives no code ({problem.code})")
            raise Denied(
                f"{link.toolkit} gives no code to connect by ({problem.code}); allow codes for the app there, or "
                "connect it in a browser: `--by page` of `workbench connect`, or the other way on the page"
            ) from None
        held = {
            "device_code": grant.device_code.reveal(),
            "user_code": grant.user_code,
            "verification_uri": grant.verification_uri,
            "complete_uri": grant.complete_uri,
            "interval_s": str(grant.interval_s),
            "over_at": self._clock.after(grant.lives_s),
            "ask_at": self._clock.after(grant.interval_s),
        }
        await self._hold_device(link, held)
        return held

    async def _asked_device(
        self, link: PendingLink, held: dict[str, str], endpoints: OAuthEndpoints, client: oauth.Client
    ) -> dict[str, str]:
        # Before it is asked: who comes meanwhile does not ask as well.
        held = {**held, "ask_at": self._clock.after(int(held["interval_s"]))}
        await self._hold_device(link, held)
        asked = oauth.device_token_request(endpoints, client, Secret(held["device_code"]))
        try:
            tokens = oauth.tokens_of(await self._endpoints.ask(asked), endpoints)
        except oauth.Refusal as problem:
            if problem.code not in _PENDING:
                await self._store.replace_link(link, link, b"")
                await self._failed(link, f"the service did not grant it ({problem.code})")
                raise Denied(
                    f"{link.toolkit} did not grant it ({problem.code}); open the link again to have another try"
                ) from None
            if problem.code == "slow_down":
                held = {**held, "interval_s": str(min(int(held["interval_s"]) + 5, 60))}
                await self._hold_device(link, held)
            return held
        await self._granted(link, tokens, client.scopes or endpoints.scopes)
        return held

    async def _hold_device(self, link: PendingLink, held: Mapping[str, str]) -> None:
        if not await self._store.replace_link(link, link, self._sealing.seal_link(link.digest, held)):
            raise _used()

    async def _granted(self, link: PendingLink, tokens: oauth.Tokens, asked: tuple[str, ...]) -> None:
        await self._use(link)
        kept = await self._connections.keep_tokens(await self._kept(link), tokens, asked)
        await self._connections.labelled(kept, await self._find_toolkit(link.project, link.toolkit))

    async def _failed(self, link: PendingLink, why: str) -> LinkView:
        """The link stays good: the person may try again."""
        kept = await self._kept(link)
        if not kept.account.is_active:
            # With what the person told of it: they may try again.
            held = self._sealing.open_account(kept.account, kept.sealed)
            await self._connections.keep(kept, held, status=ConnectionStatus.FAILED, status_reason=why)
        return await self._view(link)

    async def _use(self, link: PendingLink) -> None:
        used = replace(link, state="", finished_at=self._clock.now_iso())
        if link.finished_at or not await self._store.replace_link(link, used, b""):
            raise _used()

    async def _again(self, link: PendingLink) -> PendingLink:
        return (await self._store.link(link.digest))[0]

    async def _open(self, token: str) -> tuple[PendingLink, bytes]:
        link, sealed = await self._store.link(digest_of(token))
        self._check_time(link)
        return link, sealed

    def _check_time(self, link: PendingLink) -> None:
        if link.expires_at <= self._clock.now_iso():
            raise NotFound("this link is over; ask for a new one where it came from")

    async def _view(self, link: PendingLink) -> LinkView:
        toolkit = await self._find_toolkit(link.project, link.toolkit)
        kept = await self._kept(link)
        account, config = kept.account, None
        if account.auth_config is not None:
            config = (await self._store.config(account.project, account.auth_config))[0]
        told = self._sealing.open_account(account, kept.sealed).values
        return LinkView(
            link=link,
            account=account,
            toolkit=toolkit,
            config=config,
            ways=_ways(toolkit, config),
            told=frozenset(told),
        )

    async def _kept(self, link: PendingLink) -> KeptAccount:
        return await self._store.get(link.project, link.account)

    async def _oauth(self, link: PendingLink) -> tuple[OAuthEndpoints, oauth.Client]:
        if link.finished_at:
            raise _used()
        toolkit = await self._find_toolkit(link.project, link.toolkit)
        kept = await self._kept(link)
        account = kept.account
        scheme = next((one for one in toolkit.auth if one.oauth), None)
        if scheme is None or scheme.oauth is None or account.auth_config is None:
            raise InvalidRequest(f"accounts of {link.toolkit} are not connected by OAuth2 here")
        told = self._sealing.open_account(account, kept.sealed).values
        for field in scheme.fields:
            if field.is_required and field.name not in told:
                raise InvalidRequest(f"{field.label} is missing: open the link and fill it in", {"field": field.name})
        client = await self._connections.client(account.project, account.auth_config)
        return oauth.filled(scheme.oauth, told), client

    async def _config(self, request: BeginConnection, toolkit: Toolkit) -> AuthConfig | None:
        found = await self._store.configs(request.project, toolkit.slug)
        if not request.auth_config:
            return next((one for one in found if one.kind is AuthKind.OAUTH2), None)
        for config in found:
            if config.id == request.auth_config:
                return config
        raise NotFound(
            f"no auth config {request.auth_config[:60]!r} of {toolkit.slug} here; `workbench auth-configs list` lists "
            "those there are",
            {"auth_config": request.auth_config[:60]},
        )

    async def _check_room(self, request: BeginConnection, toolkit: Toolkit) -> None:
        asked = ListAccounts(project=request.project, user=request.user, toolkit=toolkit.slug, limit=MOST_ACCOUNTS)
        found = await self._connections.list(asked)
        active = [one for one in found if one.is_active]
        if request.most_accounts is not None and len(active) >= request.most_accounts:
            raise QuotaExceeded(
                f"the user has {len(active)} accounts of {toolkit.slug}, and the session allows "
                f"{request.most_accounts}; remove one first",
                {"toolkit": toolkit.slug},
            )
        # BARRIER: an agent that begins again and again would fill the records, and hide good accounts behind others
        # that nobody finished; held by tests/connections/test_links.py.
        for account in found:
            if self._connections.was_never_used(account):
                await self._store.remove(account.project, account.id)
        waiting = [one for one in found if one.status is ConnectionStatus.INITIATED]
        if len(waiting) >= _MOST_WAITING or len(found) >= MOST_ACCOUNTS:
            raise QuotaExceeded(
                f"the user has {len(waiting)} links for {toolkit.slug} that wait to be used, of {len(found)} accounts; "
                "use one of them, remove some, or wait half an hour until they are over",
                {"toolkit": toolkit.slug},
            )


def checked_callback(url: str) -> str:
    """`url`, if a person can be sent there; it may be empty.

    Raises:
        InvalidRequest: it is no address of the web.
    """
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        good = False
    # BARRIER: a browser would run `javascript:`, and a line break begin another header; held by
    # tests/connections/test_links.py.
    if not good or len(url) > _MOST_URL or not url.isprintable() or " " in url or "\\" in url:
        raise InvalidRequest(
            "callback_url must be like https://app.example.com/connected: http or https, without a user in it",
            {"callback_url": url[:100]},
        )
    return url


def _ways(toolkit: Toolkit, config: AuthConfig | None) -> tuple[Way, ...]:
    """What can be offered: OAuth2 only with a client to ask as; that alone which the auth config is for, if it is for
    another.
    """
    found = []
    for scheme in toolkit.auth:
        if config is not None and config.kind not in (AuthKind.OAUTH2, scheme.kind):
            continue
        if scheme.kind is AuthKind.OAUTH2:
            if scheme.oauth is not None and config is not None:
                found.append(_by_oauth(scheme, scheme.oauth))
        elif scheme.kind in _FIELDS:
            found.append(Way(scheme=scheme, fields=scheme.fields or _FIELDS[scheme.kind]))
    return tuple(found)


def _by_oauth(scheme: AuthScheme, endpoints: OAuthEndpoints) -> Way:
    return Way(
        scheme=scheme,
        fields=scheme.fields,
        by_browser=bool(endpoints.authorize_url),
        by_device=bool(endpoints.device_url),
    )


def _shown_name(held: AccountSecrets) -> str:
    """By what people know an account, where the service does not tell: who they are, or where."""
    for name in (USERNAME, "subdomain"):
        if name in held.values:
            return held.values[name].reveal()[:MOST_LABEL]
    return ""


def _checked_values(fields: tuple[AuthField, ...], given: Mapping[str, str]) -> dict[str, Secret]:
    values: dict[str, Secret] = {}
    for field in fields:
        # People copy keys with the line break behind them.
        text = given.get(field.name, "").strip() or field.default
        if not text and field.is_required:
            raise InvalidRequest(f"{field.label} is missing: fill it in", {"field": field.name})
        # BARRIER: it goes into a header, where a line break would begin another one; held by
        # tests/connections/test_links.py.
        if len(text) > _MOST_VALUE or not text.isprintable():
            raise InvalidRequest(
                f"{field.label} has more than {_MOST_VALUE} characters, or some that do not print: copy it again",
                {"field": field.name},
            )
        if text:
            values[field.name] = Secret(text)
    return values


def _no_way(toolkit: Toolkit) -> NotConfigured:
    if any(one.kind is AuthKind.OAUTH2 for one in toolkit.auth):
        return NotConfigured(
            f"accounts of {toolkit.slug} are connected by OAuth2, and no client is set up for it here: register an app "
            f"with {toolkit.name}, and `workbench auth-configs add {toolkit.slug} --client-id …`",
            {"toolkit": toolkit.slug, "reason": "no_auth_config"},
        )
    return NotConfigured(
        f"the toolkit {toolkit.slug} does not say how its accounts are connected, so none can be",
        {"toolkit": toolkit.slug},
    )


def _used() -> Conflict:
    return Conflict("this link was used already; ask for a new one where it came from")
