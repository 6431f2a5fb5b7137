"""The desk: calls from inside sandboxes, handed to one client each, which answers them.

A call that was handed out is never handed out again: if its client goes away, whether it was carried out is not known,
and its caller is told so.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from workbench.errors import Conflict, HostUnavailable, InvalidRequest
from workbench.host.calls.room import AllRoom
from workbench.model.calls import CallAnswer, Caller
from workbench.model.ids import CallId

# For a server that is being restarted; its callers wait so long.
TAKEN_WITHIN_S = 10.0
# Beyond the longest cell: what is not answered by then is not wanted any more.
_ANSWERED_WITHIN_S = 330.0
# Of one page: frames on the host's socket are bounded.
_PAGE_BYTES = 8 * 1024 * 1024
_MOST_A_PAGE = 100

_NOBODY = (
    "no workbench server took the call up in {seconds:g} s, and nothing was done. Helpers are answered by "
    "`workbench serve`, or by the command that runs the cell: start one and call again"
)
_WENT_AWAY = (
    "the workbench server went away in the middle of the call: whether it was carried out is not known, and it was not "
    "done again"
)
_TOO_LONG = "the call was not answered in {seconds:g} s; whether it was carried out is not known"


@dataclass(slots=True, eq=False)
class Call:
    """One call, from its arrival to its answer."""

    caller: Caller
    body: bytes
    id: CallId = field(default_factory=lambda: CallId(f"call-{secrets.token_hex(8)}"))
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Future[CallAnswer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    client: Hashable = None


class CallDesk:
    """One per host."""

    def __init__(self, taken_within_s: float = TAKEN_WITHIN_S) -> None:
        self._taken_within_s = taken_within_s
        self.room = AllRoom()
        """for what the doors hold"""
        self._waiting: deque[Call] = deque()
        self._taken: dict[CallId, Call] = {}
        self._ranks: dict[Hashable, int] = {}
        """clients that take calls: the lowest rank is asked first, the others only where there is none of it"""
        self._abandoned: dict[Hashable, list[CallId]] = {}
        self._news = asyncio.Event()

    async def ask(self, call: Call) -> CallAnswer:
        """What its client answers. Who gives up waiting gives up the call.

        Raises:
            HostUnavailable: nobody took it up, and nothing was done; or its client went away, or did not answer.
        """
        self._waiting.append(call)
        self._tell()
        try:
            try:
                async with asyncio.timeout(self._taken_within_s):
                    await call.taken.wait()
            except TimeoutError:
                if not call.taken.is_set():
                    raise HostUnavailable(_NOBODY.format(seconds=self._taken_within_s)) from None
            async with asyncio.timeout(_ANSWERED_WITHIN_S):
                return await call.answered
        except TimeoutError:
            raise HostUnavailable(_TOO_LONG.format(seconds=_ANSWERED_WITHIN_S)) from None
        finally:
            self._forget(call)

    def _forget(self, call: Call) -> None:
        if call in self._waiting:
            self._waiting.remove(call)
        # Who gives up waiting cancels what it waited for.
        answered = call.answered.done() and not call.answered.cancelled()
        if self._taken.pop(call.id, None) is not None and not answered and call.client in self._ranks:
            self._abandoned.setdefault(call.client, []).append(call.id)
            self._tell()
        call.answered.cancel()

    async def take(self, client: Hashable, *, rank: int, wait_s: float) -> tuple[list[Call], list[CallId]]:
        """Calls for this client, from now on its own, and those of its earlier ones that nobody waits for any more."""
        if rank < 0:
            raise InvalidRequest(f"a rank is 0 or more, not {rank}")
        self._ranks[client] = rank
        until = time.monotonic() + wait_s
        while True:
            calls, abandoned = self._page(client), self._abandoned.pop(client, [])
            left = until - time.monotonic()
            if calls or abandoned or left <= 0:
                return calls, abandoned
            news = self._news
            try:
                async with asyncio.timeout(left):
                    await news.wait()
            except TimeoutError:
                continue

    def _page(self, client: Hashable) -> list[Call]:
        if self._ranks.get(client, 0) > min(self._ranks.values(), default=0):
            return []
        calls: list[Call] = []
        size = 0
        while self._waiting and len(calls) < _MOST_A_PAGE:
            size += len(self._waiting[0].body)
            if calls and size > _PAGE_BYTES:
                break
            call = self._waiting.popleft()
            call.client = client
            self._taken[call.id] = call
            call.taken.set()
            calls.append(call)
        return calls

    def answer(self, client: Hashable, call: CallId, answer: CallAnswer) -> None:
        """For a call that it has taken; nothing happens if nobody waits for it any more.

        Raises:
            Conflict: it is another client's.
        """
        found = self._taken.get(call)
        if found is None:
            return
        if found.client != client:
            raise Conflict(f"call {call} was taken by another client", {"call": call})
        if not found.answered.done():
            found.answered.set_result(answer)

    def left(self, client: Hashable) -> None:
        """It takes and answers nothing any more."""
        self._ranks.pop(client, None)
        self._abandoned.pop(client, None)
        for call in self._taken.values():
            if call.client == client and not call.answered.done():
                call.answered.set_exception(HostUnavailable(_WENT_AWAY))
        # Others may be asked now.
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
