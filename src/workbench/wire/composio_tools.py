"""The shapes of the sessions API that are about tools: shown, found, run, and the toolkits they belong to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.model.toolkit import MOST_KNOWN_FIELDS, MOST_QUERIES, MOST_USE_CASE
from workbench.wire.composio import ApiSent, Slug, Slugs
from workbench.wire.composio_custom import CustomTools
from workbench.wire.rest import Answered, Line, UserName, Words

Arguments = dict[str, Any]


class ExecuteTool(ApiSent):
    """A tool to be run."""

    tool_slug: Slug = Field(examples=["COMPOSIO_REMOTE_WORKBENCH"])
    arguments: Arguments | None = Field(default=None, description="What it takes, by its input schema.")
    account: Line | None = Field(default=None, description="Which connected account, where there are several.")
    enable_auto_workbench_offload: bool | None = Field(
        default=None, description="A large answer may go to a file in the sandbox, with a preview in its place."
    )
    experimental: CustomTools | None = None


class ExecuteMeta(ApiSent):
    """A meta tool to be run."""

    slug: Slug = Field(examples=["COMPOSIO_SEARCH_TOOLS"])
    arguments: Arguments | None = None
    experimental: CustomTools | None = None


class ExecuteForUser(ApiSent):
    """A tool to be run for a user, without a session of their choice."""

    user_id: UserName
    arguments: Arguments | None = None
    version: Line | None = Field(default=None, description="Not used: there is one version of each tool.")


class ProxyExecute(ApiSent):
    """A raw call to the service of a toolkit."""

    toolkit_slug: Slug
    endpoint: Annotated[Words, Field(min_length=1, max_length=8192)]
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"]
    body: Any = None
    binary_body: dict[str, Any] | None = None
    parameters: list[dict[str, Any]] | None = None


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

    toolkit: Slug
    callback_url: Annotated[Words, Field(max_length=2048, pattern=r"^(https?://[^\x00-\x20]*)?$")] | None = None
    alias: Line | None = None


class Executed(Answered):
    """What a tool came to. A failure of its own, and a cell that raised, are `failed`, with what there is in `data`."""

    data: dict[str, Any]
    error: str | None = Field(description="null after a success. What begins with `not run` never began.")
    log_id: str = Field(description="The id of the cell, for tools of the sandbox.")
    result_type: Literal["completed", "failed"]


class ExecutedForUser(Answered):
    """The same in other words."""

    data: dict[str, Any]
    error: str | None
    successful: bool
    log_id: str


class Proxied(Answered):
    """What a service answered."""

    result_type: Literal["completed"] = "completed"
    status: int
    data: Any = None
    headers: dict[str, str] | None = None


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


class ToolkitShown(Answered):
    """A toolkit, as a session sees it."""

    slug: str
    name: str
    enabled: bool
    is_no_auth: bool
    composio_managed_auth_schemes: list[str]
    meta: ToolkitMeta
    connected_account: None = Field(default=None, description="None: this server has no connected accounts.")


class ToolkitPage(Page):
    """Some toolkits."""

    items: list[ToolkitShown]


class LinkMade(Answered):
    """A connection that was begun."""

    link_token: str
    redirect_url: str
    connected_account_id: str


class ConnectedAccount(Answered):
    """A user's account of a toolkit."""

    id: str
    status: str
    user_id: str
    toolkit: ToolkitNamed
