"""Sessions whose memory is kept between cells, with what only such a session can do: undo, branch."""

from __future__ import annotations

import asyncio
import time

from bench.sessions import KERNEL, LIMIT_S, Session
from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, SnapshotState
from workbench.model.ids import new_cell_id, new_kernel_id, new_sandbox_id
from workbench.wire import host as wire
from workbench.wire import kernels

_KEPT_S = 10.0
# A snapshot that was too dear is tried again when ten times its time has passed.
_MOST_DECLINED, _DECLINED_S = 10, 1.0


class Kept(Session):
    """A session whose memory is kept, or, to compare with, is not."""

    @classmethod
    async def begin(cls, connection: HostConnection, *, snapshots: bool = True) -> Kept:
        """A new one, ready for cells."""
        sandbox = new_sandbox_id()
        await connection.ask(wire.CreateSandbox(sandbox=sandbox, kernel=True), wire.SandboxReport)
        start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, snapshots=snapshots)
        await connection.ask(start, kernels.KernelReport)
        return cls(connection, sandbox)

    async def ended(self, code: str, limit_s: float = LIMIT_S, kernel: str = KERNEL) -> CellResult:
        """One cell, however it ends."""
        request = kernels.RunCell(
            sandbox=self.sandbox, kernel=kernel, cell=new_cell_id(), code=code, limit_s=limit_s, wait_s=LIMIT_S
        )
        report = await self._connection.ask(request, kernels.CellReport)
        assert report.result is not None
        return report.result

    async def kept(self) -> SnapshotState:
        """Once there is a snapshot of the memory as it is, or has been declined."""
        deadline = time.monotonic() + _KEPT_S
        while time.monotonic() < deadline:
            ask = kernels.DescribeKernel(sandbox=self.sandbox, kernel=KERNEL)
            state = (await self._connection.ask(ask, kernels.KernelReport)).snapshots
            if state.current or state.reason != "not taken yet":
                return state
            await asyncio.sleep(0.01)
        raise TimeoutError("there is neither a snapshot nor a reason")

    async def until_kept(self, code: str) -> int:
        """Run a cell that may be run again until its memory is kept; how often it was declined."""
        declined = 0
        while True:
            await self.run(code)
            state = await self.kept()
            if state.current:
                return declined
            declined += 1
            if declined > _MOST_DECLINED:
                raise AssertionError(f"no snapshot is taken here: {state.reason}")
            await asyncio.sleep(_DECLINED_S)

    async def undo(self) -> float:
        """Over one cell, in milliseconds."""
        began = time.perf_counter()
        await self._connection.ask(kernels.UndoCells(sandbox=self.sandbox, kernel=KERNEL), kernels.UndoReport)
        return (time.perf_counter() - began) * 1000

    async def branch(self, code: str) -> tuple[float, str]:
        """To a branch's first answer, in milliseconds; and the answer. The branch is ended."""
        name = new_kernel_id()
        began = time.perf_counter()
        request = kernels.BranchKernel(sandbox=self.sandbox, kernel=KERNEL, branch=name, epoch=1)
        await self._connection.ask(request, kernels.BranchReport)
        answer = (await self.ended(code, kernel=name)).results.text
        took = (time.perf_counter() - began) * 1000
        await self._connection.ask(kernels.EndKernel(sandbox=self.sandbox, kernel=name), wire.Done)
        return took, answer

    async def cpu_s(self) -> float:
        """Of the whole sandbox so far, ended processes too."""
        return (await self._connection.ask(wire.MeasureSandbox(sandbox=self.sandbox), wire.UsageReport)).cpu_s
