"""Notebooks that come by a kernel's door: a door that was opened once is no reason to keep a sandbox running."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager

from workbench.contracts.kernel import Visit

# Between two requests of somebody who is just at it: a completion, then the cell. Longer, and a thaw costs less.
RECENT_S = 60.0


class Visits:
    """Of one kernel. `use` gives what lets the sandbox run, if it may not do so now."""

    def __init__(self, use: Visit) -> None:
        self._use = use
        self._last: float | None = None

    def __call__(self) -> AbstractAsyncContextManager[None] | None:
        """One asks for something; as the contract of the door has it."""
        self.note()
        return self._use()

    def note(self) -> None:
        """Somebody is there."""
        self._last = time.monotonic()

    @property
    def idle_s(self) -> float | None:
        """Since one last asked; None if none ever has."""
        return None if self._last is None else time.monotonic() - self._last

    @property
    def are_recent(self) -> bool:
        """Whether the next one is to be expected at any moment."""
        return self._last is not None and time.monotonic() - self._last < RECENT_S
