"""Sessions as a client of the host's socket sees them: a sandbox with a kernel, cells, and what they said."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from workbench.host_client.connection import HostConnection
from workbench.model.execution import CellResult, Outcome, PieceKind
from workbench.model.ids import new_cell_id, new_sandbox_id
from workbench.model.runtime import PYTHON
from workbench.wire import host as wire
from workbench.wire import kernels

KERNEL = "main"
LIMIT_S = 120.0
# Inside, the process that runs cells: by these two numbers it is found outside.
WHO = "import os; (os.getpid(), os.stat('/proc/self/ns/pid').st_ino)"


class Session:
    """One sandbox and its kernel."""

    def __init__(self, connection: HostConnection, sandbox: str) -> None:
        self._connection = connection
        self.sandbox = sandbox

    @classmethod
    async def open(cls, connection: HostConnection, files: str | None = None, runtime: str = PYTHON) -> Session:
        """A new one, ready for cells; with the files of that mount if one is named."""
        sandbox = new_sandbox_id()
        await connection.ask(
            wire.CreateSandbox(sandbox=sandbox, kernel=True, files=files, runtime=runtime), wire.SandboxReport
        )
        # What snapshots add is measured by itself, in bench/state.py.
        start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, snapshots=False, runtime=runtime)
        await connection.ask(start, kernels.KernelReport)
        return cls(connection, sandbox)

    async def run(self, code: str) -> CellResult:
        """One cell, to its end."""
        request = kernels.RunCell(
            sandbox=self.sandbox, kernel=KERNEL, cell=new_cell_id(), code=code, limit_s=LIMIT_S, wait_s=LIMIT_S
        )
        report = await self._connection.ask(request, kernels.CellReport)
        if report.result is None or report.result.outcome is not Outcome.OK:
            raise AssertionError(f"a cell failed: {report}")
        return report.result

    async def value(self, code: str) -> str:
        """The text of its last value."""
        return (await self.run(code)).results.text

    async def stream(self, code: str) -> str:
        """Everything that it prints, read while it runs as a client does that shows it."""
        cell = new_cell_id()
        request = kernels.RunCell(sandbox=self.sandbox, kernel=KERNEL, cell=cell, code=code, limit_s=LIMIT_S)
        await self._connection.ask(request, kernels.CellReport)
        texts, offset, ended = [], 0, False
        while not ended:
            ask = kernels.ReadCell(sandbox=self.sandbox, cell=cell, offset=offset, limit=4 * 1024 * 1024, wait_s=30.0)
            page = await self._connection.ask(ask, kernels.CellOutput)
            texts += [piece.text for piece in page.pieces if piece.kind is PieceKind.STDOUT]
            offset, ended = page.next_offset, page.ended
        wait = kernels.WaitCell(sandbox=self.sandbox, cell=cell, wait_s=LIMIT_S)
        report = await self._connection.ask(wait, kernels.CellReport)
        if report.result is None or report.result.outcome is not Outcome.OK:
            raise AssertionError(f"a cell failed: {report}")
        return "".join(texts)

    async def pid(self) -> int:
        """Of the kernel, as the machine counts."""
        inside, namespace = (int(number) for number in (await self.value(WHO)).strip("()").split(","))
        found = await asyncio.to_thread(outside_pid, inside, namespace)
        if found is None:
            raise AssertionError("the kernel cannot be found from outside")
        return found

    async def close(self) -> None:
        """End it."""
        await self._connection.ask(wire.CloseSandbox(sandbox=self.sandbox), wire.Done)


def outside_pid(inside: int, namespace: int) -> int | None:
    """The process that has this number in this pid namespace."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}/ns/pid").st_ino != namespace:
                    continue
                status = Path(f"/proc/{name}/status").read_text()
            except OSError:
                continue
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
            if int(numbers[-1]) == inside:
                return int(name)
    return None


def cpu_ms(pid: int) -> float:
    """What a process has burnt so far, all its threads together."""
    spent = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        spent += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return spent / 1e6
