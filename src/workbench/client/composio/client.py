"""The client of the sessions API, under the names that programs written for Composio's SDK use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from workbench.client._requests import given
from workbench.client._sending import (
    DEFAULT_RETRY_FOR_S,
    DEFAULT_TIMEOUT_S,
    KEY_VARIABLE,
    URL_VARIABLE,
    Sender,
    Target,
    Variables,
)
from workbench.client.composio import _requests
from workbench.client.composio._custom import CustomTools
from workbench.client.composio._options import (
    Listed,
    ManageConnectionsOptions,
    MultiAccountOptions,
    SandboxOptions,
)
from workbench.client.composio.session import ComposioSession
from workbench.client.composio.values import CustomTool
from workbench.errors import InvalidRequest
from workbench.wire.composio import DeletedSession

# The field's first, so that a program which was moved here by two variables finds them.
_VARIABLES = Variables(url=("COMPOSIO_BASE_URL", URL_VARIABLE), key=("COMPOSIO_API_KEY", KEY_VARIABLE))
_DIRECT_TOOLS = "direct_tools"
# What that preset means, for whatever is not said otherwise.
_PRESET: Mapping[str, object] = {
    "manage_connections": {"enable": False},
    "workbench": {"enable": False},
    "preload": {"tools": "all"},
    "search": {"enable": False},
    "execute": {"enable_multi_execute": False},
}


class ComposioSessions:
    """Making, finding and deleting sessions."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def create(
        self,
        user_id: str,
        *,
        toolkits: Listed | None = None,
        tools: Mapping[str, Listed] | None = None,
        tags: Listed | None = None,
        auth_configs: Mapping[str, str] | None = None,
        connected_accounts: Mapping[str, str | Iterable[str]] | None = None,
        manage_connections: bool | ManageConnectionsOptions | Mapping[str, Any] | None = None,
        sandbox: SandboxOptions | Mapping[str, Any] | None = None,
        workbench: SandboxOptions | Mapping[str, Any] | None = None,
        multi_account: MultiAccountOptions | Mapping[str, Any] | None = None,
        proxy_execute: bool | Mapping[str, Any] | None = None,
        preload: Iterable[str] | Mapping[str, Any] | None = None,
        session_preset: str | None = None,
        experimental: Mapping[str, Any] | None = None,
        custom_tools: Iterable[CustomTool] = (),
        mcp: bool = False,
    ) -> ComposioSession:
        """A new session of a user of yours. `workbench` is another name for `sandbox`.

        `session_preset="direct_tools"` is a session without sandbox, search and connections, that lists its tools
        themselves. `mcp` is taken and changes nothing: every session has `mcp`.

        Raises:
            InvalidRequest: an option that there is not, or a value that it cannot have.
        """
        del mcp
        if session_preset not in (None, _DIRECT_TOOLS):
            raise InvalidRequest(f"session_preset must be {_DIRECT_TOOLS!r}, not {session_preset!r}")
        custom, more = _experimental(experimental or {}, custom_tools)
        told: dict[str, object] = {
            "toolkits": toolkits,
            "tools": tools,
            "tags": tags,
            "auth_configs": auth_configs,
            "connected_accounts": connected_accounts,
            "manage_connections": manage_connections,
            "multi_account": multi_account,
            "proxy_execute": proxy_execute,
            "preload": preload,
            "experimental": more or None,
        }
        asked = _requests.blocks(told, sandbox=sandbox, workbench=workbench, nothing=None)
        preset = _PRESET if session_preset else {}
        made = self._sender.send(_requests.create_session({"user_id": user_id, **preset, **asked}))
        return ComposioSession(self._sender, made, custom)

    def use(
        self,
        session_id: str,
        *,
        custom_tools: Iterable[CustomTool] = (),
        custom_toolkits: Iterable[Mapping[str, Any]] = (),
        mcp: bool = False,
    ) -> ComposioSession:
        """A session that exists; with tools of this program's, which the server does not keep.

        Raises:
            NotFound: it does not, or not for this key.
        """
        del mcp
        custom = CustomTools(custom_tools, custom_toolkits)
        definitions = custom.definitions()
        request = _requests.attach(session_id, definitions) if definitions else _requests.get_session(session_id)
        return ComposioSession(self._sender, self._sender.send(request), custom)

    def delete(self, session_id: str) -> DeletedSession:
        """End it, and drop its files and its history.

        Raises:
            NotFound: there is none.
        """
        return self._sender.send(_requests.delete_session(session_id))


class Composio:
    """A server that speaks Composio's sessions API, such as this one. May be used by many threads at once."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        retry_for_s: float = DEFAULT_RETRY_FOR_S,
    ) -> None:
        """What is not given comes from COMPOSIO_API_KEY and COMPOSIO_BASE_URL, then from our own variables.

        `api_key` is a key, or a token of one session. `timeout` is the longest silence of the server in seconds, not
        the longest tool: the server keeps the connection of those alive.

        Raises:
            Unauthenticated: there is no key.
            InvalidRequest: an address or a time that cannot be used.
        """
        target = Target(base_url, api_key, timeout_s=timeout, retry_for_s=retry_for_s, variables=_VARIABLES)
        self._sender = Sender(target)
        self.sessions = ComposioSessions(self._sender)
        self.create = self.sessions.create
        self.use = self.sessions.use

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._sender.target.url

    @property
    def api_key(self) -> str:
        """The key that is sent."""
        return self._sender.target.key

    def close(self) -> None:
        """Its connections. May be called twice."""
        self._sender.close()

    def __enter__(self) -> Composio:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.base_url}>"


def _experimental(told: Mapping[str, Any], tools: Iterable[CustomTool]) -> tuple[CustomTools, dict[str, object]]:
    """Tools of this program's, and what else is under that name, as the wire has it."""
    rest = dict(told)
    mine, toolkits = rest.pop("custom_tools", None) or (), rest.pop("custom_toolkits", None) or ()
    custom = CustomTools([*mine, *tools], toolkits)
    return custom, given({**rest, **custom.definitions()})
