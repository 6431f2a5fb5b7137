"""The variables by which a helper in the user's own box reaches its session, and nothing but that."""

from __future__ import annotations

import re
from collections.abc import Mapping

from workbench.errors import InvalidRequest

ENV_FILE = "workbench.env"
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]*")


def variables(*, address: str, session: str, mount: str, token: str) -> dict[str, str]:
    """`token` is one of the session: no key of a project ever goes into such a box.

    The helper of others reads it as COMPOSIO_API_KEY, and ours by the name that says what it is.
    """
    return {
        "BACKEND_URL": address.rstrip("/"),
        "COMPOSIO_TOOLROUTER_SESSION_ID": session,
        "COMPOSIO_API_KEY": token,
        "COMPOSIO_WORKBENCH_ACCESS_KEY": token,
        "WORKBENCH_MOUNT_ID": mount,
    }


def env_file(env: Mapping[str, str]) -> str:
    """As a shell sources it, and as `docker run --env-file` reads it: none of these values needs quotes.

    Raises:
        InvalidRequest: one does.
    """
    for name, value in env.items():
        # Told by its name only: it may be the token.
        if not _PLAIN.fullmatch(value):
            raise InvalidRequest(f"{name} has characters that cannot be written without quotes", {"variable": name})
    return "".join(f"{name}={value}\n" for name, value in env.items())
