"""Who waits for another task of this process waits here, and holds no thread meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Gate:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Gates:
    """One for each thing that is asked for; gone when nobody is at it."""

    def __init__(self) -> None:
        self._gates: dict[Hashable, _Gate] = {}

    @contextlib.asynccontextmanager
    async def through(self, thing: Hashable) -> AsyncIterator[None]:
        """One at a time, in the order in which they came."""
        gate = self._gates.setdefault(thing, _Gate())
        gate.users += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[thing]
