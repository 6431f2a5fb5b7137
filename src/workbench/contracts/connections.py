"""ConnectionStore, Vault and TokenEndpoints: where accounts of users are kept, sealed, and who is asked for tokens.

For the author of the next one: several processes use them at once, and any may be killed at any moment. A store never
sees a secret in the clear: it keeps what a vault has sealed, beside the record that it belongs to. The key of the vault
is not in the store. `testing.connection_contract` holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workbench.model.connection import AccountId, AuthConfig, AuthConfigId, ConnectedAccount, PendingLink, Secret
from workbench.model.ids import ProjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsRequest:
    """Which accounts to list, oldest first."""

    project: ProjectId
    user: str | None = None
    """None for everybody's"""
    toolkit: str | None = None
    """None for all"""
    after: tuple[str, AccountId] | None = None
    """go on after this one: `created_at` and `id`, be it still there or not"""
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAccount:
    """A record, what is sealed beside it, and how often it was changed."""

    account: ConnectedAccount
    sealed: bytes = field(default=b"", repr=False)
    """empty while there are no secrets"""
    revision: int = 1


class ConnectionStore(Protocol):
    """Of all projects; what is of another project is not there. What is changed survives a crash of the machine.

    Every method may raise `StoreUnavailable`; then nothing was done.
    """

    async def add(self, account: ConnectedAccount, sealed: bytes = b"") -> None:
        """Keep it. Raises: Conflict: there is one with that id."""
        ...

    async def get(self, project: ProjectId, account: AccountId) -> KeptAccount:
        """Raises: NotFound."""
        ...

    async def list(self, request: AccountsRequest) -> tuple[ConnectedAccount, ...]:
        """By time and id; a page goes on where the last one ended, whatever came and went."""
        ...

    async def replace(self, seen: KeptAccount, new: ConnectedAccount, sealed: bytes) -> bool:
        """Write both if the record has the revision that was `seen`; id, project, user and toolkit never change.

        One step, among all processes; False if someone else was first, or it is gone.
        """
        ...

    async def remove(self, project: ProjectId, account: AccountId) -> bool:
        """Drop it with its secrets and links; False if it is gone."""
        ...

    async def hold(self, account: AccountId, holder: str, now: str, until: str) -> bool:
        """Only one holds an account at a time, among all processes; what was held until before `now` is free.

        False if another one holds it, or it is gone. To hold it again, as the same holder, is to hold it longer.
        """
        ...

    async def let_go(self, account: AccountId, holder: str) -> None:
        """Nothing happens if somebody else holds it."""
        ...

    async def add_config(self, config: AuthConfig, sealed: bytes = b"") -> None:
        """Keep it, with the sealed secret of its client. Raises: Conflict: there is one with that id."""
        ...

    async def config(self, project: ProjectId, config: AuthConfigId) -> tuple[AuthConfig, bytes]:
        """With what is sealed. Raises: NotFound."""
        ...

    async def configs(self, project: ProjectId, toolkit: str | None = None) -> tuple[AuthConfig, ...]:
        """Those there are, newest first; of one toolkit, or all."""
        ...

    async def remove_config(self, project: ProjectId, config: AuthConfigId) -> bool:
        """Drop it with its secret; False if it is gone. Accounts that were connected by it stay."""
        ...

    async def add_link(self, link: PendingLink, sealed: bytes = b"") -> None:
        """Raises: NotFound: there is no such account."""
        ...

    async def link(self, digest: str) -> tuple[PendingLink, bytes]:
        """With what is sealed. Raises: NotFound."""
        ...

    async def replace_link(self, seen: PendingLink, new: PendingLink, sealed: bytes) -> bool:
        """Write both if `state` and `finished_at` are still as they were `seen`; False if not, or it is gone."""
        ...

    async def link_by_state(self, state: str) -> tuple[PendingLink, bytes]:
        """The one whose service was asked with a state of this digest. Raises: NotFound."""
        ...

    async def drop_links_expired_before(self, at: str) -> int:
        """How many there were. Their accounts stay."""
        ...

    async def expire_unused(self, before: str, now: str, why: str) -> int:
        """Write down as EXPIRED, at `now` and with this reason, what is INITIATED and was not changed since `before`;
        how many there were. One step for each, among all processes.
        """
        ...

    async def sealed_under(self, after: str, limit: int) -> tuple[tuple[str, bytes], ...]:
        """Everything that is sealed, of all projects, by a name of the store's; to be sealed anew."""
        ...

    async def reseal(self, name: str, seen: bytes, sealed: bytes) -> bool:
        """Write it if what is there is what was `seen`. Changes no revision."""
        ...


class Vault(Protocol):
    """Seals secrets with a key that it does not keep beside them."""

    def seal(self, context: str, secret: bytes) -> bytes:
        """So that nobody reads or changes it without the key. `context` is what it belongs to, and is no secret.

        Raises:
            StoreUnavailable: there is no key, or it cannot be used; the message says what to do.
        """
        ...

    def unseal(self, context: str, sealed: bytes) -> bytes:
        """What was sealed for this context.

        Raises:
            StoreUnavailable: by another key, for another context, or it was changed.
        """
        ...

    def resealed(self, sealed: bytes) -> bytes:
        """The same, by the newest key. Raises: StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """A form that is sent to an authorisation server."""

    url: str
    form: Mapping[str, str | Secret]
    client: tuple[str, Secret] | None = None
    """to be sent as HTTP's Basic; None if it is in the form, or there is no secret"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """What it said."""

    status: int
    fields: Mapping[str, object] = field(repr=False)
    """an object of JSON, or a form; empty if it was neither"""


class TokenEndpoints(Protocol):
    """Authorisation servers, asked once each time, in bounded time and size, at public addresses only.

    Nothing of what is sent or answered is in an error, a repr or a log. Redirects are not followed.
    """

    async def ask(self, request: TokenRequest) -> TokenAnswer:
        """Whatever the status.

        Raises:
            Denied: its address is not to be asked.
            UpstreamUnavailable: it does not answer, or not in time; whether it was done is not known.
            UpstreamBadAnswer: the answer is too large, or makes no sense.
        """
        ...

    async def aclose(self) -> None:
        """May be called twice."""
        ...
