"""Pages by a number, which is some place in an order; and those of lists that are short enough to be held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

T = TypeVar("T")

Cursor = Annotated[
    Annotated[str, Field(pattern=r"^[0-9]{1,9}$")] | SkipJsonSchema[None],
    Query(description="The `next_cursor` of the page before."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[T]):
    """One page, and where it stands."""

    items: Sequence[T]
    next_cursor: str | None
    total_pages: int
    current_page: int
    total_items: int


def page_of(everything: Sequence[T], cursor: str | None, limit: int) -> Part[T]:
    """Behind the cursor, at most so many."""
    start = int(cursor or 0)
    end = start + limit
    return Part(
        items=everything[start:end],
        next_cursor=str(end) if end < len(everything) else None,
        total_pages=-(-len(everything) // limit),
        current_page=start // limit + 1,
        total_items=len(everything),
    )
