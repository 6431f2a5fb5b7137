"""Bodies of the sessions API, read leniently: what we do not know is left aside, as SDKs of other ages send it."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, PlainValidator, ValidationError
from pydantic_core import ErrorDetails

from workbench.errors import InvalidRequest
from workbench.server.questions import not_json, place_of, told_of
from workbench.wire.composio import MARKS

M = TypeVar("M", bound=BaseModel)
_TOLD = 20


class WrongBody(Exception):
    """JSON, but not what was asked for: all that is wrong with it."""

    def __init__(self, errors: list[str], field: str) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors
        self.problem = InvalidRequest(
            f"{'; '.join(errors)}; /docs has the shape of every request", {"field": field} if field else {}
        )


def api_body(model: type[M]) -> PlainValidator:
    """How a route's body is read: `sent: Annotated[Shape, api_body(Shape)]`."""

    def read(raw: bytes) -> M:
        try:
            return model.model_validate_json(raw, strict=True)
        except ValidationError as problem:
            errors = problem.errors(include_url=False, include_input=False)
            if errors[0]["type"] == "json_invalid":
                raise not_json(errors[0]) from None
            plain = [_without_marks(one) for one in errors[:_TOLD]]
            raise WrongBody([told_of(model, one) for one in plain], place_of(plain[0])) from None

    return PlainValidator(read, json_schema_input_type=model)


def _without_marks(error: ErrorDetails) -> ErrorDetails:
    """With the caller's own names only."""
    return {**error, "loc": tuple(part for part in error["loc"] if part not in MARKS)}
