"""Accounts of users with other services: whose they are, how they are, and what is sent along on their behalf.

How a toolkit wants to be spoken to is in `model.toolkit`. Where the secrets lie is left to the store and its vault.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, NoReturn
from urllib.parse import urlsplit

from workbench.errors import InvalidRequest
from workbench.model.ids import ProjectId
from workbench.model.toolkit import AuthKind, AuthScheme, Toolkit

AccountId = NewType("AccountId", str)
"""`ca_…`"""
AuthConfigId = NewType("AuthConfigId", str)
"""`ac_…`"""

ACCESS_TOKEN = "access_token"  # noqa: S105  (the name of it)
"""what a credential of OAUTH2 has"""
API_KEY = "api_key"
"""what one of API_KEY has"""
TOKEN = "token"  # noqa: S105  (the name of it)
"""what one of BEARER_TOKEN has"""
USERNAME, PASSWORD = "username", "password"
"""what one of BASIC has"""

_HIDDEN = "Secret(***)"
_HOLE = re.compile(r"\{([^{}]{1,100})\}")
# A part of a host's name.
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NO_ALIASES = frozenset(("__none__", "*"))
_ALIAS = re.compile(r"[^\x00-\x1f\x7f]{1,100}")


class Secret:
    """A text that never prints itself: not by repr, str or a format, and it is not pickled or copied into a log.

    BARRIER: held by tests/unit/model/test_connection.py.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """What it is; for who sends it, and nobody else."""
        return self._text

    def __repr__(self) -> str:
        return _HIDDEN

    def __str__(self) -> str:
        return _HIDDEN

    def __format__(self, spec: str) -> str:
        return _HIDDEN

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down; reveal it where it is sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What goes along with a call, on behalf of one account."""

    kind: AuthKind
    scheme: AuthScheme
    values: Mapping[str, Secret]
    """by the names above, or by those of the scheme's fields"""
    account: str
    """`ca_…`, by which it can be named without being told"""


def hosts_for(toolkit: Toolkit, credential: Credential | None) -> tuple[str, ...]:
    """Where a credential may go: where its account is one of many names below a host, to that name alone."""
    host = urlsplit(toolkit.base_url).netloc
    if "{" not in host:
        return toolkit.hosts
    values = credential.values if credential is not None else {}
    told = {name: values[name].reveal().strip() for name in _HOLE.findall(host) if name in values}
    own = _HOLE.sub(lambda hole: told.get(hole[1], ""), host)
    # BARRIER: whoever has another name below the same host would be sent the account's credential; held by
    # tests/unit/model/test_connection.py.
    wide = f"*{host.rpartition('}')[2]}"
    is_known = len(told) == len(_HOLE.findall(host)) and all(map(_PART.fullmatch, told.values()))
    return tuple(own if one == wide else one for one in toolkit.hosts if one != wide or is_known)


NOT_CONNECTED = "no_active_connection"
"""the `reason` of a refusal by which doors know it, to tell it in their own way"""


class ConnectionStatus(StrEnum):
    """How an account is."""

    INITIATED = "INITIATED"
    """somebody has a link, and has not finished"""
    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    """its token is too old, and there is no way to a new one; or the link was never used"""
    FAILED = "FAILED"
    """the service refused"""
    REVOKED = "REVOKED"
    """taken back, here or by the service"""
    INACTIVE = "INACTIVE"
    """switched off here, with all that it has; it can be switched on again"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedAccount:
    """An account of a user's with a service. Its secrets are beside it in the store, sealed."""

    id: AccountId
    project: ProjectId
    user: str
    toolkit: str
    """the slug of it"""
    alias: str = ""
    """how the user calls it, `work`; empty if there is no need"""
    auth_config: AuthConfigId | None = None
    """whose client it was connected by; None for what needs none"""
    kind: AuthKind
    status: ConnectionStatus
    status_reason: str = ""
    scopes: tuple[str, ...] = ()
    """that the service gave, as far as it told"""
    created_at: str
    updated_at: str
    expires_at: str = ""
    """until when its present token is good; empty if nobody knows"""
    label: str = ""
    """what the service calls it, an address or a name; empty if it did not say"""

    @property
    def is_active(self) -> bool:
        """Whether calls can be made with it."""
        return self.status is ConnectionStatus.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """How accounts of a toolkit are connected in a project: by which kind, and for OAuth2 as which client, whose secret
    is beside it.
    """

    id: AuthConfigId
    project: ProjectId
    toolkit: str
    kind: AuthKind
    client_id: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    """to ask for; those of the toolkit if empty"""
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLink:
    """A link to connect an account by, and how far it came. What it is called is a secret: it is known by a digest."""

    digest: str
    """of the token in its address"""
    account: AccountId
    project: ProjectId
    user: str
    toolkit: str
    callback_url: str = ""
    """where the person is sent afterwards"""
    state: str = ""
    """digest of what the service is to bring back; empty before it was asked, and again once it was used"""
    created_at: str
    expires_at: str
    finished_at: str = ""


def new_account_id() -> AccountId:
    """One that nobody has."""
    return AccountId(f"ca_{secrets.token_hex(8)}")


def new_auth_config_id() -> AuthConfigId:
    """One that nobody has."""
    return AuthConfigId(f"ac_{secrets.token_hex(8)}")


def checked_alias(text: str) -> str:
    """`text`, if an account can be called so; it may be empty.

    Raises:
        InvalidRequest: it is too long, or has characters that do not print.
    """
    # BARRIER: one that is called as another's id, or as what is said of none, would be taken for it; held by
    # tests/unit/model/test_connection.py.
    if text.lower().startswith("ca_") or text in _NO_ALIASES:
        raise InvalidRequest("an alias is no id of an account, and no mark of a rule; choose another one")
    if text and not _ALIAS.fullmatch(text):
        raise InvalidRequest("an alias has 1 to 100 characters that print; choose another one", {"alias": text[:100]})
    return text
