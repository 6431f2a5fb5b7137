"""Toolkits that were added, connected accounts, and how they are connected. aio_toolkits.py has the same names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.client import _toolkit_requests as _requests
from workbench.client._sending import Sender
from workbench.errors import UpstreamRefused, UpstreamUnavailable
from workbench.model.connection import ConnectionStatus
from workbench.wire import rest
from workbench.wire import rest_connections as wire

PAUSE_S = 1.0
"""between two looks at an account that somebody waits for"""


class Toolkits:
    """Toolkits that were added for the project; for keys with the scope `admin`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def add(self, slug: str, **options: Any) -> rest.AddedToolkitWithTools:
        """One from an MCP server (`url=`), an OpenAPI document (`openapi=`) or Composio (`composio=`, `key=`); tried
        first unless `test=False`. Its options are those of `POST /v1/toolkits`.

        Raises:
            Conflict: there is one of this name.
            InvalidRequest: an option that there is not, or a value that it cannot have.
            UpstreamError: it could not be reached, or its tools could not be listed.
        """
        return self._sender.send(_requests.add_toolkit(slug, options))

    def list(self) -> list[rest.AddedToolkit]:
        """Those of the project and those for all, with how they are."""
        return self._sender.send(_requests.list_toolkits())

    def show(self, slug: str) -> rest.AddedToolkitWithTools:
        """One, with its tools. Raises: NotFound."""
        return self._sender.send(_requests.show_toolkit(slug))

    def test(self, slug: str) -> rest.AddedToolkitWithTools:
        """Reach it anew, and list its tools. Raises: UpstreamError: what is wrong with it."""
        return self._sender.send(_requests.test_toolkit(slug))

    def remove(self, slug: str) -> None:
        """It is gone for the next call, with its secrets. Raises: NotFound."""
        self._sender.send(_requests.remove_toolkit(slug))


class Connections:
    """Accounts of users with services."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def begin(
        self,
        toolkit: str,
        user_id: str = "local",
        *,
        callback_url: str | None = None,
        alias: str = "",
        auth_config_id: str | None = None,
    ) -> wire.ConnectionBegun:
        """A link for a person, who connects an account of theirs in a browser. Who has its `url` can use it.

        Raises:
            NotFound: no such toolkit, or no such auth config of it.
            NotConfigured: nothing is set up to connect it with; the message says what to do.
        """
        return self._sender.send(_requests.begin_connection(toolkit, user_id, callback_url, alias, auth_config_id))

    def wait(self, id: str, *, timeout_s: float = 300.0) -> wire.Connection:  # noqa: A002
        """Until the person has connected it.

        Raises:
            NotFound: it was removed.
            UpstreamRefused: it came to nothing; the message says why.
            UpstreamUnavailable: nobody has finished it in time.
        """
        until = time.monotonic() + timeout_s
        while not is_over(account := self.get(id)):
            if time.monotonic() >= until:
                raise waited_in_vain(account, timeout_s)
            time.sleep(PAUSE_S)
        return account

    def list(self, user_id: str | None = None, *, toolkit: str | None = None) -> Iterator[wire.Connection]:
        """Those of a user, or all of the project, oldest first; asks for the next page when it is needed."""
        cursor: str | None = None
        while True:
            page = self._sender.send(_requests.list_connections(user_id, toolkit, cursor))
            yield from page.items
            if (cursor := page.next_cursor) is None:
                return

    def get(self, id: str) -> wire.Connection:  # noqa: A002
        """How it is now. Raises: NotFound."""
        return self._sender.send(_requests.get_connection(id))

    def refresh(self, id: str) -> wire.Connection:  # noqa: A002
        """Renew it now; calls do so by themselves when it is due. Raises: Denied: the service does not want to."""
        return self._sender.send(_requests.refresh_connection(id))

    def remove(self, id: str) -> bool:  # noqa: A002
        """Forget it with its secrets; whether the service was told to take them back. Raises: NotFound."""
        return self._sender.send(_requests.remove_connection(id))


class AuthConfigs:
    """As which clients accounts are connected by OAuth2; to change them needs the scope `admin`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def create(
        self, toolkit: str, client_id: str, client_secret: str = "", *, scopes: Iterable[str] = ()
    ) -> wire.AuthConfig:
        """One more, which is used from now on. Its secret is kept sealed, and is not shown again.

        Raises:
            NotFound: no such toolkit.
            InvalidRequest: its accounts are not connected by OAuth2, or a value cannot be one.
        """
        return self._sender.send(_requests.create_auth_config(toolkit, client_id, client_secret, scopes))

    def list(self) -> list[wire.AuthConfig]:
        """All of them, newest first; without their secrets."""
        return self._sender.send(_requests.list_auth_configs())

    def remove(self, id: str) -> None:  # noqa: A002
        """Accounts that were connected by it cannot be renewed any more. Raises: NotFound."""
        self._sender.send(_requests.remove_auth_config(id))


def is_over(account: wire.Connection) -> bool:
    """Whether there is nothing to wait for any more. Raises: UpstreamRefused: it came to nothing."""
    if account.status in (ConnectionStatus.ACTIVE, ConnectionStatus.INITIATED):
        return account.status is ConnectionStatus.ACTIVE
    # Who was refused may try again by the same link.
    if account.status is ConnectionStatus.FAILED:
        return False
    raise UpstreamRefused(
        f"the account {account.id} of {account.toolkit} is {account.status.lower()}: "
        f"{account.status_reason or 'no reason is known'}; begin again",
        {"connected_account": account.id},
    )


def waited_in_vain(account: wire.Connection, timeout_s: float) -> UpstreamUnavailable:
    """For an account that nobody finished."""
    why = f" ({account.status_reason})" if account.status_reason else ""
    return UpstreamUnavailable(
        f"the account {account.id} of {account.toolkit} was not connected within {timeout_s:g} s{why}; its link may "
        "still be good: wait for it again, or begin anew",
        {"connected_account": account.id},
    )
