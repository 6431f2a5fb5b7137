"""An account that is connected by the link of `session.authorize`: by somebody else, while the program waits."""

from __future__ import annotations

import os
import threading
import urllib.parse
import urllib.request

from composio import Composio
from tests.composio_sdks.python.facts import Facts

_WAIT_S = 30
# The program is waiting by then; nothing depends on it.
_LATER_S = 1.5


def person(link: str) -> None:
    """In a browser elsewhere: looks at the page, and fills its form in."""
    with urllib.request.urlopen(link, timeout=_WAIT_S) as page:
        assert "name='field.token'" in page.read().decode()
    filled = {"kind": "BEARER_TOKEN", "field.token": os.environ["TOKEN"]}
    with urllib.request.urlopen(link, urllib.parse.urlencode(filled).encode(), timeout=_WAIT_S) as page:
        assert "is connected" in page.read().decode()


def main() -> None:
    """One that is finished, and one that nobody finishes."""
    facts = Facts()
    composio = Composio(allow_tracking=False)
    session = composio.create(user_id=os.environ["USER_ID"])
    facts.of("toolkits before", lambda: session.toolkits(toolkits=["github"]))
    request = facts.of(
        "authorize",
        lambda: session.authorize("github"),
        lambda made: {"id": made.id, "status": made.status, "redirect_url": made.redirect_url},
    )
    later = threading.Timer(_LATER_S, person, (request.redirect_url,))
    later.start()
    facts.of("wait", lambda: request.wait_for_connection(timeout=_WAIT_S))
    later.join()
    facts.of("toolkits after", lambda: session.toolkits(toolkits=["github"]))
    facts.of("get", lambda: composio.connected_accounts.get(request.id))
    forgotten = session.authorize("github", callback_url="https://app.example.com/back")
    facts.refusal("wait in vain", lambda: forgotten.wait_for_connection(timeout=2))
    facts.write()


if __name__ == "__main__":
    main()
