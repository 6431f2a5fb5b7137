"""Errors as REST answers them: one table from classes to HTTP statuses, held complete by tests/unit/wire."""

from __future__ import annotations

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
    from_wire,
)
from workbench.model import records
from workbench.wire import rest

STATUS: dict[type[WorkbenchError], int] = {
    InvalidRequest: 422,
    # The caller cannot help it: the server was set up wrongly.
    InvalidSetting: 500,
    Unauthenticated: 401,
    Denied: 403,
    TooLarge: 413,
    UnsupportedMedia: 415,
    MethodNotAllowed: 405,
    NotFound: 404,
    Conflict: 409,
    SandboxOff: 409,
    PackageRefused: 422,
    Cancelled: 409,
    QuotaExceeded: 429,
    SandboxUnavailable: 503,
    KernelUnavailable: 503,
    IsolationTooWeak: 503,
    HostUnavailable: 503,
    HostIncompatible: 503,
    # What a newer host says in a code that we do not know.
    HostError: 503,
    StoreUnavailable: 503,
    NotConfigured: 501,
    UpstreamFailed: 502,
    UpstreamUnavailable: 503,
    # Not 429: it is not this caller who asked too often.
    UpstreamLimited: 503,
    UpstreamRefused: 502,
    UpstreamBadAnswer: 502,
    ServerUnavailable: 503,
    InternalError: 500,
}


def status_of(error: WorkbenchError) -> int:
    """The HTTP status of an answer that tells it."""
    return STATUS.get(type(error), 500)


def problem_of(error: WorkbenchError, request_id: str = "") -> rest.Problem:
    """As it is told."""
    return rest.Problem(
        code=error.code,
        message=error.message,
        context=error.context,
        retryable=error.retryable,
        request_id=request_id,
    )


def kept_problem(kept: records.Problem) -> rest.Problem:
    """As one that was written down is told."""
    return problem_of(from_wire(kept.code, kept.message, kept.context))
