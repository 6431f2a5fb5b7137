"""What callers send, read strictly: a name that we do not know is an error that says which one was meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AliasChoices, BaseModel, PlainValidator, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from workbench.errors import InvalidRequest, NotFound

M = TypeVar("M", bound=BaseModel)
_TOLD = 5
_MOST_NAME = 200
_DOCS = "/docs has the shape of every request"
_NAMED = {
    "session_id": ("session", "GET /v1/sessions"),
    "cell_id": ("cell or command", "GET /v1/sessions/{session_id}/history"),
    "key_id": ("key", "GET /v1/keys"),
}


class NotJson(Exception):
    """A body that cannot be read at all, and where."""


def body_of(model: type[M]) -> PlainValidator:
    """How a route's body is read: from its bytes, without leniency, so that `"5"` is no number."""
    return PlainValidator(reader_of(model), json_schema_input_type=model)


def reader_of(model: type[M]) -> Callable[[bytes], M]:
    """The value of a body.

    It raises:
        NotJson: not JSON.
        InvalidRequest: JSON, but not this.
    """

    def read(raw: bytes) -> M:
        try:
            return model.model_validate_json(raw, strict=True)
        except ValidationError as problem:
            raise _refused(model, problem.errors(include_url=False, include_input=False)) from None

    return read


def _refused(model: type[BaseModel], errors: Sequence[ErrorDetails]) -> InvalidRequest | NotJson:
    if errors[0]["type"] == "json_invalid":
        return not_json(errors[0])
    told = [told_of(model, error) for error in errors[:_TOLD]]
    field = place_of(errors[0])
    return InvalidRequest(f"{_sentence('; '.join(told))} {_DOCS}", {"field": field} if field else {})


def not_json(error: ErrorDetails) -> NotJson:
    """For what cannot be read at all."""
    where = error.get("ctx", {}).get("error", error["msg"])
    return NotJson(f"the body is not JSON: {where}; send an object in UTF-8, with content-type: application/json")


def told_of(model: type[BaseModel], error: ErrorDetails) -> str:
    """One thing that is wrong with a body, in a few words."""
    *above, last = error["loc"] or ("",)
    name = place_of(error)
    if error["type"] == "extra_forbidden":
        return _no_such(f"no such field: {name!r}", str(last)[:_MOST_NAME], _fields(model, above))
    if error["type"] == "missing":
        return f"the field {name!r} is missing"
    return f"{name}: {error['msg']}" if name else f"the body: {error['msg']}"


def place_of(error: ErrorDetails) -> str:
    """Where it is: names with points between them."""
    # Names are the caller's, and may be of any length.
    return ".".join(str(part) for part in error["loc"])[:_MOST_NAME]


def _fields(model: type[BaseModel], above: Iterable[str | int]) -> list[str]:
    """Names that there are at this place."""
    at: Any = model
    for part in above:
        fields = at.model_fields.items() if isinstance(at, type) and issubclass(at, BaseModel) else ()
        found = next((field for name, field in fields if part in _names(name, field)), None)
        kinds = [] if found is None else [found.annotation, *getattr(found.annotation, "__args__", ())]
        at = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
    if at is None:
        return []
    return [field.alias or name for name, field in at.model_fields.items()]


def _names(name: str, field: FieldInfo) -> list[object]:
    other = field.validation_alias
    return [name, field.alias, *(other.choices if isinstance(other, AliasChoices) else ())]


def _no_such(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if near:
        return f"{what}; did you mean {' or '.join(repr(one) for one in near)}?"
    return f"{what}; there are: {', '.join(known)}" if known else what


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text};"


def check_question(request: Request) -> None:
    """Raises: InvalidRequest for a query parameter that the route does not have."""
    if not request.scope["query_string"]:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = _parameters(route.dependant)
    for name in request.query_params:
        if name not in known:
            told = _no_such(f"no such query parameter: {name[:_MOST_NAME]!r}", name[:_MOST_NAME], known)
            raise InvalidRequest(f"{_sentence(told)} {_DOCS}", {"parameter": name[:_MOST_NAME]})


def _parameters(needed: Dependant) -> list[str]:
    own = [field.alias for field in needed.query_params]
    return own + [name for part in needed.dependencies for name in _parameters(part)]


def refused_parameters(problem: RequestValidationError) -> InvalidRequest | NotFound:
    """For what of path, query and headers cannot be used."""
    first = problem.errors()[0]
    place, *rest = [str(part) for part in first["loc"]] or ["request"]
    # What follows is only how the value was tried.
    name = rest[0] if rest else ""
    if place == "path" and name in _NAMED:
        # What cannot be a name is nobody's name.
        thing, where = _NAMED[name]
        context = {"session": str(first.get("input", ""))[:_MOST_NAME]} if thing == "session" else {}
        return NotFound(f"no such {thing}: names are of a-z, 0-9, _ and -; {where} lists those there are", context)
    if place == "body":
        return InvalidRequest(f"the body is missing; send JSON; {_DOCS}", {"field": name} if name else {})
    return InvalidRequest(f"{place} parameter {name!r}: {first['msg']}; {_DOCS}", {"parameter": name})
