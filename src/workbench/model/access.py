"""Who may do what: keys of projects, and tokens for one session. A key's secret is never kept, only its digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum

from workbench.errors import Unauthenticated
from workbench.model.ids import DEFAULT_PROJECT, KeyId, ProjectId, SessionId

# What secret scanners, and people, know them by.
_KEY, _TOKEN = "wbk", "wbt"
# 256 random bits need no slow hash: nobody tries them all.
_SECRET_BYTES = 32


class Scope(StrEnum):
    """What a key may be used for."""

    ADMIN = "admin"
    """everything in its project, with keys and users"""
    SESSIONS = "sessions"
    """sessions, and what runs in them"""
    PROXY = "proxy"
    """calls to services on behalf of connections"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a project, or a token for one of its sessions."""

    id: KeyId
    project: ProjectId
    label: str = ""
    scopes: frozenset[Scope]
    session: SessionId | None = None
    """the only one that it is good for: a token"""
    digest: str
    """of the secret"""
    created_at: str
    """ISO 8601, UTC"""
    expires_at: str = ""
    """empty if it does not"""
    revoked_at: str = ""
    replaced_by: KeyId | None = None
    """the key that it was rotated to"""

    def valid_at(self, now: str) -> bool:
        """Whether it can be used."""
        return not self.revoked_at and (not self.expires_at or now < self.expires_at)

    def accepts(self, secret: str) -> bool:
        """Whether this is its secret."""
        return hmac.compare_digest(self.digest, digest_of(secret))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """One that was just made. This is the only time that its secret is seen."""

    key: Key
    presented: str
    """what callers send"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """On whose behalf something is done."""

    project: ProjectId = DEFAULT_PROJECT
    key: KeyId | None = None
    """None for the owner of the data folder, who needs none"""
    scopes: frozenset[Scope] = frozenset(Scope)
    session: SessionId | None = None
    """the only one that it may touch"""

    def may(self, scope: Scope) -> bool:
        """Whether it has the scope; an admin has all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def digest_of(secret: str) -> str:
    """What is kept of it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    """One that nobody guesses."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def presented(key: Key, secret: str) -> str:
    """As callers send it."""
    return f"{_TOKEN if key.session else _KEY}_{key.id}_{secret}"


def taken_apart(text: str) -> tuple[KeyId, str]:
    """The name and the secret of what a caller sent.

    Raises:
        Unauthenticated: it is no key of ours.
    """
    kind, _, rest = text.partition("_")
    name, _, secret = rest.partition("_")
    if kind not in {_KEY, _TOKEN} or not name or not secret or not text.isascii():
        raise Unauthenticated("that is not a key of this server; `workbench keys create` makes one")
    return KeyId(name), secret
