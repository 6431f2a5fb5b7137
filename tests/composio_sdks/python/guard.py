"""An upload to a server whose links lead to loopback."""

from __future__ import annotations

from composio import Composio
from tests.composio_sdks.python.facts import Facts


def main() -> None:
    """And what needs no link."""
    facts = Facts()
    mount = Composio(allow_tracking=False).create(user_id="user_123").experimental.files
    facts.refusal("upload", lambda: mount.upload(b"x", remote_path="x.txt", mimetype="text/plain"))
    facts.of("list", mount.list)
    facts.write()


if __name__ == "__main__":
    main()
