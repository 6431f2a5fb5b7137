"""Stopping one cell or command, wherever it was sent, and no other."""

from __future__ import annotations

import contextlib

from workbench.contracts.host import CellAddress, KernelAddress, SandboxHost
from workbench.contracts.storage import CellStore
from workbench.core import requests
from workbench.core.places import Places, unless_gone
from workbench.core.work import address_of
from workbench.errors import Conflict, NotFound
from workbench.model.ids import CellId
from workbench.model.session import Session


class Stops:
    """Ends what runs before its time."""

    def __init__(self, host: SandboxHost, cells: CellStore, places: Places) -> None:
        self._host = host
        self._cells = cells
        self._places = places

    async def cancel_cell(self, request: requests.CancelCell) -> None:
        """Out of the queue."""
        session = await self._places.use(request.session)
        await self._host.cancel_cell(await self._address(session, request.cell))

    async def stop_cell(self, request: requests.StopCell) -> bool:
        """This one and no other: what waits is cancelled, and an interrupt is sent only while it runs."""
        session = await self._places.use(request.session)
        with unless_gone(), contextlib.suppress(NotFound):
            at = await self._address(session, request.cell)
            kernel = KernelAddress(sandbox=at.sandbox, kernel=session.kernel)
            try:
                await self._host.cancel_cell(at)
            except Conflict:
                queue = (await self._host.describe_kernel(kernel)).queue
                if not any(one.running and one.cell == request.cell for one in queue):
                    return False
                # Looked at once more there, in one step: the next cell may have begun meanwhile.
                await self._host.interrupt_kernel(kernel, cell=request.cell)
            return True
        return False

    async def stop_command(self, request: requests.StopCommand) -> bool:
        """It and all in its group."""
        session = await self._places.use(request.session)
        with unless_gone(), contextlib.suppress(NotFound):
            at = await self._address(session, request.cell)
            # Looked at before: by the interrupt it may end sooner than we could ask.
            if await self._host.wait_command(at, 0.0) is not None:
                return False
            await self._host.interrupt_command(at)
            return True
        return False

    async def _address(self, session: Session, cell: CellId) -> CellAddress:
        """Where it was sent; what an attached notebook sent is not written down, and is where the session is."""
        with contextlib.suppress(NotFound):
            return address_of(await self._cells.get(session.spec.id, cell))
        if not session.begun:
            raise NotFound(f"session {session.spec.id!r} has no cell {cell}: nothing runs in it", {"cell": cell})
        return CellAddress(sandbox=session.sandbox, cell=cell)
