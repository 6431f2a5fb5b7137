"""Tools that live in the caller's own program. They are described with a request, named by us, and not kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from workbench.model.toolkit import LOCAL_PREFIX
from workbench.wire.composio import ApiSent, Config, Configuring, Experiments, McpAddress
from workbench.wire.rest import Answered, UserName, Words

MOST_SLUG = 60
_SLUG = r"^[A-Za-z0-9_-]+$"
_KEPT = (LOCAL_PREFIX, "COMPOSIO_")
_MOST_TOOLS = 100
# Each is looked at with every request that brings them.
_MOST_IN_ALL = 1000

CustomSlug = Annotated[str, Field(min_length=1, max_length=MOST_SLUG, pattern=_SLUG, examples=["GREP"])]


def final_slug(tool: str, toolkit: str = "") -> str:
    """By which everybody calls the tool."""
    return f"{LOCAL_PREFIX}{toolkit}_{tool}".upper() if toolkit else f"{LOCAL_PREFIX}{tool}".upper()


class ToolkitTool(ApiSent):
    """One tool of a toolkit."""

    slug: CustomSlug
    name: Annotated[Words, Field(min_length=1, max_length=128)]
    description: Annotated[Words, Field(min_length=1, max_length=5120)]
    input_schema: dict[str, object] = Field(
        description="JSON Schema of its arguments: of the type `object`, with `properties`.",
        json_schema_extra={
            "properties": {"type": {"const": "object"}, "properties": {"type": "object"}},
            "required": ["type", "properties"],
        },
    )
    output_schema: dict[str, object] | None = None
    preload: bool | None = None

    @field_validator("slug")
    @classmethod
    def _free(cls, slug: str) -> str:
        if slug.upper().startswith(_KEPT):
            raise PydanticCustomError(
                "slug", "a slug may not begin with LOCAL_ or COMPOSIO_, which are put there by us; take another name"
            )
        return slug

    @field_validator("input_schema")
    @classmethod
    def _of_an_object(cls, schema: dict[str, object]) -> dict[str, object]:
        if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
            raise PydanticCustomError("schema", 'it must say "type": "object" and have "properties"')
        return schema


class CustomTool(ToolkitTool):
    """A tool by itself, or one more of a toolkit there is."""

    extends_toolkit: CustomSlug | None = None


class CustomToolkit(ApiSent):
    """Tools that belong together."""

    slug: CustomSlug
    name: Annotated[Words, Field(min_length=1, max_length=128)]
    description: Annotated[Words, Field(min_length=1, max_length=2048)]
    tools: Annotated[list[ToolkitTool], Field(min_length=1, max_length=_MOST_TOOLS)]
    preload: bool | None = None


class CustomTools(ApiSent):
    """What a request brings along; the same with every one that needs it."""

    custom_tools: Annotated[list[CustomTool], Field(max_length=_MOST_TOOLS)] | None = None
    custom_toolkits: Annotated[list[CustomToolkit], Field(max_length=_MOST_TOOLS)] | None = None

    @model_validator(mode="after")
    def _names_are_short_and_different(self) -> CustomTools:
        seen: set[str] = set()
        for slug in self._slugs():
            if len(seen) == _MOST_IN_ALL:
                raise PydanticCustomError(
                    "tools", "more than {most} tools come with one request; define less", {"most": _MOST_IN_ALL}
                )
            if len(slug) > MOST_SLUG:
                raise PydanticCustomError(
                    "slug",
                    "the whole slug {slug} has {length} characters, and {most} is the most; shorten its parts",
                    {"slug": slug, "length": len(slug), "most": MOST_SLUG},
                )
            if slug in seen:
                raise PydanticCustomError("slug", "two tools have the slug {slug}; rename one of them", {"slug": slug})
            seen.add(slug)
        return self

    def _slugs(self) -> Iterator[str]:
        for tool in self.custom_tools or ():
            yield final_slug(tool.slug, tool.extends_toolkit or "")
        for toolkit in self.custom_toolkits or ():
            for one in toolkit.tools:
                yield final_slug(one.slug, toolkit.slug)


class CreateExperiments(CustomTools, Experiments):
    """What may change in later versions of the API, and tools of the caller's own."""


class CreateSession(Configuring):
    """A new session."""

    user_id: UserName = Field(description="Whose session it is: your user, in your words.")
    experimental: CreateExperiments | None = None


class AttachSession(ApiSent):
    """Tools of the caller's own, for a session there is."""

    experimental: CustomTools | None = None


class NamedTool(Answered):
    """A tool of the caller's, with the name by which it is called."""

    slug: str
    original_slug: str
    name: str
    description: str
    input_schema: dict[str, object]
    output_schema: dict[str, object] | None = None
    extends_toolkit: str | None = None
    preload: bool | None = None


class NamedToolkit(Answered):
    """Tools that belong together."""

    slug: str
    name: str
    description: str
    tools: list[NamedTool]
    preload: bool | None = None


class ExperimentsShown(Answered):
    """What may change in later versions of the API."""

    assistive_prompt: str = Field(description="What can be told to an agent about its session.")
    custom_tools: list[NamedTool] | None = None
    custom_toolkits: list[NamedToolkit] | None = None


class Session(Answered):
    """A session, and how it is set up."""

    session_id: str
    mcp: McpAddress
    tool_router_tools: list[str] = Field(description="Slugs of the tools that it offers by itself.")
    config: Config
    config_version: int = Field(description="One more with each change.")
    experimental: ExperimentsShown


def named_tools(sent: CustomTools) -> list[NamedTool]:
    """Those by themselves, as they are called."""
    return [_named(one, one.extends_toolkit or "", one.extends_toolkit) for one in sent.custom_tools or ()]


def named_toolkits(sent: CustomTools) -> list[NamedToolkit]:
    """Those that belong together. A toolkit keeps its slug."""
    return [
        NamedToolkit(
            slug=kit.slug,
            name=kit.name,
            description=kit.description,
            tools=[_named(one, kit.slug) for one in kit.tools],
            preload=kit.preload,
        )
        for kit in sent.custom_toolkits or ()
    ]


def _named(tool: ToolkitTool, toolkit: str, extends: str | None = None) -> NamedTool:
    return NamedTool(
        slug=final_slug(tool.slug, toolkit),
        original_slug=tool.slug,
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        extends_toolkit=extends,
        preload=tool.preload,
    )
