"""Calls from inside sandboxes: whose they are, whether they may, and what they come to. Each that may is written down.

Nothing that the guest says of itself counts: the host names the sandbox and the kernel, and the records say whose they
are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.storage import Records
from workbench.core.call_limits import CallLimiter
from workbench.core.helpers import Helped, Helpers
from workbench.errors import Denied, InvalidRequest, QuotaExceeded, StoreUnavailable, TooLarge, WorkbenchError
from workbench.model.calls import MAX_CALL_BYTES, CallAnswer, Caller, GuestCall
from workbench.model.records import AuditEntry
from workbench.model.session import Session

# Within what a host waits for an answer.
_MOST_S = 300.0
_RATE_LIMITED = "rate_limited"
"""what helpers call it, and try again after"""
_TOO_OFTEN = (_RATE_LIMITED, QuotaExceeded.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDone:
    """One call that came to its end, for those who count."""

    operation: str
    outcome: str
    """`ok`, or the code of the error"""
    seconds: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    written_down: bool = True


@dataclass(slots=True)
class _UnderWay:
    """What is known of a call so far."""

    operation: str = "unknown"
    session: Session | None = None
    helped: Helped = field(default_factory=lambda: Helped(result=None))


class GuestCalls:
    """Answers calls; one for as long as somebody takes them."""

    def __init__(
        self,
        *,
        records: Records,
        clock: Clock,
        helpers: Helpers,
        limiter: CallLimiter,
        tell: Callable[[CallDone], None] = lambda _: None,
    ) -> None:
        self._records = records
        self._clock = clock
        self._helpers = helpers
        self._limiter = limiter
        self._tell = tell

    async def answer(self, call: GuestCall) -> CallAnswer:
        """What the caller gets. Never raises because of what was asked; a defect of ours is told as one."""
        under_way = _UnderWay()
        async with self._noted(call.caller, under_way) as outcome:
            try:
                under_way.helped = await self._help(call, under_way)
                body = _told(under_way.helped.result, under_way.helped.error, under_way.helped.code)
            except WorkbenchError as problem:
                outcome.code = code_of(problem)
                body = _told(None, problem.message, outcome.code)
            except TimeoutError:
                outcome.code = "timed_out"
                body = _told(None, f"the call took more than {_MOST_S:g} s and was given up", outcome.code)
        helped = under_way.helped
        return CallAnswer(
            body=body,
            failed=outcome.code != "ok",
            prompt_tokens=helped.prompt_tokens,
            completion_tokens=helped.completion_tokens,
            corrections=helped.corrections,
        )

    async def _help(self, call: GuestCall, under_way: _UnderWay) -> Helped:
        operation, arguments = _asked(call.body)
        self._helpers.check(operation)
        under_way.operation = operation
        under_way.session = session = await self._whose(call.caller)
        with self._limiter.one(session.spec.id, call.caller.cell):
            # BARRIER: who is told that tools are off for a session must not reach them by speaking to the socket
            # itself; held by tests/unit/core/test_guest_calls.py.
            self._helpers.check_allowed(operation, session)
            async with asyncio.timeout(_MOST_S):
                return await self._helpers.run(operation, session, arguments)

    async def _whose(self, caller: Caller) -> Session:
        """BARRIER: what a sandbox asks is asked for its own session and for no other; held by
        tests/unit/core/test_guest_calls.py.
        """
        family = [one for one in await self._records.house.in_sandbox(caller.sandbox) if not one.ending]
        for session in family:
            if session.kernel == caller.kernel:
                return session
        # A process that left its kernel behind is the family's, and so is what it asks.
        if family and caller.kernel is None:
            return next((one for one in family if one.spec.id == one.principal), family[0])
        raise Denied("no session lives in this sandbox any more")

    @contextlib.asynccontextmanager
    async def _noted(self, caller: Caller, under_way: _UnderWay) -> AsyncIterator[_Outcome]:
        outcome, began = _Outcome(), self._clock.monotonic()
        try:
            yield outcome
        except BaseException as problem:
            outcome.code = "abandoned" if isinstance(problem, asyncio.CancelledError) else "internal_error"
            raise
        finally:
            seconds = self._clock.monotonic() - began
            kept = await self._write_down(caller, under_way, outcome.code, seconds)
            self._tell(
                CallDone(
                    operation=under_way.operation,
                    outcome=outcome.code,
                    seconds=seconds,
                    prompt_tokens=under_way.helped.prompt_tokens,
                    completion_tokens=under_way.helped.completion_tokens,
                    written_down=kept,
                )
            )

    async def _write_down(self, caller: Caller, under_way: _UnderWay, outcome: str, seconds: float) -> bool:
        session, helped = under_way.session, under_way.helped
        # BARRIER: who is refused again and again would fill the audit; held by tests/unit/core/test_guest_calls.py.
        if session is None or (outcome in _TOO_OFTEN and not self._limiter.is_news(session.spec.id)):
            return True
        words = [f"{caller.cell or 'no cell'}", f"{seconds * 1000:.0f} ms"]
        if helped.prompt_tokens or helped.completion_tokens:
            words.append(f"{helped.prompt_tokens} and {helped.completion_tokens} tokens")
        entry = AuditEntry(
            at=self._clock.now_iso(),
            project=session.spec.project,
            key=None,
            session=session.spec.id,
            user=session.spec.user,
            action=f"helper.{under_way.operation}",
            outcome=outcome,
            detail=", ".join(words),
        )
        try:
            # Also for a caller that has left: it was done.
            await asyncio.shield(self._records.audit.add(entry))
        except StoreUnavailable:
            return False
        return True


@dataclass(slots=True)
class _Outcome:
    code: str = "ok"


def code_of(problem: WorkbenchError) -> str:
    """As helpers read it."""
    return _RATE_LIMITED if isinstance(problem, QuotaExceeded) and problem.retryable else problem.code


def _asked(body: bytes) -> tuple[str, dict[str, Any]]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidRequest("the call is no JSON") from None
    operation = asked.get("operation") if isinstance(asked, dict) else None
    arguments = asked.get("arguments") if isinstance(asked, dict) else None
    if not isinstance(operation, str) or not isinstance(arguments, dict):
        raise InvalidRequest("a call is an object with an `operation`, a text, and `arguments`, an object")
    return operation, arguments


def _told(result: Any, error: str = "", code: str = "") -> bytes:
    body = json.dumps({"result": result, "error": error, "code": code}, ensure_ascii=False).encode("utf-8", "replace")
    if len(body) > MAX_CALL_BYTES:
        raise TooLarge(f"the answer has {len(body)} bytes, and at most {MAX_CALL_BYTES} fit: ask for less at a time")
    return body
