"""When a sandbox may stand still: never while somebody needs it, and whoever does has it thawed first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from workbench.contracts.engine import Sandbox
from workbench.errors import Conflict


class Freezer:
    """Of one hosted sandbox. `is_busy` tells of what goes on when nobody waits for it."""

    def __init__(self, sandbox: Sandbox, is_busy: Callable[[], bool]) -> None:
        self._sandbox = sandbox
        self._is_busy = is_busy
        self._users = 0
        self._freezing = asyncio.Lock()

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Its body finds the sandbox thawed, and it stays so. Entered before anything else is waited for."""
        self._users += 1
        try:
            await self._sandbox.thaw()
            yield
        finally:
            self._users -= 1

    def visit(self) -> AbstractAsyncContextManager[None] | None:
        """The same for who cannot wait each time: None if it runs, and `is_busy` tells of the visit from now on."""
        return self.in_use() if self._sandbox.frozen or self._freezing.locked() else None

    async def thaw(self) -> None:
        """Let it run again; nothing happens if it does."""
        async with self.in_use():
            pass

    async def freeze(self) -> bool:
        """Whether it is frozen now.

        Raises:
            SandboxUnavailable: it is gone.
        """
        async with self._freezing:
            if self._is_needed() or not await self._sandbox.freeze():
                return False
            if self._is_needed():
                # Somebody came meanwhile, and may have left something running already.
                await self._sandbox.thaw()
            return self._sandbox.frozen

    def _is_needed(self) -> bool:
        return self._users > 0 or self._is_busy()

    def check_frozen(self) -> None:
        """Raises: Conflict if somebody needs it, or it is thawed. Who acts on it at once comes before any thaw."""
        if self._is_needed() or not self._sandbox.frozen:
            sandbox = self._sandbox.description.id
            raise Conflict(f"sandbox {sandbox} is not frozen: somebody uses it", {"sandbox": sandbox})
