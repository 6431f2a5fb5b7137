"""What a client and a host say about calls from inside sandboxes; see `host`."""

from __future__ import annotations

from workbench.model.execution import Correction
from workbench.wire.values import Request, Value


class TakeCalls(Request, frozen=True, kw_only=True):
    """Calls to answer, from now on this connection's; waits up to `wait_s` for some.

    With the connection ends whatever it took: those who asked are told that nobody knows.
    """

    wait_s: float
    rank: int = 0
    """who takes calls only while nobody of a lower rank does has a higher one"""


class CallReport(Value, frozen=True, kw_only=True):
    """One call."""

    call: str
    sandbox: str
    kernel: str | None
    cell: str | None
    body: bytes


class CallsReport(Value, frozen=True, kw_only=True, tag=True):
    """Those that came."""

    calls: tuple[CallReport, ...]
    abandoned: tuple[str, ...]
    """taken earlier, and not waited for any more"""


class AnswerCall(Request, frozen=True, kw_only=True):
    """What its caller is to get; nothing happens if nobody waits for it any more."""

    call: str
    body: bytes
    failed: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    corrections: tuple[Correction, ...] = ()


AnyCallRequest = TakeCalls | AnswerCall
AnyCallAnswer = CallsReport
