"""The shapes of the sessions API that are about tools: shown, found, run, and the toolkits they belong to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.model.connection import ConnectionStatus
from workbench.model.toolkit import MOST_KNOWN_FIELDS, MOST_QUERIES, MOST_USE_CASE
from workbench.wire.composio import ApiSent, Slug, Slugs, by_slug
from workbench.wire.composio_custom import CustomTools
from workbench.wire.rest import Answered, Line, UserName, Words
from workbench.wire.rest_connections import AliasName, CallbackUrl

Arguments = dict[str, Any]
_RESPONSES = "What was answered to `input_requests`, by their ids."
_STATE = "`request_state` of the answer that asked, as it is."
RequestState = Annotated[Words, Field(max_length=4096)]


class InputResponse(ApiSent):
    """What a person said to a question."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = Field(default=None, description="The form, as they filled it in.")


InputResponses = Annotated[dict[Slug, InputResponse], Field(max_length=20, json_schema_extra=by_slug)]


class ExecuteTool(ApiSent):
    """A tool to be run."""

    tool_slug: Slug = Field(examples=["COMPOSIO_REMOTE_WORKBENCH"])
    arguments: Arguments | None = Field(default=None, description="What it takes, by its input schema.")
    account: Line | None = Field(default=None, description="Which connected account, where there are several.")
    enable_auto_workbench_offload: bool | None = Field(
        default=None, description="A large answer may go to a file in the sandbox, with a preview in its place."
    )
    input_responses: InputResponses | None = Field(default=None, description=_RESPONSES)
    request_state: RequestState | None = Field(default=None, description=_STATE)
    experimental: CustomTools | None = None


class ExecuteMeta(ApiSent):
    """A meta tool to be run."""

    slug: Slug = Field(examples=["COMPOSIO_SEARCH_TOOLS"])
    arguments: Arguments | None = None
    input_responses: InputResponses | None = Field(default=None, description=_RESPONSES)
    request_state: RequestState | None = Field(default=None, description=_STATE)
    experimental: CustomTools | None = None


class ExecuteForUser(ApiSent):
    """A tool to be run for a user, without a session of their choice."""

    user_id: UserName
    arguments: Arguments | None = None
    version: Line | None = Field(default=None, description="Not used: there is one version of each tool.")
    connected_account_id: Line | None = Field(default=None, description="Which account, where there are several.")


class RawParameter(ApiSent):
    """One of the address, or a header."""

    name: Annotated[Words, Field(min_length=1, max_length=200)]
    value: Annotated[Words, Field(max_length=8192)]
    type: Literal["query", "header"] = "header"


class BinaryBody(ApiSent):
    """What is sent as it is."""

    url: Annotated[Words, Field(max_length=8192)] | None = Field(
        default=None, description="Where it is: a URL, or the key or the path of a file of the session's mount."
    )
    base64: str | None = None
    content_type: Line | None = None


class ProxyExecute(ApiSent):
    """A raw call to the service of a toolkit."""

    toolkit_slug: Slug
    endpoint: Annotated[Words, Field(min_length=1, max_length=8192)]
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"]
    body: Any = None
    binary_body: BinaryBody | None = None
    parameters: Annotated[list[RawParameter], Field(max_length=200)] | None = None
    account: Line | None = Field(default=None, description="Which connected account, where there are several.")
    input_responses: InputResponses | None = Field(default=None, description=_RESPONSES)
    request_state: RequestState | None = Field(default=None, description=_STATE)


class SearchQuery(ApiSent):
    """One step of a task."""

    use_case: Annotated[Words, Field(min_length=1, max_length=MOST_USE_CASE)]
    known_fields: Annotated[Words, Field(max_length=MOST_KNOWN_FIELDS)] | None = None


class SearchTools(ApiSent):
    """Which tools fit?"""

    queries: Annotated[list[SearchQuery], Field(min_length=1, max_length=MOST_QUERIES)]
    toolkits: Slugs | None = Field(default=None, description="Only tools of these.")
    model: Line | None = Field(default=None, description="Not used.")
    search_strategy: Literal["auto", "tool_search"] | None = None
    experimental: CustomTools | None = None


class LinkToolkit(ApiSent):
    """A connection to be made."""

    toolkit: Slug = Field(examples=["github"])
    callback_url: CallbackUrl | None = None
    alias: AliasName | None = None


class Executed(Answered):
    """What a tool came to. A failure of its own, and a cell that raised, are `failed`, with what there is in `data`."""

    data: dict[str, Any]
    error: str | None = Field(description="null after a success. What begins with `not run` never began.")
    log_id: str = Field(description="The id of the cell, for tools of the sandbox.")
    result_type: Literal["completed", "failed"]


class InputRequest(Answered):
    """What a person is asked."""

    type: Literal["elicitation"] = "elicitation"
    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any] = Field(description="JSON Schema of the form.")


class InputRequired(Answered):
    """Nothing was run: a person is to be asked first. The same call is sent again, with what they said in
    `input_responses`, and with `request_state`.
    """

    result_type: Literal["input_required"] = "input_required"
    input_requests: dict[str, InputRequest]
    request_state: str = Field(description="Good for ten minutes, for this call, once.")


class ExecutedForUser(Answered):
    """The same in other words."""

    data: dict[str, Any]
    error: str | None
    successful: bool
    log_id: str


class BinaryData(Answered):
    """An answer that is a file: it is in the session's mount, and can be had by a link for an hour."""

    url: str
    content_type: str
    size: int
    expires_at: str
    mount_relative_path: str


class Proxied(Answered):
    """What a service answered. Where it gave no whole answer the status is 504, and one that was never asked has 502;
    both with the reason as `data.error`.
    """

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"data", "headers", "binary_data"})
    """where there is none: some clients take no null"""

    result_type: Literal["completed"] = "completed"
    status: int
    data: Any = None
    headers: dict[str, str] | None = None
    binary_data: BinaryData | None = Field(default=None, description="A file, in the place of `data`.")


class Found(Answered):
    """What fits, and what is to be known about it."""

    success: bool = True
    error: str | None = None
    results: list[dict[str, Any]]
    tool_schemas: dict[str, dict[str, Any]]
    toolkit_connection_statuses: list[dict[str, Any]]
    next_steps_guidance: list[str]
    session: dict[str, Any]
    time_info: dict[str, Any]


class ToolkitNamed(Answered):
    """The toolkit of a tool."""

    slug: str
    name: str
    logo: str = ""


class Logo(Answered):
    """Of a toolkit."""

    logo: str = ""


class Deprecated(Answered):
    """What older clients read."""

    available_versions: list[str]
    displayName: str  # noqa: N815  (the API's name)
    is_deprecated: bool = False
    toolkit: Logo
    version: str


class ToolShown(Answered):
    """A tool."""

    slug: str
    name: str
    description: str
    human_description: str
    input_parameters: dict[str, Any] = Field(description="JSON Schema of what it takes.")
    output_parameters: dict[str, Any] = Field(description="JSON Schema of what it gives.")
    tags: list[str]
    scopes: list[str]
    no_auth: bool
    version: str
    available_versions: list[str]
    is_deprecated: bool = False
    toolkit: ToolkitNamed
    deprecated: Deprecated


class Page(Answered):
    """Of many."""

    next_cursor: str | None
    total_pages: int
    current_page: int
    total_items: int


class ToolPage(Page):
    """Some tools."""

    items: list[ToolShown]


class ToolkitMeta(Answered):
    """How a toolkit is shown."""

    logo: str
    description: str
    isNoAuth: bool  # noqa: N815  (the API's name)


class AccountConfig(Answered):
    """How an account was connected."""

    id: str
    auth_scheme: str
    is_composio_managed: bool = False
    is_disabled: bool = False


class ToolkitAccount(Answered):
    """An account of a user's, with its toolkit."""

    id: str
    user_id: str
    status: str
    created_at: str
    auth_config: AccountConfig


class ToolkitShown(Answered):
    """A toolkit, as a session sees it."""

    slug: str
    name: str
    enabled: bool
    is_no_auth: bool
    composio_managed_auth_schemes: list[str]
    meta: ToolkitMeta
    connected_account: ToolkitAccount | None = None


class ToolkitPage(Page):
    """Some toolkits."""

    items: list[ToolkitShown]


class LinkMade(Answered):
    """A connection that was begun."""

    link_token: str
    redirect_url: str
    connected_account_id: str


class AccountState(Answered):
    """What is told of its credential: of which kind it is, and never what."""

    authScheme: str  # noqa: N815  (the API's name)
    val: dict[str, Any] = Field(default_factory=dict)


class ConnectedAccount(Answered):
    """A user's account of a toolkit."""

    id: str
    status: ConnectionStatus
    status_reason: str | None
    user_id: str
    alias: str | None
    toolkit: ToolkitNamed
    auth_config: AccountConfig
    created_at: str
    updated_at: str
    is_disabled: bool = False
    state: AccountState
    data: dict[str, Any] = Field(default_factory=dict)


class ConnectedAccountPage(Page):
    """Some accounts."""

    items: list[ConnectedAccount]


class AccountDeleted(Answered):
    """It is gone."""

    success: bool


class AccountRefreshed(Answered):
    """It has a new token."""

    id: str
    status: str
    redirect_url: str | None = None
