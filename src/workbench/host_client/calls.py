"""Calls from inside the sandboxes of every host of a data folder, over a connection of their own to each."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from collections.abc import Awaitable, Callable

from workbench.data_folder import DataFolder, RunFolder
from workbench.errors import HostIncompatible, HostUnavailable, WorkbenchError
from workbench.host_client.connection import HostConnection
from workbench.model.calls import CallAnswer, Caller, GuestCall
from workbench.model.ids import CallId, CellId, KernelId, SandboxId
from workbench.wire import calls as wire
from workbench.wire import host as host_wire

_log = logging.getLogger(__name__)
# A host that was started a moment ago has callers that wait already.
_LOOK_EVERY_S = 0.5
_TAKE_WAIT_S = 30.0
_DEFECT = json.dumps(
    {"result": None, "error": "the workbench failed; its log has the reason", "code": "internal_error"}
).encode()

Answer = Callable[[GuestCall], Awaitable[CallAnswer]]


class HostCalls:
    """A CallSource. One of a higher rank is only asked where there is none of a lower one."""

    def __init__(self, data: DataFolder, *, rank: int) -> None:
        self._data = data
        self._rank = rank
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._cannot: set[str] = set()
        """hosts of an older version, which have no calls"""

    async def serve(self, answer: Answer) -> None:
        """As the contract has it."""
        try:
            while True:
                for run in self._data.run_folders():
                    task = self._serving.get(run.host)
                    if (task is None or task.done()) and run.host not in self._cannot and run.socket.exists():
                        self._serving[run.host] = asyncio.create_task(
                            self._serve_host(run, answer), name=f"calls of {run.host}"
                        )
                await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            for task in self._serving.values():
                task.cancel()
            if self._serving:
                await asyncio.wait(self._serving.values())

    async def _serve_host(self, run: RunFolder, answer: Answer) -> None:
        with contextlib.suppress(HostUnavailable):
            async with await HostConnection.open(run.socket) as host:
                try:
                    await _Taking(host, answer, self._rank).run()
                except HostIncompatible:
                    self._cannot.add(run.host)


class _Taking:
    """At one host, until it is gone."""

    def __init__(self, host: HostConnection, answer: Answer, rank: int) -> None:
        self._host = host
        self._answer = answer
        self._rank = rank
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Raises: HostUnavailable when it is gone."""
        try:
            while True:
                taken = await self._host.ask(wire.TakeCalls(wait_s=_TAKE_WAIT_S, rank=self._rank), wire.CallsReport)
                for call in taken.abandoned:
                    if (task := self._under_way.get(call)) is not None:
                        task.cancel()
                for report in taken.calls:
                    task = asyncio.create_task(self._one(report), name=f"call {report.call}")
                    self._under_way[report.call] = task
                    task.add_done_callback(functools.partial(self._over, report.call))
        finally:
            left = list(self._under_way.values())
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)

    def _over(self, call: str, _: asyncio.Task[None]) -> None:
        self._under_way.pop(call, None)

    async def _one(self, report: wire.CallReport) -> None:
        call = GuestCall(
            id=CallId(report.call),
            caller=Caller(
                sandbox=SandboxId(report.sandbox),
                kernel=None if report.kernel is None else KernelId(report.kernel),
                cell=None if report.cell is None else CellId(report.cell),
            ),
            body=report.body,
        )
        try:
            answer = await self._answer(call)
        except Exception:  # noqa: BLE001  a defect of ours is told as ours, and costs one call
            _log.exception("call %s failed", report.call)
            answer = CallAnswer(body=_DEFECT, failed=True)
        told = wire.AnswerCall(
            call=report.call,
            body=answer.body,
            failed=answer.failed,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            corrections=answer.corrections,
        )
        with contextlib.suppress(WorkbenchError):
            await self._host.ask(told, host_wire.Done)
