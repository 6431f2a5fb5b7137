"""With a user's key and none of a project."""

from __future__ import annotations

import os

from composio import Composio
from tests.composio_sdks.python.facts import Facts


def main() -> None:
    """A session, and a cell in it."""
    del os.environ["COMPOSIO_API_KEY"]
    facts = Facts()
    composio = Composio(disable_api_key=True, user_api_key=os.environ["USER_KEY"], allow_tracking=False)
    session = facts.of("create", lambda: composio.create(user_id="u"), lambda made: made.session_id)
    facts.of(
        "workbench",
        lambda: session.execute("COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "6 * 7"}),
    )
    facts.write()


if __name__ == "__main__":
    main()
