"""The shapes of the sessions API: what every one of them is made of, and those of sessions.

What is sent says everything as if it were a change: a field that was not sent is not in `model_fields_set`, and null
is back to what is usual. Names differ between what is sent and what is answered, as they do in the API.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from workbench.wire.rest import Answered, Line, SessionName, Size, whole

# How errors about one of two forms are marked; whoever tells them leaves the mark out.
AS_LIST, AS_OBJECT, AS_WORD = "<list>", "<object>", "<word>"
MARKS = frozenset({AS_LIST, AS_OBJECT, AS_WORD})
_MOST_NAMES = 1000
_MOST_TOOLKITS = 500
_ZONE = r"^[A-Za-z0-9_+/-]*$"

Slug = Annotated[Line, Field(min_length=1)]
Slugs = Annotated[list[Slug], Field(max_length=_MOST_NAMES)]


def by_slug(schema: dict[str, Any]) -> None:
    """What is checked of names, in the words that schemas have for it."""
    [(pattern, values)] = schema.pop("patternProperties").items()
    schema["propertyNames"] = {"pattern": pattern, "minLength": 1, "maxLength": 200}
    schema["additionalProperties"] = values


_Kits = Field(max_length=_MOST_TOOLKITS, json_schema_extra=by_slug)
Hint = Literal["readOnlyHint", "createHint", "updateHint", "destructiveHint", "idempotentHint", "openWorldHint"]


class ApiSent(BaseModel):
    """What a caller sends: a name that we do not know is no error, as SDKs of other ages send it."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _OneOfTwo(ApiSent):
    """Either some, or all but some."""

    @model_validator(mode="after")
    def _not_both(self) -> _OneOfTwo:
        if getattr(self, "enable", None) is not None and getattr(self, "disable", None) is not None:
            raise PydanticCustomError("both", "say `enable` or `disable`, not both")
        return self


class Choosing(_OneOfTwo):
    """Toolkits by name."""

    enable: Slugs | None = Field(default=None, description="Only these; none at all if it is empty.")
    disable: Slugs | None = Field(default=None, description="All but these.")
    require_approval: Slugs | None = None


class ChoosingHints(ApiSent):
    """Tools by what they do."""

    enable: list[Hint] | None = Field(default=None, description="Those with one of these.")
    disable: list[Hint] | None = Field(default=None, description="Those with none of these.")
    require_approval: list[Hint] | None = None


Hints = Annotated[
    Annotated[list[Hint], Tag(AS_LIST)] | Annotated[ChoosingHints, Tag(AS_OBJECT)],
    Discriminator(lambda value: AS_LIST if isinstance(value, list) else AS_OBJECT),
]


class ChoosingTools(Choosing):
    """Tools of one toolkit."""

    tags: Hints | None = None


class ManagingConnections(ApiSent):
    """Whether the agent itself may connect accounts."""

    enable: bool | None = None
    callback_url: Annotated[str, Field(max_length=2048, pattern=r"^(https?://[^\x00-\x20]*)?$")] | None = None
    enable_wait_for_connections: bool | None = None
    enable_connection_removal: bool | None = None


class Sandbox(ApiSent):
    """What the sandbox is like, and allowed."""

    enable: bool | None = None
    enable_proxy_execution: bool | None = None
    enable_tool_execution: bool | None = Field(
        default=None, description="Whether its code has helpers for tools, the model and the search."
    )
    auto_offload_threshold: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        default=None, description="Characters of a tool's answer above which it goes to a file."
    )
    sandbox_size: Size | None = None


class Enabling(ApiSent):
    """On or off."""

    enable: bool


class Searching(ApiSent):
    """Whether there is a tool that finds tools."""

    enable: bool | None = None


class Executing(ApiSent):
    """Whether there is a tool that runs several."""

    enable_multi_execute: bool | None = None


class ManyAccounts(ApiSent):
    """Several accounts of one toolkit."""

    enable: bool | None = None
    max_accounts_per_toolkit: Annotated[int, Field(ge=2, le=10), BeforeValidator(whole)] | None = None
    require_explicit_selection: bool | None = None


class Preloading(ApiSent):
    """Tools that are shown from the start."""

    tools: Annotated[
        Annotated[Slugs, Tag(AS_LIST)] | Annotated[Literal["all"], Tag(AS_WORD)],
        Discriminator(lambda value: AS_LIST if isinstance(value, list) else AS_WORD),
    ] = Field(default_factory=list)


class PromptConfig(ApiSent):
    """For what the agent is told about its session."""

    user_timezone: Annotated[str, Field(max_length=64, pattern=_ZONE, examples=["Europe/London"])] | None = None


class Feedback(ApiSent):
    """Whether the agent can report a bad result."""

    enable: bool | None = None


_Override = Annotated[str, Field(pattern=r"^(\*|[A-Z0-9_]{1,100})(:[A-Za-z0-9_-]{1,100})?$")]
_Policy = Literal["always_allow", "always_deny", "ask_once", "ask_always"]


class Permissions(ApiSent):
    """Whether somebody is asked before a tool runs."""

    default: Literal["allow_all", "ask_every_call", "ask_once_per_session"] = "allow_all"
    overrides: Annotated[dict[_Override, _Policy], Field(max_length=1000)] | None = Field(
        default=None, description="By `SLUG`, `SLUG:account` or `*:account`; `__none__` for calls that name no account."
    )


class Configuring(ApiSent):
    """All that a session can be told, at its beginning and later."""

    toolkits: Choosing | None = None
    tools: Annotated[dict[Slug, ChoosingTools], _Kits] | None = Field(default=None, description="By toolkit.")
    tags: Hints | None = None
    auth_configs: Annotated[dict[Slug, Slug], _Kits] | None = None
    connected_accounts: Annotated[dict[Slug, Slugs], _Kits] | None = None
    manage_connections: ManagingConnections | None = None
    workbench: Sandbox | None = Field(default=None, description="What its sandbox is like.")
    sandbox: Sandbox | None = Field(default=None, description="The same by its other name; not both.")
    proxy_execute: Enabling | None = None
    multi_account: ManyAccounts | None = None
    preload: Preloading | None = None
    search: Searching | None = None
    execute: Executing | None = None
    hooks: list[dict[str, object]] | None = Field(
        default=None, description="Not run here: only an empty list is taken."
    )

    @field_validator("hooks")
    @classmethod
    def _none_of_them(cls, hooks: list[dict[str, object]] | None) -> list[dict[str, object]] | None:
        # BARRIER: who relies on a check that never runs would let everything through; held by
        # tests/composio/test_sessions.py.
        if hooks:
            raise PydanticCustomError("hooks", "this server runs no hooks; leave them out, and check in your own code")
        return hooks

    @model_validator(mode="after")
    def _one_meaning(self) -> Configuring:
        if {"sandbox", "workbench"} <= self.model_fields_set:
            raise PydanticCustomError("both", "`sandbox` and `workbench` are two names of one thing; send one of them")
        sandbox = self.sandbox_sent
        if self.proxy_execute and not self.proxy_execute.enable and sandbox and sandbox.enable_proxy_execution:
            raise PydanticCustomError(
                "contradiction",
                "`proxy_execute.enable` is false, and `workbench.enable_proxy_execution` is true; the first rules out "
                "the second, so leave that out",
            )
        return self

    @property
    def says_sandbox(self) -> bool:
        """Whether it was sent, by either name; null is sent."""
        return bool({"sandbox", "workbench"} & self.model_fields_set)

    @property
    def sandbox_sent(self) -> Sandbox | None:
        """By whichever name."""
        return self.sandbox or self.workbench


class Experiments(ApiSent):
    """What may change in later versions of the API."""

    assistive_prompt_config: PromptConfig | None = None
    submit_feedback: Feedback | None = None
    permissions: Permissions | None = None
    no_elicitation_support_fallback: Literal["deny", "allow"] | None = Field(
        default=None, description="What becomes of tools that need approval where a client of MCP can ask nobody."
    )
    session_config_id: str | None = Field(default=None, description="Not kept here: only null is taken.")

    @field_validator("session_config_id")
    @classmethod
    def _no_saved_ones(cls, given: str | None) -> str | None:
        if given is not None:
            raise PydanticCustomError(
                "saved", "this server keeps no saved configurations; send what is in it with the session"
            )
        return given


class ChangeSession(Configuring):
    """What is left out stays; null is back to what is usual. Blocks of switches are changed one by one."""

    experimental: Experiments | None = None
    expected_config_version: Annotated[int, Field(ge=1, le=2**53), BeforeValidator(whole)] | None = Field(
        default=None, description="Only if the configuration is still of this version."
    )


class Picked(Answered):
    """Some of many."""

    enabled: list[str] | None = None
    disabled: list[str] | None = None
    require_approval: list[str] | None = None


class PickedTools(Picked):
    """Of one toolkit."""

    tags: Picked | None = None


class ConnectionsManaged(Answered):
    """Whether the agent itself may connect accounts."""

    enabled: bool
    callback_url: str | None = None
    enable_wait_for_connections: bool
    enable_connection_removal: bool


class SandboxShown(Answered):
    """What the sandbox is like, and allowed."""

    enable: bool
    proxy_execution_enabled: bool
    tool_execution_enabled: bool
    auto_offload_threshold: int | None = None
    sandbox_size: Size


class MultiExecute(Answered):
    """Whether there is a tool that runs several."""

    enable_multi_execute: bool


class Enabled(Answered):
    """On or off."""

    enable: bool


class AccountsShown(Answered):
    """Several accounts of one toolkit."""

    enable: bool
    max_accounts_per_toolkit: int | None = None
    require_explicit_selection: bool | None = None


class Preloaded(Answered):
    """Tools that are shown from the start."""

    tools: list[str] | Literal["all"]


class Config(Answered):
    """How a session is set up. What was never said is not there, unless it has a meaning of its own."""

    user_id: str
    toolkits: Picked | None = None
    tools: dict[str, PickedTools] | None = None
    tags: Picked | None = None
    auth_configs: dict[str, str] | None = None
    connected_accounts: dict[str, list[str]] | None = None
    manage_connections: ConnectionsManaged
    workbench: SandboxShown
    proxy_execute: Enabled | None = None
    multi_account: AccountsShown | None = None
    preload: Preloaded
    search: Enabled
    execute: MultiExecute
    instant: Literal[False] = False


class McpAddress(Answered):
    """Where the same session is a server of MCP."""

    type: Literal["http"] = "http"
    url: str


class DeletedSession(Answered):
    """What is no more."""

    session_id: SessionName
    deleted: Literal[True] = True


class ConfigVersion(Answered):
    """One version of a configuration."""

    version: int
    created_at: str
    is_current: bool
    config: Config


class ConfigHistory(Answered):
    """Some versions, the newest first."""

    items: list[ConfigVersion]
    next_cursor: str | None = None
    total_pages: int
    current_page: int
    total_items: int
