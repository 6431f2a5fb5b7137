"""A session of a larger tier, as the first release that can ask for one makes it."""

from __future__ import annotations

import os

from composio import Composio
from tests.composio_sdks.python.facts import Facts


def main() -> None:
    """One session, and one cell in it."""
    facts = Facts()
    # Of that age it reads no address from the environment.
    composio = Composio(base_url=os.environ["COMPOSIO_BASE_URL"], allow_tracking=False)
    session = facts.of(
        "create",
        lambda: composio.create(user_id="user_123", workbench={"sandbox_size": "large"}),
        lambda made: made.session_id,
    )
    facts.of(
        "workbench",
        lambda: session.execute("COMPOSIO_REMOTE_WORKBENCH", arguments={"code_to_execute": "6 * 7"}),
    )
    facts.write()


if __name__ == "__main__":
    main()
