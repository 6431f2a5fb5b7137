"""Requests about kernels, cells and commands: finds the sandbox they are for, and lets its cells answer."""

from __future__ import annotations

from collections.abc import Callable

from workbench.host.cells.sandbox_cells import SandboxCells
from workbench.host.hosted import Hosted
from workbench.wire import host as host_wire
from workbench.wire import kernels as wire

# What is answered without the guest, and so does not thaw it. Whatever waits or runs keeps it thawed anyway.
_LOOKS = (wire.DescribeKernel, wire.WaitCell, wire.ReadCell, wire.CancelCell, wire.ForgetCell, wire.ListProcesses)


class KernelService:
    """One per host."""

    def __init__(self, hosted_of: Callable[[str], Hosted]) -> None:
        self._hosted_of = hosted_of

    async def answer(self, request: wire.AnyKernelRequest) -> host_wire.AnyAnswer:
        """Raises: NotFound if there is no such sandbox, kernel or cell; SandboxUnavailable if it is gone."""
        hosted = self._hosted_of(request.sandbox)
        if isinstance(request, _LOOKS):
            return await self._answer(hosted.cells, request)
        async with hosted.freezer.in_use():
            return await self._answer(hosted.cells, request)

    async def _answer(self, cells: SandboxCells, request: wire.AnyKernelRequest) -> host_wire.AnyAnswer:
        match request:
            case wire.RunCell():
                return await cells.run_cell(request)
            case wire.RunCommand():
                return await cells.run_command(request)
            case wire.WaitCell():
                return await cells.wait_cell(request)
            case wire.ReadCell():
                return await cells.read_cell(request)
            case wire.CancelCell():
                cells.cancel_cell(request)
            case wire.InterruptCommand():
                await cells.interrupt_command(request)
            case wire.ForgetCell():
                cells.forget_cell(request)
            case wire.ListProcesses():
                return await cells.list_processes()
            case wire.CopyInto():
                target = self._hosted_of(request.to_sandbox)
                async with target.freezer.in_use():
                    return await cells.copy_into(request, target.cells)
            case _:
                return await _about_a_kernel(cells, request)
        return host_wire.Done()


_KernelRequest = (
    wire.StartKernel | wire.DescribeKernel | wire.RestartKernel | wire.InterruptKernel | wire.ListVariables
    | wire.AttachKernel | wire.EndKernel | wire.SetSnapshots | wire.UndoCells | wire.BranchKernel
)  # fmt: skip


async def _about_a_kernel(cells: SandboxCells, request: _KernelRequest) -> host_wire.AnyAnswer:
    match request:
        case wire.StartKernel():
            return await cells.start_kernel(request)
        case wire.DescribeKernel():
            return cells.describe_kernel(request)
        case wire.RestartKernel():
            return await cells.restart_kernel(request)
        case wire.InterruptKernel():
            await cells.interrupt_kernel(request)
            return host_wire.Done()
        case wire.ListVariables():
            return await cells.list_variables(request)
        case wire.AttachKernel():
            return await cells.attach_kernel(request)
        case _:
            return await _about_its_memory(cells, request)


_MemoryRequest = wire.EndKernel | wire.SetSnapshots | wire.UndoCells | wire.BranchKernel


async def _about_its_memory(cells: SandboxCells, request: _MemoryRequest) -> host_wire.AnyAnswer:
    match request:
        case wire.UndoCells():
            return await cells.undo(request)
        case wire.BranchKernel():
            return await cells.branch(request)
        case wire.EndKernel():
            await cells.end_kernel(request)
        case wire.SetSnapshots():
            await cells.set_snapshots(request)
    return host_wire.Done()
