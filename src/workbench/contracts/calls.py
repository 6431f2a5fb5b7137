"""CallSource: where calls from inside sandboxes come from, for who answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from workbench.model.calls import CallAnswer, GuestCall


class CallSource(Protocol):
    """All hosts that this service uses."""

    async def serve(self, answer: Callable[[GuestCall], Awaitable[CallAnswer]]) -> None:
        """Until it is cancelled: each call is answered once, many beside each other.

        A call is taken by one who serves, among all that there are. If its caller leaves, `answer` is cancelled. What
        `answer` raises is a defect, and told to the caller as one.
        """
        ...
