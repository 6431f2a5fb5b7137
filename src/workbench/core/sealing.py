"""What is sealed beside accounts, auth configs and links: their secrets as JSON, each for its own record alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.contracts.connections import Vault
from workbench.model.connection import AuthConfig, ConnectedAccount, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSecrets:
    """Of one account."""

    values: Mapping[str, Secret]
    """what is sent along with calls"""
    refresh: Secret = field(default_factory=lambda: Secret(""))
    """what new ones are asked for with; empty if there is none"""


class Sealing:
    """Seals by the vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def seal_account(self, account: ConnectedAccount, held: AccountSecrets) -> bytes:
        """To be kept beside it."""
        values = {name: value.reveal() for name, value in held.values.items()}
        text = json.dumps({"values": values, "refresh": held.refresh.reveal()})
        return self._vault.seal(_of_account(account), text.encode())

    def open_account(self, account: ConnectedAccount, sealed: bytes) -> AccountSecrets:
        """Raises: StoreUnavailable."""
        if not sealed:
            return AccountSecrets(values={})
        kept = json.loads(self._vault.unseal(_of_account(account), sealed))
        values = {name: Secret(value) for name, value in kept["values"].items()}
        return AccountSecrets(values=values, refresh=Secret(kept["refresh"]))

    def seal_config(self, config: AuthConfig, client_secret: Secret) -> bytes:
        """To be kept beside it; nothing for a public client."""
        text = client_secret.reveal()
        return self._vault.seal(_of_config(config), text.encode()) if text else b""

    def open_config(self, config: AuthConfig, sealed: bytes) -> Secret:
        """Raises: StoreUnavailable."""
        return Secret(self._vault.unseal(_of_config(config), sealed).decode() if sealed else "")

    def seal_link(self, digest: str, held: Mapping[str, str]) -> bytes:
        """To be kept beside it."""
        return self._vault.seal(f"link/{digest}", json.dumps(dict(held)).encode()) if held else b""

    def open_link(self, digest: str, sealed: bytes) -> dict[str, str]:
        """Raises: StoreUnavailable."""
        if not sealed:
            return {}
        kept: dict[str, str] = json.loads(self._vault.unseal(f"link/{digest}", sealed))
        return kept


def _of_account(account: ConnectedAccount) -> str:
    # With the toolkit: a credential must not go to another service because a record was changed.
    return f"account/{account.project}/{account.id}/{account.toolkit}"


def _of_config(config: AuthConfig) -> str:
    return f"auth-config/{config.project}/{config.id}/{config.toolkit}"
