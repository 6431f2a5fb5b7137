"""One value for each operation on connections, and for the answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.model.connection import AccountId, AuthConfig, AuthConfigId, ConnectedAccount, PendingLink, Secret
from workbench.model.ids import ProjectId
from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginConnection:
    """A link by which a person connects an account of a user's."""

    project: ProjectId
    user: str
    toolkit: str
    callback_url: str = ""
    """where the person is sent afterwards; empty for a page of ours"""
    alias: str = ""
    auth_config: str = ""
    """empty for the newest of the toolkit"""
    most_accounts: int | None = None
    """that the user may have of this toolkit; None for any number"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunConnection:
    """This is the only time that the token is seen."""

    account: ConnectedAccount
    token: str = field(repr=False)
    expires_at: str = ""
    """until when the link is good"""

    @property
    def path(self) -> str:
        """Where the page is, behind the address of the server."""
        return f"/connect/{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to connect, as the page offers it."""

    scheme: AuthScheme
    fields: tuple[AuthField, ...]
    """that the person fills in"""
    by_browser: bool = False
    """the person is sent to the service"""
    by_device: bool = False
    """the person types in a code there"""

    @property
    def kind(self) -> AuthKind:
        """Of its scheme."""
        return self.scheme.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkView:
    """A link, as its page shows it."""

    link: PendingLink
    account: ConnectedAccount
    toolkit: Toolkit
    config: AuthConfig | None = None
    """by which it is connected, if one was set up"""
    ways: tuple[Way, ...]
    told: frozenset[str] = frozenset()
    """names of fields that were filled in before the person goes on to the service"""

    def is_ready(self, way: Way) -> bool:
        """Whether the person can go on to the service: whatever it wants to know first was filled in."""
        return all(one.name in self.told or not one.is_required for one in way.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """What a person types in elsewhere, and whether it was done."""

    user_code: str
    verification_uri: str
    complete_uri: str
    interval_s: int
    account: ConnectedAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishByFields:
    """What a person filled in."""

    token: str = field(repr=False)
    kind: AuthKind
    values: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorize:
    """A person is to be sent to the service."""

    token: str = field(repr=False)
    redirect_uri: str
    """where the service sends them back to"""
    browser: str = field(repr=False)
    """a secret that only the person's browser has"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A person came back from the service."""

    state: str = field(repr=False)
    browser: str = field(repr=False)
    code: str = field(default="", repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAccounts:
    """A page of connected accounts, oldest first."""

    project: ProjectId
    user: str | None = None
    toolkit: str | None = None
    after: tuple[str, AccountId] | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAuthConfig:
    """How accounts of a toolkit are connected; by OAuth2, as which client."""

    project: ProjectId
    toolkit: str
    kind: AuthKind = AuthKind.OAUTH2
    client_id: str = ""
    client_secret: Secret = field(default_factory=lambda: Secret(""))
    """empty for a public client"""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAccount:
    """An account whose key somebody has already: no person is asked."""

    begin: BeginConnection
    kind: AuthKind
    values: Mapping[str, str] = field(repr=False)
    """by the names of the fields that a person would fill in"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeKey:
    """Another key for an account that has one."""

    project: ProjectId
    account: AccountId
    kind: AuthKind
    values: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAccount:
    """What is to be different; what is None stays."""

    project: ProjectId
    account: AccountId
    alias: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountName:
    """One of a project's."""

    project: ProjectId
    account: AccountId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfigName:
    """One of a project's."""

    project: ProjectId
    config: AuthConfigId
