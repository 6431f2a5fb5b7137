"""Answers of the sessions API: what has no value is left out, as some of its clients take no null."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.responses import Response

from workbench.server.answers import JSON


def api_answer(value: BaseModel, status: int = 200) -> Response:
    """A success."""
    return Response(value.model_dump_json(exclude_none=True), status, media_type=JSON)
