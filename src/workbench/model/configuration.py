"""What a session may reach, and how: which toolkits and tools, which accounts, and what its sandbox may do.

It is changed as a whole, each time as a new version, and the versions before are kept to be looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from workbench.errors import InvalidRequest
from workbench.model.approval import Permissions
from workbench.model.corrections import DEFAULT_TEXT, switched
from workbench.model.packages import PackagePolicy

MOST_VERSIONS = 1000
"""that are kept of a session, the present one with them; older ones are dropped"""
DEFAULT_OFFLOAD_CHARACTERS = 20_000
# More than anybody writes by hand; a thousand of them are kept.
_MOST_BYTES = 256 * 1024


def is_named(name: str, names: Iterable[str] | None) -> bool:
    """Whether it is among them."""
    # BARRIER: slugs are told in capitals in one place and in small letters in another; what was ruled out in the wrong
    # ones would be let through. Held by tests/unit/core/router/test_catalogue.py.
    return plain(name) in map(plain, names or ())


def plain(name: str) -> str:
    """As names are compared."""
    return name.strip().lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Some of many. None is nothing said; an empty `enable` is none of them, an empty `disable` all."""

    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] | None = None
    require_approval: tuple[str, ...] | None = None

    def takes(self, name: str) -> bool:
        """Whether it is one of those."""
        return (self.enable is None or is_named(name, self.enable)) and not is_named(name, self.disable)

    def asks_first(self, name: str) -> bool:
        """Whether somebody wants to approve it."""
        return is_named(name, self.require_approval)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Tools of one toolkit, by name or by what they do."""

    tools: Choice = field(default_factory=Choice)
    tags: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManageConnections:
    """Whether the agent itself may connect accounts."""

    enable: bool = True
    callback_url: str = ""
    """where a person is sent afterwards"""
    wait_for_connections: bool = False
    connection_removal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSwitches:
    """What the sandbox is allowed."""

    enable: bool = True
    """without, its code runs in a box that the user runs"""
    proxy_execution: bool = True
    """raw calls to services, on behalf of its connections"""
    tool_execution: bool = True
    """its code has helpers for tools, the model and the search"""
    packages: PackagePolicy | None = None
    """which packages its code may have installed; None for what the server allows, and never more than that"""
    auto_offload_threshold: int | None = None
    """characters of a tool's answer above which it goes to a file; None for what is usual"""
    corrections: dict[str, bool] = field(default_factory=dict)
    """switches of the corrections that are otherwise than the server has them"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiAccount:
    """Several accounts of one toolkit."""

    enable: bool = False
    max_accounts_per_toolkit: int | None = None
    require_explicit_selection: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """All of it. The size of the sandbox is not in here: it is the session's tier."""

    toolkits: Choice | None = None
    tools: dict[str, ToolChoice] = field(default_factory=dict)
    """by toolkit"""
    tags: Choice | None = None
    auth_configs: dict[str, str] = field(default_factory=dict)
    """by toolkit"""
    connected_accounts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """by toolkit"""
    manage_connections: ManageConnections = field(default_factory=ManageConnections)
    sandbox: SandboxSwitches = field(default_factory=SandboxSwitches)
    proxy_execute: bool | None = None
    """raw calls as a tool of the agent's; None if nobody said"""
    multi_account: MultiAccount | None = None
    preload: tuple[str, ...] = ()
    """tools that are shown from the start"""
    preload_all: bool = False
    search: bool = True
    multi_execute: bool = True
    submit_feedback: bool = False
    permissions: Permissions = field(default_factory=Permissions)
    """whether a person is asked before tools run; besides those that `require_approval` names"""
    allow_unasked: bool = False
    """a client by which nobody can be asked runs such tools without; else they are refused there"""
    timezone: str = ""
    """of the user, for what is told about the time"""

    def checked(self) -> SessionConfig:
        """Itself.

        Raises:
            InvalidRequest: it is too large to be kept, or names a switch that there is not.
        """
        switched(DEFAULT_TEXT, self.sandbox.corrections)
        size = len(json.dumps(asdict(self)).encode())
        if size > _MOST_BYTES:
            raise InvalidRequest(f"the configuration has {size} bytes, and at most {_MOST_BYTES} are kept: name less")
        return self

    def tools_of(self, toolkit: str) -> tuple[ToolChoice, ...]:
        """What is said of its tools: all of it, where the toolkit is spelled in several ways."""
        return tuple(one for name, one in self.tools.items() if is_named(toolkit, (name,)))

    def accounts_of(self, toolkit: str) -> frozenset[str]:
        """Those that alone may be used with it; none is nothing said."""
        return frozenset(
            one for name, ids in self.connected_accounts.items() if is_named(toolkit, (name,)) for one in ids
        )

    def auth_config_of(self, toolkit: str) -> str:
        """By which its accounts are connected; empty is nothing said."""
        return next((one for name, one in self.auth_configs.items() if is_named(toolkit, (name,))), "")

    @property
    def proxies(self) -> bool:
        """Whether raw calls are allowed at all."""
        return self.sandbox.proxy_execution and self.proxy_execute is not False

    @property
    def offload_characters(self) -> int:
        """Above which an answer goes to a file."""
        return self.sandbox.auto_offload_threshold or DEFAULT_OFFLOAD_CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRecord:
    """One version of it."""

    version: int
    at: str
    """since when; ISO 8601, UTC"""
    tier: str
    config: SessionConfig
