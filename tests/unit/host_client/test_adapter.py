"""The adapter between core and hosts, against small hosts that speak the real protocol and die when told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.contracts.host import (
    CellAddress,
    CellOrder,
    Copied,
    KernelAddress,
    KernelOrder,
    KernelState,
    SandboxOrder,
    answer_lost,
    dropped,
    gone_reason,
    never_began,
)
from workbench.data_folder import DataFolder, reach, release
from workbench.errors import Conflict, HostIncompatible, HostUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.host_client.adapter import HostClient
from workbench.model.execution import Cell, CellResult, Outcome, QueuedCell, Receipt, SnapshotState
from workbench.model.ids import CellId, HostId, KernelId, MountId, SandboxId
from workbench.model.tier import STANDARD
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels
from workbench.wire.values import Request

BOX = SandboxId("sb-1")
AT = KernelAddress(sandbox=BOX, kernel=KernelId("main"))
ORDER = SandboxOrder(sandbox=BOX, tier=STANDARD, mount=MountId("one"), env={"A": "b"})
RUN = CellOrder(at=AT, cell=Cell(id=CellId("c-1"), code="1"), wait_s=1.0)
RESULT = CellResult(cell=CellId("c-1"), outcome=Outcome.OK, receipt=Receipt(epoch=1))
Answer = Callable[[wire.AnyRequest], wire.AnyAnswer | None]


class SmallHost:
    """One host: a sandbox or none, and a say in every answer. `None` as an answer ends the connection instead."""

    def __init__(self, data: DataFolder, name: str, *, holds: bool, gone: str = "") -> None:
        self.run = data.run_folder(HostId(name))
        self.data = data
        self.holds = holds
        self.gone = gone
        self.draining = False
        self.frozen = False
        self.asked: list[wire.AnyRequest] = []
        self.special: Answer | None = None
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self, *, active: bool) -> None:
        self.run.path.mkdir(parents=True)
        name = reach(self.run.socket)
        try:
            self._server = await asyncio.start_unix_server(self._accept, name)
        finally:
            release(name)
        if active:
            self.data.socket.unlink(missing_ok=True)
            self.data.socket.symlink_to(self.run.socket.relative_to(self.data.path))

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        self.run.socket.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = wire.read_asked(await reader.readexactly(wire.frame_length(await reader.readexactly(4))))
                answer = self._answer(asked.request)
                if answer is None:
                    writer.close()
                    return
                writer.write(wire.frame(wire.Answered(number=asked.number, answer=answer)))

    def _answer(self, request: wire.AnyRequest) -> wire.AnyAnswer | None:
        if isinstance(request, wire.Hello):
            return wire.HelloAnswer(protocol=wire.PROTOCOL, version="9.0", host=self.run.host, draining=self.draining)
        self.asked.append(request)
        try:
            if self.special is not None:
                return self.special(request)
            return self.usual(request)
        except WorkbenchError as problem:
            return wire.Problem(code=problem.code, message=problem.message, context=problem.context)

    def usual(self, request: wire.AnyRequest) -> wire.AnyAnswer:
        if isinstance(request, wire.CreateSandbox):
            if self.draining:
                raise Conflict("this host is leaving")
            self.holds = True
            return self._report()
        if isinstance(request, wire.Status):
            return wire.StatusAnswer(
                host=self.run.host, version="9.0", protocol=wire.PROTOCOL, pid=1, engine="x", level="x", limits_by="x",
                uptime_s=0, sandboxes=1, pooled=0, draining=self.draining, warning="", capabilities=(), lost=(),
            )  # fmt: skip
        if isinstance(request, wire.CloseSandbox):
            return wire.Done()
        if not self.holds:
            raise NotFound("no such sandbox")
        if isinstance(request, wire.DescribeSandbox):
            return self._report()
        if self.gone:
            raise SandboxUnavailable("it is gone")
        if isinstance(request, wire.FreezeSandbox):
            self.frozen = True
            return wire.FreezeReport(sandbox=BOX, frozen=True)
        if isinstance(request, kernels.RunCell | kernels.WaitCell):
            return kernels.CellReport(cell=request.cell, state="ended", result=RESULT)
        return _of_kernels(request)

    def _report(self) -> wire.SandboxReport:
        return wire.SandboxReport(
            sandbox=BOX, engine="x", tier="standard", isolated=True, limits_by="x", files="one", warning="", age_s=0.0,
            gone=self.gone, frozen=self.frozen,
        )  # fmt: skip


def _of_kernels(request: wire.AnyRequest) -> wire.AnyAnswer:
    match request:
        case kernels.StartKernel():
            return _kernel_report(request.kernel, request.epoch)
        case kernels.UndoCells():
            return kernels.UndoReport(kernel=_kernel_report(request.kernel, 2), not_carried="a thread")
        case kernels.BranchKernel():
            return kernels.BranchReport(kernel=_kernel_report(request.branch, request.epoch), not_carried="a socket")
        case kernels.CopyInto():
            return kernels.CopyReport(carried=("x",), not_carried={"f": "open"}, files_note="one was left out")
        case _:
            return wire.Done()


def _kernel_report(kernel: str, epoch: int) -> kernels.KernelReport:
    return kernels.KernelReport(
        sandbox=BOX, kernel=kernel, epoch=epoch, execution_count=3, queue=(), snapshots=SnapshotState(kept=2)
    )


def answers_lost(host: SmallHost, kind: type[Request], times: int) -> Answer:
    left = [times]

    def answer(request: wire.AnyRequest) -> wire.AnyAnswer | None:
        if isinstance(request, kind) and left[0]:
            left[0] -= 1
            return None
        return host.usual(request)

    return answer


@pytest.fixture
def data(short_dir: Path) -> DataFolder:
    folder = DataFolder(short_dir / "data")
    folder.make()
    return folder


@pytest.fixture
async def client(data: DataFolder) -> AsyncIterator[HostClient]:
    settings = replace(Settings.from_env({}), data_dir=data.path)
    made = HostClient(settings, {})
    yield made
    await made.aclose()
    await made.aclose()


@pytest.fixture
async def host(data: DataFolder) -> AsyncIterator[SmallHost]:
    made = SmallHost(data, "h-1", holds=True)
    await made.open(active=True)
    yield made
    await made.close()


@contextlib.asynccontextmanager
async def another(data: DataFolder, *, active: bool, holds: bool, gone: str = "") -> AsyncIterator[SmallHost]:
    made = SmallHost(data, "h-2", holds=holds, gone=gone)
    await made.open(active=active)
    try:
        yield made
    finally:
        await made.close()


async def test_a_cell_costs_one_request(client: HostClient, host: SmallHost) -> None:
    assert await client.run_cell(RUN) == RESULT
    assert [type(request).__name__ for request in host.asked] == ["RunCell"]


async def test_an_order_is_told_in_full(client: HostClient, host: SmallHost) -> None:
    await client.create_sandbox(ORDER)
    assert host.asked == [
        wire.CreateSandbox(sandbox=BOX, tier="standard", files="one", env={"A": "b"}, kernel=True)
    ]  # fmt: skip


async def test_what_may_be_done_twice_is_asked_again_when_the_answer_is_lost(
    client: HostClient, host: SmallHost
) -> None:
    host.special = answers_lost(host, kernels.WaitCell, 1)
    assert await client.wait_cell(CellAddress(sandbox=BOX, cell=CellId("c-1")), 1.0) == RESULT
    assert len(host.asked) == 2


async def test_a_cell_is_asked_for_once_and_its_lost_answer_is_told_as_one(client: HostClient, host: SmallHost) -> None:
    host.special = answers_lost(host, kernels.RunCell, 1)
    with pytest.raises(HostUnavailable) as raised:
        await client.run_cell(RUN)
    assert answer_lost(raised.value)
    assert len(host.asked) == 1
    assert await client.run_cell(RUN) == RESULT


async def test_without_any_host_the_sandbox_is_gone(client: HostClient) -> None:
    with pytest.raises(SandboxUnavailable) as raised:
        await client.run_cell(RUN)
    assert gone_reason(raised.value) == "the workbench host that it lived in has ended"
    await client.close_sandbox(BOX)


async def test_a_host_that_does_not_know_the_sandbox_makes_it_gone(client: HostClient, host: SmallHost) -> None:
    host.holds = False
    with pytest.raises(SandboxUnavailable) as raised:
        await client.run_cell(RUN)
    assert gone_reason(raised.value) is not None
    assert not never_began(raised.value)


async def test_a_sandbox_that_ended_tells_why_and_that_nothing_began(client: HostClient, host: SmallHost) -> None:
    host.gone = "disk full"
    with pytest.raises(SandboxUnavailable) as raised:
        await client.run_cell(RUN)
    assert gone_reason(raised.value) == "disk full"
    assert never_began(raised.value)


async def test_a_cell_that_a_living_sandbox_does_not_know_is_not_found(client: HostClient, host: SmallHost) -> None:
    def forgotten(request: wire.AnyRequest) -> wire.AnyAnswer:
        if isinstance(request, kernels.WaitCell):
            raise NotFound("no such cell")
        return host.usual(request)

    host.special = forgotten
    with pytest.raises(NotFound, match="no such cell"):
        await client.wait_cell(CellAddress(sandbox=BOX, cell=CellId("c-1")), 1.0)


async def test_a_sandbox_is_found_at_a_host_that_drains(client: HostClient, data: DataFolder, host: SmallHost) -> None:
    async with another(data, active=True, holds=False) as successor:
        for _ in range(2):
            assert await client.run_cell(RUN) == RESULT
        # Found once, and asked directly from then on.
        assert [type(request).__name__ for request in successor.asked] == ["RunCell", "DescribeSandbox"]
        await client.close_sandbox(BOX)
        assert isinstance(host.asked[-1], wire.CloseSandbox)


async def test_a_sandbox_is_found_where_no_host_is_active(
    client: HostClient, data: DataFolder, host: SmallHost
) -> None:
    data.socket.unlink()
    assert await client.run_cell(RUN) == RESULT


async def test_a_new_sandbox_goes_to_the_successor_of_a_host_that_leaves(
    client: HostClient, data: DataFolder, host: SmallHost
) -> None:
    await client.describe_sandbox(BOX)
    host.draining, host.holds = True, False
    async with another(data, active=True, holds=False) as successor:
        await client.create_sandbox(ORDER)
        assert successor.holds
        assert not host.holds


async def test_other_conflicts_are_told_as_they_are(client: HostClient, host: SmallHost) -> None:
    def refuse(request: wire.AnyRequest) -> wire.AnyAnswer:
        if isinstance(request, wire.CreateSandbox):
            raise Conflict("there is a sandbox already", {"sandbox": BOX})
        return host.usual(request)

    host.special = refuse
    with pytest.raises(Conflict, match="already"):
        await client.create_sandbox(ORDER)


async def test_a_host_that_comes_back_is_connected_to_again(
    client: HostClient, data: DataFolder, host: SmallHost
) -> None:
    assert await client.run_cell(RUN) == RESULT
    await host.close()
    async with another(data, active=True, holds=True):
        with contextlib.suppress(HostUnavailable):  # unless it is noticed before it is asked
            await client.run_cell(RUN)
        assert await client.run_cell(RUN) == RESULT


async def test_a_kernel_is_ordered_with_its_snapshots_and_tells_of_them(client: HostClient, host: SmallHost) -> None:
    order = KernelOrder(at=AT, epoch=4, working_folder="/w", start_up="1", lost_before="gone", snapshots=False)
    state = await client.start_kernel(order)
    assert state == KernelState(epoch=4, execution_count=3, queue=(), snapshots=SnapshotState(kept=2))
    assert host.asked == [
        kernels.StartKernel(
            sandbox=BOX, kernel="main", epoch=4, working_folder="/w", start_up="1", lost_before="gone", snapshots=False
        )
    ]


async def test_undo_branch_and_copy_are_told_in_full_and_answered_in_values(
    client: HostClient, host: SmallHost
) -> None:
    undone = await client.undo(AT, 3)
    branched = await client.branch(AT, KernelId("k-2"), 7)
    copied = await client.copy_into(AT, KernelAddress(sandbox=SandboxId("sb-2"), kernel=KernelId("main")))
    assert host.asked == [
        kernels.UndoCells(sandbox=BOX, kernel="main", cells=3),
        kernels.BranchKernel(sandbox=BOX, kernel="main", branch="k-2", epoch=7),
        kernels.CopyInto(sandbox=BOX, kernel="main", to_sandbox="sb-2", to_kernel="main"),
    ]
    assert (undone.kernel.epoch, undone.not_carried) == (2, "a thread")
    assert (branched.kernel.epoch, branched.kernel.snapshots.kept, branched.not_carried) == (7, 2, "a socket")
    assert copied == Copied(carried=("x",), not_carried={"f": "open"}, files_note="one was left out")


AGAIN: list[tuple[type[Request], Callable[[HostClient], Awaitable[object]]]] = [
    (kernels.EndKernel, lambda client: client.end_kernel(AT)),
    (kernels.SetSnapshots, lambda client: client.set_snapshots(AT, on=False)),
    (kernels.BranchKernel, lambda client: client.branch(AT, KernelId("k-2"), 1)),
]
ONCE: list[tuple[type[Request], Callable[[HostClient], Awaitable[object]]]] = [
    (kernels.UndoCells, lambda client: client.undo(AT, 1)),
    (kernels.CopyInto, lambda client: client.copy_into(AT, AT)),
]


@pytest.mark.parametrize(("kind", "ask"), AGAIN)
async def test_ending_switching_and_branching_are_asked_again(
    client: HostClient, host: SmallHost, kind: type[Request], ask: Callable[[HostClient], Awaitable[object]]
) -> None:
    host.special = answers_lost(host, kind, 1)
    await ask(client)
    assert [type(request) for request in host.asked] == [kind, kind]


@pytest.mark.parametrize(("kind", "ask"), ONCE)
async def test_what_would_be_done_twice_is_asked_once(
    client: HostClient, host: SmallHost, kind: type[Request], ask: Callable[[HostClient], Awaitable[object]]
) -> None:
    host.special = answers_lost(host, kind, 1)
    with pytest.raises(HostUnavailable) as raised:
        await ask(client)
    assert answer_lost(raised.value)
    assert [type(request) for request in host.asked] == [kind]


async def test_ending_a_kernel_whose_sandbox_is_gone_is_no_error(client: HostClient, host: SmallHost) -> None:
    host.gone = "disk full"
    await client.end_kernel(AT)
    host.holds = False
    await client.end_kernel(AT)


async def test_a_sandbox_is_frozen_and_ended_only_if_it_still_is(client: HostClient, host: SmallHost) -> None:
    assert await client.freeze_sandbox(BOX)
    assert (await client.describe_sandbox(BOX)).frozen
    await client.close_sandbox(BOX, if_frozen=True)
    assert host.asked[-1] == wire.CloseSandbox(sandbox=BOX, if_frozen=True)


async def test_a_host_that_knows_no_freezing_ends_nothing_that_is_not_frozen(
    client: HostClient, host: SmallHost
) -> None:
    """An older one, which drains, would not heed the condition."""

    def older(request: wire.AnyRequest) -> wire.AnyAnswer | None:
        if isinstance(request, wire.FreezeSandbox):
            raise HostIncompatible("not a request of protocol 3")
        return host.usual(request)

    host.special = older
    assert not await client.freeze_sandbox(BOX)
    with pytest.raises(Conflict, match="not frozen"):
        await client.close_sandbox(BOX, if_frozen=True)
    assert not any(isinstance(request, wire.CloseSandbox) for request in host.asked)
    host.gone = "it ended"
    await client.close_sandbox(BOX, if_frozen=True)


async def test_a_sandbox_is_thawed_also_by_a_host_that_does_not_know_the_request(
    client: HostClient, host: SmallHost
) -> None:
    await client.thaw_sandbox(BOX)
    assert host.asked[-1] == wire.ThawSandbox(sandbox=BOX)

    def older(request: wire.AnyRequest) -> wire.AnyAnswer | None:
        raise HostIncompatible("not a request of protocol 3")

    host.special = older
    await client.thaw_sandbox(BOX)


async def test_one_cell_is_interrupted_only_while_it_runs(client: HostClient, host: SmallHost) -> None:
    running = [CellId("c-1")]

    def answer(request: wire.AnyRequest) -> wire.AnyAnswer | None:
        if isinstance(request, kernels.DescribeKernel):
            queue = tuple(
                QueuedCell(cell=one, origin="session", running=True, for_s=0.0, first_line="") for one in running
            )
            return kernels.KernelReport(sandbox=BOX, kernel="main", epoch=1, execution_count=0, queue=queue)
        return host.usual(request)

    host.special = answer
    await client.interrupt_kernel(AT, CellId("c-1"))
    # The host looks again, in one step: what runs by then may be another.
    assert host.asked[-1] == kernels.InterruptKernel(sandbox=BOX, kernel="main", cell="c-1")
    running[0] = CellId("c-2")
    await client.interrupt_kernel(AT, CellId("c-1"))
    assert isinstance(host.asked[-1], kernels.DescribeKernel), "an older host would interrupt the other one"
    await client.interrupt_kernel(AT)
    assert host.asked[-1] == kernels.InterruptKernel(sandbox=BOX, kernel="main")


async def test_a_host_that_greets_and_then_does_not_answer_may_hold_the_sandbox(
    client: HostClient, data: DataFolder, host: SmallHost
) -> None:
    host.special = answers_lost(host, wire.DescribeSandbox, 2)
    async with another(data, active=True, holds=False):
        with pytest.raises(HostUnavailable) as raised:
            await client.describe_sandbox(BOX)
        assert gone_reason(raised.value) is None
        assert not (await client.describe_sandbox(BOX)).gone, "and so it was"


@pytest.mark.parametrize(
    ("problem", "certain"),
    [
        (NotFound("no such cell: it was never sent", {"cell": "c-1"}), True),
        (NotFound("no such cell: it was dropped", dropped(CellId("c-1"))), False),
        (NotFound("no such sandbox: it was closed", {"sandbox": BOX}), False),
    ],
)
async def test_a_cell_that_never_came_to_a_sandbox_that_ended_never_began(
    client: HostClient, host: SmallHost, problem: NotFound, certain: bool
) -> None:
    def answer(request: wire.AnyRequest) -> wire.AnyAnswer | None:
        if isinstance(request, kernels.WaitCell):
            raise problem
        return host.usual(request)

    host.special, host.gone = answer, "out of memory"
    with pytest.raises(SandboxUnavailable, match="out of memory") as raised:
        await client.wait_cell(CellAddress(sandbox=BOX, cell=CellId("c-1")), 1.0)
    assert never_began(raised.value) is certain
