"""What a search shows of the tools that it found: the best ones in full, and as much of it as a model still reads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from workbench.core.router.offered import GET_TOOL_SCHEMAS
from workbench.core.router.offloading import size_of
from workbench.model.toolkit import Json, Tool

# Characters of the schemas of one answer, and of one tool; what is left out is told on request. A model pays for all of
# it, and uses one or two of them.
_MOST_IN_ALL, _MOST_SCHEMA, _MOST_ANSWER = 24_000, 12_000, 2_000
# Of a tool that is only named.
_MOST_WORDS = 240


def shown(results: Sequence[Json], tools: Mapping[str, Tool], seen: Mapping[str, Json]) -> dict[str, Json]:
    """By slug: the tools that fit best with their schemas, and the others with how to get theirs."""
    left = _MOST_IN_ALL
    told: dict[str, Json] = {}
    # The first of each query before the second of any.
    for slug in _in_turn([one["primary_tool_slugs"] for one in results]):
        tool = tools[slug]
        size = size_of(tool.input_schema)
        if size > min(left, _MOST_SCHEMA):
            told[slug] = {**_named(tool), **seen.get(slug, {})}
            continue
        left -= size
        told[slug] = {**_whole(tool), **seen.get(slug, {})}
        # What answers really looked like says more.
        if slug not in seen and (size := size_of(tool.output_schema)) <= min(left, _MOST_ANSWER):
            left -= size
            told[slug]["output_schema"] = tool.output_schema
    for slug in _in_turn([one["related_tool_slugs"] for one in results]):
        told.setdefault(slug, _named(tools[slug]))
    return told


def _in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    rounds = itertools.zip_longest(*lists)
    return list(dict.fromkeys(slug for one in rounds for slug in one if slug is not None))


def _whole(tool: Tool) -> Json:
    return {
        "tool_slug": tool.slug,
        "toolkit": tool.toolkit,
        "description": tool.description,
        "hasFullSchema": True,
        "input_schema": tool.input_schema,
    }


def _named(tool: Tool) -> Json:
    words = tool.description
    return {
        "tool_slug": tool.slug,
        "toolkit": tool.toolkit,
        "description": words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1].rstrip()}…",
        "hasFullSchema": False,
        "schemaRef": {
            "tool": GET_TOOL_SCHEMAS,
            "args": {"tool_slugs": [tool.slug]},
            "message": "Ask for its schema before you run it.",
        },
    }
