"""Notion by the names that people know."""

from __future__ import annotations

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, ToolResult
from workbench.toolkits.shipped.adapted.adaptation import (
    CHANGES,
    READS,
    Adaptation,
    Given,
    Step,
    adapted,
    number,
    passed,
    text,
)

# Of one text and one call, as Notion has it.
_MOST_TEXT, _MOST_BLOCKS = 2000, 100
_PAGES: dict[str, Json] = {
    "page_size": number("How many.", default=100, minimum=1, maximum=100),
    "start_cursor": text("`next_cursor` of the answer before."),
}


def _blocks(name: str, words: str) -> list[Json]:
    """A paragraph for each line."""
    lines = words.splitlines()
    if len(lines) > _MOST_BLOCKS or any(len(line) > _MOST_TEXT for line in lines):
        raise InvalidRequest(
            f"`{name}` may have {_MOST_BLOCKS} lines of {_MOST_TEXT:,} characters; add the rest by another call",
            {"argument": name},
        )
    texts = [[{"type": "text", "text": {"content": line}}] if line else [] for line in lines]
    return [{"object": "block", "type": "paragraph", "paragraph": {"rich_text": one}} for one in texts]


async def _new_page(step: Step, given: Given) -> ToolResult:
    title = {"title": {"title": [{"type": "text", "text": {"content": given.needed("title")}}]}}
    asked: Json = {"parent": {"page_id": given.needed("parent_id")}, "properties": title}
    if words := given.text("content"):
        asked["children"] = _blocks("content", words)
    return await step("NOTION_CREATE_A_PAGE", asked)


async def _add_content(step: Step, given: Given) -> ToolResult:
    blocks = _blocks("content", given.needed("content"))
    asked = {"block_id": given.needed("parent_block_id"), "children": blocks}
    return await step("NOTION_APPEND_BLOCK_CHILDREN", asked)


async def _query(step: Step, given: Given) -> ToolResult:
    """Rows are in a source of the database's; most have one."""
    found = await step("NOTION_RETRIEVE_A_DATABASE", {"database_id": given.needed("database_id")})
    if found.error:
        return found
    sources = [one for one in found.data.get("data_sources") or () if isinstance(one, dict) and one.get("id")]
    if not sources:
        return ToolResult(data=found.data, error="this database has no data source that could be queried")
    asked: Json = {"data_source_id": str(sources[0]["id"])}
    for name in ("filter", "sorts", "page_size", "start_cursor"):
        if given.arguments.get(name) is not None:
            asked[name] = given.arguments[name]
    rows = await step("NOTION_QUERY_A_DATA_SOURCE", asked)
    if len(sources) > 1 and not rows.error:
        others = ", ".join(str(one["id"]) for one in sources[1:])
        note = f"The database has more data sources, which NOTION_QUERY_A_DATA_SOURCE queries: {others}"
        return ToolResult(data={**rows.data, "note": note}, http_status=rows.http_status)
    return rows


NOTION: tuple[Adaptation, ...] = (
    adapted(
        "NOTION_SEARCH_NOTION_PAGE",
        "Find pages and databases by words of their titles.",
        {
            "query": text("Words of the title; everything without."),
            "page_size": number("How many.", default=25, minimum=1, maximum=100),
            "start_cursor": text("`next_cursor` of the answer before."),
        },
        passed("NOTION_SEARCH_BY_TITLE", {"query": "query", "page_size": "page_size", "start_cursor": "start_cursor"}),
        tags=READS,
    ),
    adapted(
        "NOTION_CREATE_NOTION_PAGE",
        "Create a page below another page, with a title and a text.",
        {
            "parent_id": text("Id of the page that it goes below."),
            "title": text("What it is called."),
            "content": text("What is in it: plain text, a paragraph for each line."),
        },
        _new_page,
        required=("parent_id", "title"),
    ),
    adapted(
        "NOTION_ADD_PAGE_CONTENT",
        "Add a text to the end of a page.",
        {
            "parent_block_id": text("Id of the page, or of a block of it."),
            "content": text("Plain text, a paragraph for each line."),
        },
        _add_content,
        required=("parent_block_id", "content"),
        tags=CHANGES,
    ),
    adapted(
        "NOTION_QUERY_DATABASE",
        "Rows of a database, filtered and sorted.",
        {
            "database_id": text("Id of the database."),
            "filter": {"type": "object", "description": "Which rows, as Notion has filters. All without."},
            "sorts": {"type": "array", "items": {"type": "object"}, "description": "In which order."},
            **_PAGES,
        },
        _query,
        required=("database_id",),
        tags=READS,
    ),
    adapted(
        "NOTION_FETCH_DATABASE",
        "What a database is: its title, and its data sources.",
        {"database_id": text("Id of the database.")},
        passed("NOTION_RETRIEVE_A_DATABASE", {"database_id": "database_id"}),
        required=("database_id",),
        tags=READS,
    ),
    adapted(
        "NOTION_FETCH_BLOCK_CONTENTS",
        "What a page or a block of it has in it.",
        {"block_id": text("Id of the page or block."), **_PAGES},
        passed(
            "NOTION_RETRIEVE_BLOCK_CHILDREN",
            {"block_id": "block_id", "page_size": "page_size", "start_cursor": "start_cursor"},
        ),
        required=("block_id",),
        tags=READS,
    ),
    adapted(
        "NOTION_LIST_USERS",
        "Who is in the workspace.",
        _PAGES,
        passed("NOTION_LIST_ALL_USERS", {"page_size": "page_size", "start_cursor": "start_cursor"}),
        tags=READS,
    ),
)
