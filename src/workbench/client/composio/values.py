"""What calls of a session give, where the shapes of the wire have no words of their own for it, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from workbench.wire.rest import Answered

JsonObject = dict[str, Any]
"""JSON of others, whose fields nobody knows here: arguments and results of tools, schemas"""

ResultType = Literal["completed", "failed", "blocked", "input_required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """Where the session's tools are for clients of MCP."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    """what such a client sends; has the key, and is empty for an address that is not the server's"""
    type: str = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a person said to what a tool asked first."""

    responses: Mapping[str, object]
    state: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteResponse:
    """What a tool answered, also if it failed. If its `error` begins with `not run`, it never began."""

    data: JsonObject
    error: str | None
    log_id: str
    """by which the call is found again; for code in the sandbox the id of its cell"""
    result_type: ResultType
    input_requests: Mapping[str, JsonObject] = field(default_factory=dict)
    """with `input_required`: what a person is to be asked, by id; nothing was done yet"""
    request_state: str = field(default="", repr=False)
    """to be sent along with the answers, as it is"""

    @property
    def successful(self) -> bool:
        """It did what it was asked to."""
        return self.result_type == "completed"


class FoundTools(Answered):
    """What fits one use case."""

    index: int = 1
    use_case: str = ""
    primary_tool_slugs: list[str] = Field(default_factory=list)
    related_tool_slugs: list[str] = Field(default_factory=list)
    toolkits: list[str] = Field(default_factory=list)
    error: str | None = None
    execution_guidance: str | None = None
    known_pitfalls: list[str] | None = None
    recommended_plan_steps: list[str] | None = None


class FoundSchema(Answered):
    """How one of the found tools is called."""

    tool_slug: str
    toolkit: str = ""
    description: str | None = None
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None


class ConnectionStatus(Answered):
    """Whether a toolkit can be used."""

    toolkit: str
    description: str = ""
    has_active_connection: bool = False
    status_message: str = ""


class SearchResponse(Answered):
    """Tools for a task, and what is known about using them."""

    success: bool = True
    error: str | None = None
    results: list[FoundTools]
    tool_schemas: dict[str, FoundSchema] = Field(default_factory=dict)
    toolkit_connection_statuses: list[ConnectionStatus] = Field(default_factory=list)
    next_steps_guidance: list[str] = Field(default_factory=list)
    session: JsonObject = Field(default_factory=dict)
    time_info: JsonObject = Field(default_factory=dict)


class AuthConfig(Answered):
    """By what an account is connected."""

    id: str
    mode: str = Field(default="", validation_alias="auth_scheme")
    is_composio_managed: bool = False


class ConnectedAccount(Answered):
    """An account of a user."""

    id: str
    status: str
    user_id: str = ""
    status_reason: str | None = None
    auth_config: AuthConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitConnection:
    """Whether somebody's account stands behind a toolkit."""

    is_active: bool
    auth_config: AuthConfig | None
    connected_account: ConnectedAccount | None


class ToolkitMeta(Answered):
    """What is shown of a toolkit."""

    logo: str | None = None
    description: str = ""


class ToolkitState(Answered):
    """A toolkit, and whether it can be used."""

    slug: str
    name: str
    is_no_auth: bool = False
    enabled: bool = True
    meta: ToolkitMeta = Field(default_factory=ToolkitMeta)
    connected_account: ConnectedAccount | None = None

    @property
    def logo(self) -> str | None:
        """Where its picture is."""
        return self.meta.logo

    @property
    def connection(self) -> ToolkitConnection | None:
        """None for one that needs no account."""
        if self.is_no_auth:
            return None
        account = self.connected_account
        return ToolkitConnection(
            is_active=account is not None and account.status == "ACTIVE",
            auth_config=account.auth_config if account else None,
            connected_account=account,
        )


class ToolkitPage(Answered):
    """Some of them."""

    items: list[ToolkitState]
    next_cursor: str | None = None
    total_pages: int = 1
    total_items: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomTool:
    """A tool that runs in this program. The server knows how it is called, and its name begins with LOCAL_."""

    slug: str
    description: str
    execute: Callable[[JsonObject], object]
    """takes the arguments; what it gives is the `data` of the answer, what it raises is the `error`"""
    input_schema: JsonObject
    """a JSON Schema of an object"""
    name: str = ""
    output_schema: JsonObject | None = None
    extends_toolkit: str | None = None
    preload: bool | None = None
