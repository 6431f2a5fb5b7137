"""What an agent does with the official Python SDK: the steps that the environment names, in one session."""

from __future__ import annotations

import functools
import json
import os

from composio import Composio
from tests.composio_sdks.python.facts import Facts


def main() -> None:
    """One after the other."""
    facts = Facts()
    composio = Composio(allow_tracking=False)
    session = facts.of("session", lambda: composio.create(user_id="ann"), lambda made: made.session_id)
    words = json.loads(os.environ["USE_CASE"])
    facts.of("session.search", lambda: session.search(query=words))
    for name, (slug, arguments) in json.loads(os.environ["STEPS"]).items():
        facts.of(name, functools.partial(session.execute, slug, arguments=arguments))
    facts.write()


if __name__ == "__main__":
    main()
