"""Connected accounts, auth configs and links in this process's memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from workbench.contracts.connections import AccountsRequest, KeptAccount
from workbench.errors import Conflict, NotFound
from workbench.model.connection import (
    AccountId,
    AuthConfig,
    AuthConfigId,
    ConnectedAccount,
    ConnectionStatus,
    PendingLink,
)
from workbench.model.ids import ProjectId
from workbench.storage.shelves import Shelves
from workbench.storage.wording import (
    account_exists_already,
    config_exists_already,
    no_such_account,
    no_such_config,
    no_such_link,
)

K = TypeVar("K")
V = TypeVar("V")


class MemoryConnectionStore:
    """A ConnectionStore without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def add(self, account: ConnectedAccount, sealed: bytes = b"") -> None:
        """As the contract has it."""
        if account.id in self._shelves.accounts:
            raise Conflict(account_exists_already(account.id), {"connected_account": account.id})
        self._shelves.accounts[account.id] = KeptAccount(account=account, sealed=sealed)

    async def get(self, project: ProjectId, account: AccountId) -> KeptAccount:
        """As the contract has it."""
        found = self._shelves.accounts.get(account)
        if found is None or found.account.project != project:
            raise NotFound(no_such_account(account), {"connected_account": account[:60]})
        return found

    async def list(self, request: AccountsRequest) -> tuple[ConnectedAccount, ...]:
        """As the contract has it."""
        found = [
            one.account
            for one in self._shelves.accounts.values()
            if one.account.project == request.project
            and request.user in (None, one.account.user)
            and request.toolkit in (None, one.account.toolkit)
            and (request.after is None or (one.account.created_at, one.account.id) > request.after)
        ]
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id))[: request.limit])

    async def replace(self, seen: KeptAccount, new: ConnectedAccount, sealed: bytes) -> bool:
        """As the contract has it."""
        now = self._shelves.accounts.get(seen.account.id)
        if now is None or now.revision != seen.revision:
            return False
        self._shelves.accounts[new.id] = KeptAccount(account=new, sealed=sealed, revision=now.revision + 1)
        return True

    async def remove(self, project: ProjectId, account: AccountId) -> bool:
        """As the contract has it."""
        found = self._shelves.accounts.get(account)
        return found is not None and found.account.project == project and self._shelves.drop_account(account)

    async def hold(self, account: AccountId, holder: str, now: str, until: str) -> bool:
        """As the contract has it."""
        who, held_until = self._shelves.holders.get(account, ("", ""))
        if account not in self._shelves.accounts or (who not in ("", holder) and held_until >= now):
            return False
        self._shelves.holders[account] = (holder, until)
        return True

    async def let_go(self, account: AccountId, holder: str) -> None:
        """As the contract has it."""
        if self._shelves.holders.get(account, ("", ""))[0] == holder:
            del self._shelves.holders[account]

    async def add_config(self, config: AuthConfig, sealed: bytes = b"") -> None:
        """As the contract has it."""
        if config.id in self._shelves.auth_configs:
            raise Conflict(config_exists_already(config.id), {"auth_config": config.id})
        self._shelves.auth_configs[config.id] = (config, sealed)

    async def config(self, project: ProjectId, config: AuthConfigId) -> tuple[AuthConfig, bytes]:
        """As the contract has it."""
        found = self._shelves.auth_configs.get(config)
        if found is None or found[0].project != project:
            raise NotFound(no_such_config(config), {"auth_config": config[:60]})
        return found

    async def configs(self, project: ProjectId, toolkit: str | None = None) -> tuple[AuthConfig, ...]:
        """As the contract has it."""
        all_of_them = (one for one, _ in self._shelves.auth_configs.values())
        found = [one for one in all_of_them if one.project == project and toolkit in (None, one.toolkit)]
        return tuple(sorted(found, key=lambda one: (one.created_at, one.id), reverse=True))

    async def remove_config(self, project: ProjectId, config: AuthConfigId) -> bool:
        """As the contract has it."""
        found = self._shelves.auth_configs.get(config)
        if found is None or found[0].project != project:
            return False
        del self._shelves.auth_configs[config]
        return True

    async def add_link(self, link: PendingLink, sealed: bytes = b"") -> None:
        """As the contract has it."""
        if link.account not in self._shelves.accounts:
            raise NotFound(no_such_account(link.account), {"connected_account": link.account})
        self._shelves.links[link.digest] = (link, sealed)

    async def link(self, digest: str) -> tuple[PendingLink, bytes]:
        """As the contract has it."""
        if digest not in self._shelves.links:
            raise NotFound(no_such_link())
        return self._shelves.links[digest]

    async def link_by_state(self, state: str) -> tuple[PendingLink, bytes]:
        """As the contract has it."""
        for link, sealed in self._shelves.links.values():
            if state and link.state == state:
                return link, sealed
        raise NotFound(no_such_link())

    async def replace_link(self, seen: PendingLink, new: PendingLink, sealed: bytes) -> bool:
        """As the contract has it."""
        now = self._shelves.links.get(seen.digest)
        if now is None or (now[0].state, now[0].finished_at) != (seen.state, seen.finished_at):
            return False
        changing = {name: getattr(new, name) for name in ("callback_url", "state", "expires_at", "finished_at")}
        self._shelves.links[seen.digest] = (replace(now[0], **changing), sealed)
        return True

    async def drop_links_expired_before(self, at: str) -> int:
        """As the contract has it."""
        old = [digest for digest, (link, _) in self._shelves.links.items() if link.expires_at < at]
        for digest in old:
            del self._shelves.links[digest]
        return len(old)

    async def expire_unused(self, before: str, now: str, why: str) -> int:
        """As the contract has it."""
        unused = [
            one
            for one in self._shelves.accounts.values()
            if one.account.status is ConnectionStatus.INITIATED and one.account.updated_at < before
        ]
        for one in unused:
            over = replace(one.account, status=ConnectionStatus.EXPIRED, status_reason=why, updated_at=now)
            self._shelves.accounts[over.id] = replace(one, account=over, revision=one.revision + 1)
        return len(unused)

    async def sealed_under(self, after: str, limit: int) -> tuple[tuple[str, bytes], ...]:
        """As the contract has it."""
        found = [(f"a{name}", kept.sealed) for name, kept in self._shelves.accounts.items()]
        found += [(f"c{name}", sealed) for name, (_, sealed) in self._shelves.auth_configs.items()]
        found += [(f"l{name}", sealed) for name, (_, sealed) in self._shelves.links.items()]
        found += [(f"t{name}", kept.sealed) for name, kept in self._shelves.added.items()]
        return tuple(sorted(one for one in found if one[1] and one[0] > after)[:limit])

    async def reseal(self, name: str, seen: bytes, sealed: bytes) -> bool:
        """As the contract has it."""
        if name.startswith("a"):
            kept = self._shelves.accounts.get(AccountId(name[1:]))
            if kept is None or kept.sealed != seen:
                return False
            self._shelves.accounts[kept.account.id] = replace(kept, sealed=sealed)
            return True
        if name.startswith("t"):
            added = self._shelves.added.get(name[1:])
            if added is None or added.sealed != seen:
                return False
            self._shelves.added[name[1:]] = replace(added, sealed=sealed)
            return True
        if name.startswith("c"):
            return _swapped(self._shelves.auth_configs, AuthConfigId(name[1:]), seen, sealed)
        return _swapped(self._shelves.links, name[1:], seen, sealed)


def _swapped(shelf: dict[K, tuple[V, bytes]], name: K, seen: bytes, sealed: bytes) -> bool:
    found = shelf.get(name)
    if found is None or found[1] != seen:
        return False
    shelf[name] = (found[0], sealed)
    return True
