"""What was run, as bytes: in pages of a bounded size, and as a notebook that is never held as a whole.

Results carry pictures: a thousand of them are more than a server should hold for one caller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from workbench.core import requests
from workbench.core.workbench import Workbench
from workbench.model.records import CellRecord
from workbench.server.answers import JSON
from workbench.server.translate import cell_cursor, shown_cell

_MOST_PAGE_BYTES = 16 * 1024 * 1024
_AT_ONCE = 25


async def history_page(workbench: Workbench, ask: requests.ListCells) -> Response:
    """A `rest.CellPage`. It ends early, with a cursor, where there is much in it; it has at least one cell."""
    cells: list[bytes] = []
    size, after = 0, ask.after
    while True:
        few = min(_AT_ONCE, ask.limit - len(cells))
        page = await workbench.list_cells(replace(ask, after=after, limit=few))
        # Others go on meanwhile.
        told = await asyncio.to_thread(_told, page.cells, _MOST_PAGE_BYTES - size)
        cells += told
        size += sum(map(len, told))
        if len(told) < len(page.cells):
            last = page.cells[len(told) - 1]
            after = (last.created_at, last.id)
            break
        after = page.next_after
        if after is None or size >= _MOST_PAGE_BYTES or len(cells) >= ask.limit:
            break
    cursor = json.dumps(cell_cursor(after)).encode()
    return Response(b'{"items":[' + b",".join(cells) + b'],"next_cursor":' + cursor + b"}", media_type=JSON)


def _told(records: Sequence[CellRecord], room: int) -> list[bytes]:
    """Those that there is room for, and the one that fills it."""
    told: list[bytes] = []
    for record in records:
        told.append(shown_cell(record).model_dump_json(by_alias=True).encode())
        room -= len(told[-1])
        if room <= 0:
            break
    return told


async def notebook_text(head: dict[str, Any], cells: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    """The notebook of `Workbench.notebook_parts`, piece by piece."""
    yield _json(head)[:-1] + b', "cells": ['
    between = b""
    async for cell in cells:
        yield between + await asyncio.to_thread(_json, cell)
        between = b", "
    yield b"]}"


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
