"""The desk in the words of the wire."""

from __future__ import annotations

from collections.abc import Hashable

from workbench.host.calls.desk import CallDesk
from workbench.host.waits import bounded
from workbench.model.calls import CallAnswer
from workbench.model.ids import CallId
from workbench.wire import calls as wire
from workbench.wire import host as host_wire


async def answer_client(desk: CallDesk, client: Hashable, request: wire.AnyCallRequest) -> host_wire.AnyAnswer:
    """What a client asks of the desk."""
    match request:
        case wire.TakeCalls():
            taken, abandoned = await desk.take(client, rank=request.rank, wait_s=bounded(request.wait_s))
            return wire.CallsReport(
                calls=tuple(
                    wire.CallReport(
                        call=one.id,
                        sandbox=one.caller.sandbox,
                        kernel=one.caller.kernel,
                        cell=one.caller.cell,
                        body=one.body,
                    )
                    for one in taken
                ),
                abandoned=tuple(abandoned),
            )
        case wire.AnswerCall():
            answer = CallAnswer(
                body=request.body,
                failed=request.failed,
                prompt_tokens=request.prompt_tokens,
                completion_tokens=request.completion_tokens,
                corrections=request.corrections,
            )
            desk.answer(client, CallId(request.call), answer)
            return host_wire.Done()
