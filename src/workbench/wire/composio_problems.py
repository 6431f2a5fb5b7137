"""Errors as the sessions API tells them: one table from our tree to its numbers, held complete by tests/unit/wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from workbench.errors import (
    Cancelled,
    Conflict,
    Denied,
    HostError,
    HostIncompatible,
    HostUnavailable,
    InternalError,
    InvalidRequest,
    InvalidSetting,
    IsolationTooWeak,
    KernelUnavailable,
    MethodNotAllowed,
    NotConfigured,
    NotFound,
    PackageRefused,
    QuotaExceeded,
    SandboxOff,
    SandboxUnavailable,
    ServerUnavailable,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
    UnsupportedMedia,
    UpstreamBadAnswer,
    UpstreamFailed,
    UpstreamLimited,
    UpstreamRefused,
    UpstreamUnavailable,
    WorkbenchError,
)
from workbench.model.connection import NOT_CONNECTED
from workbench.wire.rest import Answered


@dataclass(frozen=True, slots=True)
class Row:
    """How one kind of error is told."""

    status: int
    slug: str
    code: int


_INTERNAL = Row(500, "ToolRouterV2_InternalServerError", 4340)
_UNAVAILABLE = Row(503, "HTTP_ServiceUnavailable", 10503)
_UPSTREAM = Row(502, "HTTP_BadGateway", 10502)
# Where clients of this API know a number, it is theirs; what has none is the HTTP status with 10 before it.
ROWS: dict[type[WorkbenchError], Row] = {
    InvalidRequest: Row(400, "ToolRouterV2_BadRequest", 4300),
    InvalidSetting: _INTERNAL,
    Unauthenticated: Row(401, "HTTP_Unauthorized", 10401),
    Denied: Row(403, "APIKey_InsufficientPermissions", 812),
    TooLarge: Row(413, "HTTP_PayloadTooLarge", 10413),
    UnsupportedMedia: Row(415, "HTTP_UnsupportedMediaType", 10415),
    MethodNotAllowed: Row(405, "HTTP_MethodNotAllowed", 10405),
    NotFound: Row(404, "HTTP_NotFound", 10404),
    Conflict: Row(409, "HTTP_Conflict", 10409),
    SandboxOff: Row(400, "ToolRouterV2_SandboxDisabled", 4360),
    PackageRefused: Row(400, "ToolRouterV2_PackageRefused", 4362),
    Cancelled: Row(409, "HTTP_Conflict", 10409),
    QuotaExceeded: Row(429, "HTTP_TooManyRequests", 10429),
    SandboxUnavailable: _UNAVAILABLE,
    KernelUnavailable: _UNAVAILABLE,
    IsolationTooWeak: _UNAVAILABLE,
    HostUnavailable: _UNAVAILABLE,
    HostIncompatible: _UNAVAILABLE,
    HostError: _UNAVAILABLE,
    StoreUnavailable: _UNAVAILABLE,
    # As the API has it: what a session asks for and cannot have here is a bad request.
    NotConfigured: Row(400, "ToolRouterV2_NotConfigured", 4361),
    UpstreamFailed: _UPSTREAM,
    UpstreamUnavailable: _UNAVAILABLE,
    UpstreamLimited: _UNAVAILABLE,
    UpstreamRefused: _UPSTREAM,
    UpstreamBadAnswer: _UPSTREAM,
    ServerUnavailable: _UNAVAILABLE,
    InternalError: _INTERNAL,
}
_NO_SESSION = Row(404, "ToolRouterV2_SessionNotFound", 4304)
_NO_AUTH = Row(400, "ToolRouterV2_ToolkitsIsNoAuth", 4326)
_NO_CONNECTION = Row(400, "ToolRouterV2_NoActiveConnection", 4302)
_NO_MANAGED_AUTH = Row(400, "ToolRouterV2_NoManagedAuth", 4308)
_OTHER_VERSION = Row(409, "ToolRouterV2_ConfigVersionConflict", 4309)


class ApiProblem(Answered):
    """What went wrong, and what to do next. Nothing ran."""

    message: str = Field(description="For people: names the thing and the next step.")
    code: int = Field(description="A number of its own for each slug.", examples=[4304])
    slug: str = Field(description="Stable.", examples=["ToolRouterV2_SessionNotFound"])
    status: int = Field(description="The HTTP status once more.")
    request_id: str = Field(default="", description="By which the server's log knows the request.")
    suggested_fix: str | None = Field(default=None, description="The next step by itself, where there is one.")
    errors: list[str] | None = Field(default=None, description="All that is wrong with the request, where it is much.")


class ApiProblemAnswer(Answered):
    """Every answer of the sessions API that is not a success."""

    error: ApiProblem


def row_of(error: WorkbenchError) -> Row:
    """How it is told; some kinds by what they are about."""
    if isinstance(error, NotFound) and set(error.context) == {"session"}:
        return _NO_SESSION
    if isinstance(error, InvalidRequest) and "no_auth" in error.context:
        return _NO_AUTH
    if error.context.get("reason") == NOT_CONNECTED:
        return _NO_CONNECTION
    if "no_managed_auth" in error.context or error.context.get("reason") == "no_auth_config":
        return _NO_MANAGED_AUTH
    if isinstance(error, Conflict) and "config_version" in error.context:
        return _OTHER_VERSION
    return ROWS.get(type(error), _INTERNAL)


def api_problem(error: WorkbenchError, request_id: str = "", errors: Sequence[str] = ()) -> ApiProblemAnswer:
    """As it is told. `errors` is each thing that is wrong, if there are several."""
    row = row_of(error)
    # Our messages say first what is wrong, and behind a semicolon what to do.
    _, _, step = error.message.rpartition("; ") if len(errors) > 1 else error.message.partition("; ")
    told = ApiProblem(
        message=_message(error, row),
        code=row.code,
        slug=row.slug,
        status=row.status,
        request_id=request_id,
        suggested_fix=step or None,
        errors=list(errors) if len(errors) > 1 else None,
    )
    return ApiProblemAnswer(error=told)


def _message(error: WorkbenchError, row: Row) -> str:
    if row is _NO_SESSION:
        # The words by which clients of this API know it.
        return f"Session {error.context['session']} not found: {error.message}"
    return error.message
