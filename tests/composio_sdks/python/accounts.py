"""What users of the official Python SDK do with auth configs and connected accounts, one after the other.

Run by the interpreter of an SDK's own environment, as a user would: nothing here knows of our server.
"""

from __future__ import annotations

import json
import os

from composio import Composio
from composio.core.models.connected_accounts import auth_scheme


def main() -> None:
    """Says what it was told, as JSON."""
    composio = Composio(allow_tracking=False)
    told: dict[str, object] = {}
    key = composio.auth_configs.create(
        "keyed", {"type": "use_custom_auth", "auth_scheme": "API_KEY", "credentials": {}}
    )
    client = composio.auth_configs.create(
        "notes",
        {"type": "use_custom_auth", "auth_scheme": "OAUTH2",
         "credentials": {"client_id": "workbench-client", "client_secret": os.environ["CLIENT_SECRET"]}},
    )  # fmt: skip
    told["kinds"] = [key.auth_scheme, client.auth_scheme]
    try:
        composio.auth_configs.create("notes", {"type": "use_composio_managed_auth"})
    except Exception as problem:  # noqa: BLE001 - of whichever class a release has
        told["managed"] = [type(problem).__name__, str(problem)]
    told["listed"] = [one.id for one in composio.auth_configs.list(toolkit_slug="keyed").items] == [key.id]
    told["got"] = composio.auth_configs.get(client.id).id == client.id
    told["link"] = composio.connected_accounts.link("user_1", client.id, alias="work").redirect_url
    told["initiated"] = composio.connected_accounts.initiate("user_1", client.id).redirect_url
    made = composio.connected_accounts.initiate(
        "user_1", key.id, config=auth_scheme.api_key({"api_key": os.environ["ACCOUNT_KEY"]})
    )
    told["imported"] = made.wait_for_connection(timeout=10).status
    told["renamed"] = composio.connected_accounts.update(made.id, alias="mine").success
    composio.connected_accounts.disable(made.id)
    told["off"] = composio.connected_accounts.get(made.id).status
    composio.connected_accounts.enable(made.id)
    active = composio.connected_accounts.list(user_ids=["user_1"], statuses=["ACTIVE"])
    told["active"] = [(one.alias, one.auth_config.id == key.id) for one in active.items]
    told["authorized"] = composio.toolkits.authorize(user_id="user_2", toolkit="keyed").redirect_url
    told["deleted"] = composio.connected_accounts.delete(made.id).success
    told["forgotten"] = composio.auth_configs.delete(key.id).success
    print(json.dumps(told))


if __name__ == "__main__":
    main()
