"""SandboxHost over the host's socket: values of the model in, requests of the wire out, lost answers asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from workbench.contracts.engine import Usage
from workbench.contracts.host import (
    CellAddress,
    CellOrder,
    CommandOrder,
    Copied,
    KernelAddress,
    KernelOrder,
    KernelState,
    Moved,
    OutputPage,
    SandboxOrder,
    SandboxState,
    gone_reason,
)
from workbench.contracts.kernel import AttachPoint
from workbench.errors import Conflict, HostIncompatible, HostUnavailable, SandboxUnavailable
from workbench.host_client.holders import Holders
from workbench.model.execution import BackgroundProcess, CellResult, CommandResult, Variable
from workbench.model.ids import CellId, KernelId, SandboxId
from workbench.model.tier import Tier
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels
from workbench.wire.values import Value

A = TypeVar("A", bound=Value)


class HostClient:
    """A SandboxHost on this machine, or on whatever machine the socket leads to. Closed by who made it."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._holders = Holders(settings, environ)

    async def aclose(self) -> None:
        """Leave the hosts alone; everything in them lives on. May be called twice."""
        await self._holders.aclose()

    async def create_sandbox(self, order: SandboxOrder) -> SandboxState:
        """As the contract has it."""
        request = wire.CreateSandbox(
            sandbox=order.sandbox,
            tier=order.tier.name,
            files=order.mount,
            env=order.env,
            kernel=True,
            warm=order.warm,
            runtime=order.runtime,
        )
        try:
            return await self._create(request)
        except HostUnavailable:
            return await self._create(request)

    async def _create(self, request: wire.CreateSandbox) -> SandboxState:
        host = await self._holders.active(start=True)
        try:
            return _sandbox_state(await self._holders.ask_at(host, request, wire.SandboxReport))
        except Conflict:
            if not (await self._holders.ask_at(host, wire.Status(), wire.StatusAnswer)).draining:
                raise
        successor = await self._holders.renew(host)
        return _sandbox_state(await self._holders.ask_at(successor, request, wire.SandboxReport))

    async def describe_sandbox(self, sandbox: SandboxId) -> SandboxState:
        """As the contract has it."""
        return _sandbox_state(await self._again(sandbox, wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport))

    async def close_sandbox(self, sandbox: SandboxId, *, if_frozen: bool = False) -> None:
        """As the contract has it."""
        try:
            # Described first: only who holds it can say when its mount is free.
            known = await self._again(sandbox, wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)
            if if_frozen and not (known.frozen or known.gone):
                # Not left to the host alone: one of an older version does not know the condition, and would end it.
                raise Conflict(f"sandbox {sandbox} is not frozen: somebody uses it", {"sandbox": sandbox})
            await self._again(sandbox, wire.CloseSandbox(sandbox=sandbox, if_frozen=if_frozen), wire.Done)
        except SandboxUnavailable as problem:
            if gone_reason(problem) is None:
                raise
        self._holders.forget(sandbox)

    async def freeze_sandbox(self, sandbox: SandboxId) -> bool:
        """As the contract has it."""
        try:
            return (await self._again(sandbox, wire.FreezeSandbox(sandbox=sandbox), wire.FreezeReport)).frozen
        except HostIncompatible:
            # An older host that drains cannot: what it holds runs to its end.
            return False

    async def thaw_sandbox(self, sandbox: SandboxId) -> None:
        """As the contract has it."""
        try:
            await self._again(sandbox, wire.ThawSandbox(sandbox=sandbox), wire.Done)
        except HostIncompatible:
            # An older host that drains: what it holds thaws with whatever is asked of it.
            return

    async def change_tier(self, sandbox: SandboxId, tier: Tier) -> None:
        """As the contract has it."""
        await self._again(sandbox, wire.ChangeTier(sandbox=sandbox, tier=tier.name), wire.SandboxReport)

    async def measure(self, sandbox: SandboxId) -> Usage:
        """As the contract has it."""
        told = await self._again(sandbox, wire.MeasureSandbox(sandbox=sandbox), wire.UsageReport)
        return Usage(
            memory_bytes=told.memory_bytes,
            peak_memory_bytes=told.peak_memory_bytes,
            cpu_s=told.cpu_s,
            processes=told.processes,
        )

    async def list_processes(self, sandbox: SandboxId) -> tuple[BackgroundProcess, ...]:
        """As the contract has it."""
        return (await self._again(sandbox, kernels.ListProcesses(sandbox=sandbox), kernels.ProcessList)).processes

    async def start_kernel(self, order: KernelOrder) -> KernelState:
        """As the contract has it."""
        request = kernels.StartKernel(
            sandbox=order.at.sandbox,
            kernel=order.at.kernel,
            epoch=order.epoch,
            working_folder=order.working_folder,
            start_up=order.start_up,
            lost_before=order.lost_before,
            snapshots=order.snapshots,
            runtime=order.runtime,
        )
        return _kernel_state(await self._again(order.at.sandbox, request, kernels.KernelReport))

    async def describe_kernel(self, at: KernelAddress) -> KernelState:
        """As the contract has it."""
        request = kernels.DescribeKernel(sandbox=at.sandbox, kernel=at.kernel)
        return _kernel_state(await self._again(at.sandbox, request, kernels.KernelReport))

    async def restart_kernel(self, at: KernelAddress) -> KernelState:
        """As the contract has it."""
        request = kernels.RestartKernel(sandbox=at.sandbox, kernel=at.kernel)
        return _kernel_state(await self._once(at.sandbox, request, kernels.KernelReport))

    async def end_kernel(self, at: KernelAddress) -> None:
        """As the contract has it."""
        try:
            await self._again(at.sandbox, kernels.EndKernel(sandbox=at.sandbox, kernel=at.kernel), wire.Done)
        except SandboxUnavailable as problem:
            if gone_reason(problem) is None:
                raise

    async def set_snapshots(self, at: KernelAddress, *, on: bool) -> None:
        """As the contract has it."""
        await self._again(at.sandbox, kernels.SetSnapshots(sandbox=at.sandbox, kernel=at.kernel, on=on), wire.Done)

    async def undo(self, at: KernelAddress, cells: int) -> Moved:
        """As the contract has it."""
        request = kernels.UndoCells(sandbox=at.sandbox, kernel=at.kernel, cells=cells)
        told = await self._once(at.sandbox, request, kernels.UndoReport)
        return Moved(kernel=_kernel_state(told.kernel), not_carried=told.not_carried)

    async def branch(self, at: KernelAddress, branch: KernelId, epoch: int) -> Moved:
        """As the contract has it."""
        request = kernels.BranchKernel(sandbox=at.sandbox, kernel=at.kernel, branch=branch, epoch=epoch)
        told = await self._again(at.sandbox, request, kernels.BranchReport)
        return Moved(kernel=_kernel_state(told.kernel), not_carried=told.not_carried)

    async def copy_into(self, at: KernelAddress, target: KernelAddress) -> Copied:
        """As the contract has it."""
        request = kernels.CopyInto(
            sandbox=at.sandbox, kernel=at.kernel, to_sandbox=target.sandbox, to_kernel=target.kernel
        )
        told = await self._once(at.sandbox, request, kernels.CopyReport)
        return Copied(carried=told.carried, not_carried=told.not_carried, files_note=told.files_note)

    async def interrupt_kernel(self, at: KernelAddress, cell: CellId | None = None) -> None:
        """As the contract has it."""
        if cell is not None:
            # Not left to the host alone: one of an older version does not know the condition, and would interrupt.
            queue = (await self.describe_kernel(at)).queue
            if not any(one.running and one.cell == cell for one in queue):
                return
        request = kernels.InterruptKernel(sandbox=at.sandbox, kernel=at.kernel, cell=cell)
        await self._once(at.sandbox, request, wire.Done)

    async def list_variables(self, at: KernelAddress, most: int) -> tuple[Variable, ...]:
        """As the contract has it."""
        request = kernels.ListVariables(sandbox=at.sandbox, kernel=at.kernel, most=most)
        return (await self._again(at.sandbox, request, kernels.VariableList)).variables

    async def attach(self, at: KernelAddress) -> AttachPoint:
        """As the contract has it."""
        request = kernels.AttachKernel(sandbox=at.sandbox, kernel=at.kernel)
        told = await self._again(at.sandbox, request, kernels.AttachReport)
        return AttachPoint(connection_file=told.connection_file, info=told.info)

    async def run_cell(self, order: CellOrder) -> CellResult | None:
        """As the contract has it."""
        request = kernels.RunCell(
            sandbox=order.at.sandbox,
            kernel=order.at.kernel,
            cell=order.cell.id,
            code=order.cell.code,
            limit_s=order.cell.limit_s,
            store_history=order.cell.store_history,
            wait_s=order.wait_s,
        )
        return _cell_result(await self._once(order.at.sandbox, request, kernels.CellReport))

    async def run_command(self, order: CommandOrder) -> CommandResult | None:
        """As the contract has it."""
        request = kernels.RunCommand(
            sandbox=order.at.sandbox,
            kernel=order.at.kernel,
            cell=order.command.id,
            command=order.command.command,
            limit_s=order.command.limit_s,
            cwd=order.command.cwd,
            epoch=order.epoch,
            wait_s=order.wait_s,
        )
        return _command_result(await self._once(order.at.sandbox, request, kernels.CellReport))

    async def wait_cell(self, at: CellAddress, wait_s: float) -> CellResult | None:
        """As the contract has it."""
        return _cell_result(await self._wait(at, wait_s))

    async def wait_command(self, at: CellAddress, wait_s: float) -> CommandResult | None:
        """As the contract has it."""
        return _command_result(await self._wait(at, wait_s))

    async def _wait(self, at: CellAddress, wait_s: float) -> kernels.CellReport:
        request = kernels.WaitCell(sandbox=at.sandbox, cell=at.cell, wait_s=wait_s)
        return await self._again(at.sandbox, request, kernels.CellReport)

    async def read_output(self, at: CellAddress, offset: int, wait_s: float) -> OutputPage:
        """As the contract has it."""
        request = kernels.ReadCell(sandbox=at.sandbox, cell=at.cell, offset=offset, wait_s=wait_s)
        told = await self._again(at.sandbox, request, kernels.CellOutput)
        return OutputPage(
            pieces=told.pieces, next_offset=told.next_offset, ended=told.ended, dropped_bytes=told.dropped_bytes
        )

    async def cancel_cell(self, at: CellAddress) -> None:
        """As the contract has it."""
        await self._once(at.sandbox, kernels.CancelCell(sandbox=at.sandbox, cell=at.cell), wire.Done)

    async def interrupt_command(self, at: CellAddress) -> None:
        """As the contract has it."""
        await self._once(at.sandbox, kernels.InterruptCommand(sandbox=at.sandbox, cell=at.cell), wire.Done)

    async def forget_cell(self, at: CellAddress) -> None:
        """As the contract has it."""
        await self._again(at.sandbox, kernels.ForgetCell(sandbox=at.sandbox, cell=at.cell), wire.Done)

    async def _again(self, sandbox: SandboxId, request: wire.AnyRequest, answer: type[A]) -> A:
        """For requests that may be carried out twice."""
        try:
            return await self._holders.ask(sandbox, request, answer)
        except HostUnavailable:
            return await self._holders.ask(sandbox, request, answer)

    async def _once(self, sandbox: SandboxId, request: wire.AnyRequest, answer: type[A]) -> A:
        """For requests of which only the caller knows what a lost answer means."""
        return await self._holders.ask(sandbox, request, answer)


def _sandbox_state(report: wire.SandboxReport) -> SandboxState:
    return SandboxState(
        tier=report.tier,
        warning=report.warning,
        gone=report.gone,
        frozen=report.frozen,
        attached_idle_s=report.attached_idle_s,
    )


def _kernel_state(report: kernels.KernelReport) -> KernelState:
    return KernelState(
        epoch=report.epoch,
        execution_count=report.execution_count,
        queue=report.queue,
        start_up_error=report.start_up_error,
        snapshots=report.snapshots,
    )


def _cell_result(report: kernels.CellReport) -> CellResult | None:
    if report.state == "ended" and report.result is None:
        raise HostIncompatible(f"the host says that {report.cell} ended, and not how")
    return report.result


def _command_result(report: kernels.CellReport) -> CommandResult | None:
    if report.state == "ended" and report.command_result is None:
        raise HostIncompatible(f"the host says that {report.cell} ended, and not how")
    return report.command_result
