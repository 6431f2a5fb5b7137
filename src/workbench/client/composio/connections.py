"""An account that its owner is asked to connect, and waiting for that."""

from __future__ import annotations

import time

from workbench.client._sending import Sender
from workbench.client.composio import _requests
from workbench.client.composio.values import ConnectedAccount
from workbench.errors import UpstreamRefused
from workbench.wire.composio_tools import LinkMade

DEFAULT_WAIT_S = 60.0
_LOOK_S = 1.0
_ACTIVE = "ACTIVE"
# It will not become active any more.
_OVER = frozenset({"FAILED", "EXPIRED", "REVOKED"})


class ConnectionRequest:
    """What was asked of a user: to go to `redirect_url`, and to let the session use an account."""

    def __init__(self, sender: Sender, linked: LinkMade) -> None:
        self._sender = sender
        self.id = linked.connected_account_id
        self.redirect_url = linked.redirect_url
        self.status = "INITIATED"

    def wait_for_connection(self, timeout: float | None = None) -> ConnectedAccount:
        """Until it is connected; looks every second.

        Raises:
            TimeoutError: it was not within `timeout` seconds, 60 unless given; it still may be.
            UpstreamRefused: it will not be any more.
        """
        patience_s = DEFAULT_WAIT_S if timeout is None else timeout
        until = time.monotonic() + patience_s
        while True:
            account = self._sender.send(_requests.get_account(self.id))
            self.status = account.status
            if account.status == _ACTIVE:
                return account
            if account.status in _OVER:
                why = f": {account.status_reason}" if account.status_reason else ""
                raise UpstreamRefused(
                    f"the connection {self.id} is {account.status}{why}; session.authorize asks for a new one",
                    {"connected_account": self.id},
                )
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(
                    f"the connection {self.id} is {account.status} after {patience_s:g} s; has somebody opened "
                    f"{self.redirect_url}? wait_for_connection can be called again"
                )
            time.sleep(min(_LOOK_S, left_s))

    def __repr__(self) -> str:
        return f"<ConnectionRequest {self.id}, {self.status}>"
