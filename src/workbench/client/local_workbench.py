"""`create_local_workbench_session`: a session's place in a box of the caller's own, whichever SDK holds the session."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.client import _requests
from workbench.client._sending import Sender, Target
from workbench.client.aio import AsyncWorkbench
from workbench.client.aio_session import AsyncSession
from workbench.client.session import Session
from workbench.client.sync import Workbench
from workbench.client.values import LocalWorkbenchSession

DEFAULT_EXPIRES_IN_S = 24 * 3600
_CLIENTS = "a workbench.Workbench, a workbench.Composio, or a Composio of the package `composio`"


def create_local_workbench_session(
    client: object, session: object, *, expires_in_s: int = DEFAULT_EXPIRES_IN_S
) -> LocalWorkbenchSession:
    """The helper module and the variables for a box that you run, for a session whose sandbox is off.

        session = client.create("user_123", sandbox={"enable": False})
        box = create_local_workbench_session(client, session)
        Path("composio_helper.py").write_text(box.helper_source)
        subprocess.run([sys.executable, "agent.py"], env={**os.environ, **box.env})

    `client` is a `Workbench`, a `Composio` of ours, or the official SDK's with its base URL at this server; `session`
    one of its sessions, or the id of one. The key of the client stays here: what goes into the box is a token of the
    session, which is good for `expires_in_s` seconds, a day unless given and 30 days at most.

    Raises:
        TypeError: that is no such client or session.
        Conflict: the session's sandbox is on; make one with `sandbox={"enable": False}`.
        WorkbenchError: the server refused otherwise, or cannot be reached.
    """
    if isinstance(session, AsyncSession) or isinstance(client, AsyncWorkbench):
        raise TypeError("of an AsyncSession: `await session.local_sandbox()`")
    if isinstance(client, Workbench):
        held = session if isinstance(session, Session) else client.use(_session_id(session))
        return held.local_sandbox(expires_in_s=expires_in_s)
    request = _requests.create_local_sandbox(_session_id(session), expires_in_s)
    sender = Sender(Target(_address(client), _key(client, session)))
    try:
        return sender.send(request)
    finally:
        sender.close()


def _session_id(session: object) -> str:
    for value in (session, getattr(session, "session_id", None), getattr(session, "id", None)):
        if isinstance(value, str) and value:
            return value
    raise TypeError(f"session has to be a session of an SDK, or the id of one, not {_kind(session)}")


def _address(client: object) -> str:
    """Some SDKs have it themselves, some as a part of the client that they send with."""
    for holder in (client, getattr(client, "client", None)):
        address = getattr(holder, "base_url", None)
        # A string, or a URL of the library that it sends with.
        if address is not None and str(address).startswith(("http://", "https://")):
            return str(address).rstrip("/")
    raise TypeError(f"client has to be {_CLIENTS}, not {_kind(client)}: it has no base_url")


def _key(client: object, session: object) -> str:
    inner = getattr(client, "client", None)
    for holder in (client, inner):
        if isinstance(key := getattr(holder, "api_key", None), str) and key:
            return key
    # Newer ones keep it to themselves, and tell it to who is to reach the session by MCP.
    headers = getattr(getattr(session, "mcp", None), "headers", None)
    if isinstance(headers, Mapping):
        for name in ("x-api-key", "x-user-api-key", "x-org-api-key"):
            if isinstance(key := headers.get(name), str) and key:
                return key
    auth = getattr(inner, "_auth", None)
    for name in ("credential", "project", "user", "organization"):
        if isinstance(key := getattr(auth, name, None), str) and key:
            return key
    raise TypeError(f"client has to be {_CLIENTS}, with a key; this {_kind(client)} shows none")


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
