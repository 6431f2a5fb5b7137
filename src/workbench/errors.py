"""The whole error tree. If something began, its end is a result and not in here; these mean that nothing ran.

    WorkbenchError                   code, retryable, context
    ├─ CallerError                   the request is wrong; the same one will fail again
    │  ├─ InvalidRequest             invalid_request      a value that cannot be used
    │  ├─ InvalidSetting             invalid_setting      a WORKBENCH_ variable that cannot be used
    │  ├─ Unauthenticated            unauthenticated      no key, or one that is not or no more good
    │  ├─ Denied                     denied               a good key, but not for this
    │  ├─ TooLarge                   too_large            a request of more bytes than the server takes
    │  ├─ UnsupportedMedia           unsupported_media    a body that is not of the type that is asked for
    │  ├─ MethodNotAllowed           method_not_allowed   the address is right, the method is not
    │  ├─ NotFound                   not_found            no such sandbox, process or image here
    │  ├─ Conflict                   conflict             the id is taken, or the thing is ending
    │  ├─ SandboxOff                 sandbox_off          the session was configured to have no sandbox
    │  ├─ PackageRefused             package_refused      a package that may not or cannot be installed
    │  ├─ Cancelled                  cancelled            it waited for its turn and was taken out of the queue
    │  └─ QuotaExceeded              quota_exceeded       more than the tier or the host allows
    ├─ SandboxError                  the place failed
    │  ├─ SandboxUnavailable         sandbox_unavailable  a sandbox could not be made, or is gone
    │  ├─ KernelUnavailable          kernel_unavailable   a kernel could not be started, or does not answer
    │  └─ IsolationTooWeak           isolation_too_weak   this machine cannot give what is required
    ├─ HostError                     the host process failed
    │  ├─ HostUnavailable            host_unavailable     none runs, or it does not answer
    │  └─ HostIncompatible           host_incompatible    it speaks another protocol
    ├─ StoreUnavailable              store_unavailable    records or files of sessions cannot be read or written
    ├─ NotConfigured                 not_configured       a service that this server was not told of
    ├─ UpstreamError                 somebody else's server failed
    │  ├─ UpstreamFailed             upstream_failed      what a URL of the caller's leads to failed, or broke off
    │  ├─ UpstreamUnavailable        upstream_unavailable  a service that we ask does not answer, or not in time
    │  ├─ UpstreamLimited            upstream_limited     it wants to be asked less often, or later
    │  ├─ UpstreamRefused            upstream_refused     it does not take our key, or what we asked for
    │  └─ UpstreamBadAnswer          upstream_bad_answer  its answer is too large, or makes no sense
    └─ ServerError                   the server failed, or cannot be reached
       ├─ ServerUnavailable          server_unavailable   it does not answer, or not in time
       └─ InternalError              internal_error       a defect of ours; the server's log has it

`code` is stable and documented in docs/reference/errors.md; class names may move. Over the wire an error is its code,
message and context; `from_wire` gives the class back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class WorkbenchError(Exception):
    """Root of the tree. Never raised itself."""

    code = "workbench_error"
    retryable = False

    def __init__(self, message: str, context: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.context: dict[str, str] = dict(context or {})


class CallerError(WorkbenchError):
    """The request is wrong."""

    code = "caller_error"


class InvalidRequest(CallerError):
    """A value that cannot be used."""

    code = "invalid_request"


class InvalidSetting(CallerError):
    """A WORKBENCH_ variable that cannot be used."""

    code = "invalid_setting"


class Unauthenticated(CallerError):
    """No key, or one that is not or no more good."""

    code = "unauthenticated"


class Denied(CallerError):
    """A good key, but not for this."""

    code = "denied"


class TooLarge(CallerError):
    """A request of more bytes than the server takes."""

    code = "too_large"


class UnsupportedMedia(CallerError):
    """A body that is not of the type that is asked for."""

    code = "unsupported_media"


class MethodNotAllowed(CallerError):
    """The address is right, the method is not."""

    code = "method_not_allowed"


class NotFound(CallerError):
    """No such sandbox, process or image here."""

    code = "not_found"


class Conflict(CallerError):
    """The id is taken, or the thing is ending."""

    code = "conflict"


class SandboxOff(CallerError):
    """The session was configured to have no sandbox."""

    code = "sandbox_off"


class PackageRefused(CallerError):
    """A package that may not or cannot be installed; `rule` in the context says by which rule."""

    code = "package_refused"


class Cancelled(CallerError):
    """It waited for its turn and was taken out of the queue; nothing of it ran."""

    code = "cancelled"


class QuotaExceeded(CallerError):
    """More than the tier or the host allows."""

    code = "quota_exceeded"


class SandboxError(WorkbenchError):
    """The place failed; nothing ran."""

    code = "sandbox_error"


class SandboxUnavailable(SandboxError):
    """A sandbox could not be made, or is gone."""

    code = "sandbox_unavailable"
    retryable = True


class KernelUnavailable(SandboxError):
    """A kernel could not be started, or does not answer; nothing ran."""

    code = "kernel_unavailable"
    retryable = True


class IsolationTooWeak(SandboxError):
    """This machine cannot give what the settings require; `context["step"]` names what failed."""

    code = "isolation_too_weak"


class HostError(WorkbenchError):
    """The host process failed."""

    code = "host_error"


class HostUnavailable(HostError):
    """None runs, or it does not answer."""

    code = "host_unavailable"
    retryable = True


class HostIncompatible(HostError):
    """It speaks another protocol."""

    code = "host_incompatible"


class StoreUnavailable(WorkbenchError):
    """Records or files of sessions cannot be read or written."""

    code = "store_unavailable"


class NotConfigured(WorkbenchError):
    """A service that this server was not told of, or without its key; the message names what to set."""

    code = "not_configured"


class UpstreamError(WorkbenchError):
    """Somebody else's server failed."""

    code = "upstream_error"


class UpstreamFailed(UpstreamError):
    """What a URL of the caller's leads to failed, answered with another status, or broke off."""

    code = "upstream_failed"
    retryable = True


class UpstreamUnavailable(UpstreamError):
    """A service that we ask does not answer, or not in time, or breaks off; it was tried more than once."""

    code = "upstream_unavailable"
    retryable = True


class UpstreamLimited(UpstreamError):
    """A service wants to be asked less often, or later; `context["retry_after_s"]` says when, if it did."""

    code = "upstream_limited"
    retryable = True


class UpstreamRefused(UpstreamError):
    """A service does not take our key, or what we asked for; the same will be refused again."""

    code = "upstream_refused"


class UpstreamBadAnswer(UpstreamError):
    """The answer of a service is too large, or makes no sense."""

    code = "upstream_bad_answer"


class ServerError(WorkbenchError):
    """The server failed, or cannot be reached."""

    code = "server_error"


class ServerUnavailable(ServerError):
    """It does not answer, or not in time."""

    code = "server_unavailable"
    retryable = True


class InternalError(ServerError):
    """A defect of ours; the server's log has it under the request's id."""

    code = "internal_error"


def leaves(root: type[WorkbenchError] = WorkbenchError) -> Iterator[type[WorkbenchError]]:
    """Every class that may be raised."""
    for child in root.__subclasses__():
        if child.__subclasses__():
            yield from leaves(child)
        else:
            yield child


def from_wire(code: str, message: str, context: Mapping[str, str]) -> WorkbenchError:
    """The error that another process described; an unknown code becomes a HostError that keeps it."""
    for kind in leaves():
        if kind.code == code:
            return kind(message, context)
    return HostError(message, {**context, "code": code})
