"""What came back, as a value or as an error of the tree. Nothing here touches the network."""

from __future__ import annotations

import json
from typing import TypeVar

import httpx2
from pydantic import ValidationError

from workbench.client import _envelopes
from workbench.client._requests import Request
from workbench.errors import ServerUnavailable, WorkbenchError, from_wire
from workbench.model.records import CellStatus
from workbench.wire import rest

Answer = TypeVar("Answer")
Heard = rest.Piece | rest.Dropped | rest.Cell

# What a proxy in front of the server says while there is none, and the server itself while it leaves.
_AWAY = frozenset({502, 503, 504})


def is_away(status: int, body: bytes) -> bool:
    """Whether nobody took the request, or the server left before it had an answer, as during a restart.

    A refusal of the server's own is an answer, even one that says that something else is unavailable.
    """
    if status not in _AWAY:
        return False
    problem = _problem(body)
    return problem is None or problem.code == ServerUnavailable.code


def why_away(status: int, body: bytes) -> str:
    """What is known of it: the server's own words, if it was the server."""
    problem = _problem(body)
    return f"status {status}" + (f": {problem.message}" if problem else "")


def is_busy(status: int, body: bytes) -> bool:
    """Whether the server has too much to do at this moment, and says that this passes."""
    problem = _problem(body)
    return status == httpx2.codes.TOO_MANY_REQUESTS and problem is not None and problem.retryable


def read(request: Request[Answer], server: str, status: int, body: bytes) -> Answer:
    """The answer.

    Raises:
        WorkbenchError: the server refused; the class is the one of its code.
        ServerUnavailable: what answered is not the server.
    """
    if not 200 <= status < 300:
        raise refusal(server, status, body)
    try:
        return request.parse(json.loads(body) if body.strip() else None)
    except (ValueError, ValidationError):
        raise _not_ours(server, status, body) from None


def refusal(server: str, status: int, body: bytes) -> WorkbenchError:
    """The error that the server described."""
    problem = _problem(body)
    if problem is None:
        return _not_ours(server, status, body)
    context = {**problem.context, "request_id": problem.request_id} if problem.request_id else problem.context
    return from_wire(problem.code, problem.message, context)


def unreachable(server: str, why: str, *, perhaps_done: bool, link_to: str = "") -> ServerUnavailable:
    """For a server that does not answer, or for where a link of it leads."""
    if link_to:
        step = f"links of {server} lead there: give it an address that is reached from here, as WORKBENCH_PUBLIC_URL"
        step += "; whether it was done is not known" if perhaps_done else ""
        return ServerUnavailable(f"no answer from {link_to} ({why}); {step}", {"server": link_to})
    if perhaps_done:
        step = "whether it was done is not known; look before you ask again"
    else:
        step = "start it with `workbench serve`, or give its address as base_url or in OPEN_WORKBENCH_URL"
    return ServerUnavailable(f"no answer from {server} ({why}); {step}", {"server": server})


def heard(event: str, data: str) -> Heard | None:
    """What an event says; None for one that this client does not know, or that says nothing new."""
    match event:
        case "piece":
            return rest.Piece.model_validate_json(data)
        case "dropped":
            return rest.Dropped.model_validate_json(data)
        case "end":
            cell = rest.Cell.model_validate_json(data)
            return cell if cell.status is not CellStatus.PENDING else None
        case _:
            return None


def _problem(body: bytes) -> rest.Problem | None:
    try:
        return rest.ProblemAnswer.model_validate_json(body).error
    except ValidationError:
        return _envelopes.problem_in(body)


def _not_ours(server: str, status: int, body: bytes) -> ServerUnavailable:
    start = body[:80].decode("utf-8", "replace").strip()
    return ServerUnavailable(
        f"what answers at {server} is not an Open Workbench server, or not one of this version: "
        f"status {status}, {start!r}; check base_url or OPEN_WORKBENCH_URL",
        {"server": server, "status": str(status)},
    )
