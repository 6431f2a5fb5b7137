"""Which of the hosts of a data folder to ask: the active one, or one that drains and still holds the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from workbench.contracts.host import lost_answer, sandbox_gone, was_dropped
from workbench.data_folder import DataFolder
from workbench.errors import HostUnavailable, NotFound, SandboxUnavailable, WorkbenchError
from workbench.host_client.connection import HostConnection, nobody_listens
from workbench.host_client.find import connect, connect_or_start
from workbench.model.ids import SandboxId
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire.values import Value

A = TypeVar("A", bound=Value)
_ENDED_WITH_HOST = "the workbench host that it lived in has ended"


class Holders:
    """Connections to hosts, opened when they are needed and kept. Owned by the adapter."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._active: HostConnection | None = None
        self._others: dict[SandboxId, HostConnection] = {}
        self._opened: list[HostConnection] = []
        self._connecting = asyncio.Lock()

    async def active(self, *, start: bool) -> HostConnection:
        """The host that takes new sandboxes; started if there is none and `start` says so.

        Raises:
            HostUnavailable: there is none, or it does not answer.
        """
        async with self._connecting:
            if self._active is None or not self._active.alive:
                settings, environ = self._settings, self._environ
                found = await (connect_or_start(settings, environ) if start else connect(settings))
                for dead in [one for one in self._opened if not one.alive]:
                    self._opened.remove(dead)
                    await dead.aclose()
                self._opened.append(found)
                self._active = found
            return self._active

    async def renew(self, left: HostConnection) -> HostConnection:
        """The successor of an active host that is leaving; what it still holds is found by `ask` as before."""
        async with self._connecting:
            if self._active is left:
                self._active = None
        return await self.active(start=True)

    async def ask(self, sandbox: SandboxId, request: wire.AnyRequest, answer: type[A]) -> A:
        """Ask the host that holds the sandbox.

        Raises:
            SandboxUnavailable: no host holds it, or it has ended there; `gone_reason` has the reason.
            NotFound: it lives and has no such kernel or cell.
            HostUnavailable: one that may hold it does not answer; with `answer_lost` if it was asked.
        """
        holder = self._others.get(sandbox)
        if holder is None or not holder.alive:
            try:
                holder = await self.active(start=False)
            except HostUnavailable:
                # None is active. One that leaves, or one that is stuck, is met among all of them.
                holder = await self._search(sandbox, None)
        try:
            return await self.ask_at(holder, request, answer)
        except (NotFound, SandboxUnavailable) as problem:
            holder = await self._holder_after(problem, sandbox, holder)
        return await self.ask_at(holder, request, answer)

    async def ask_at(self, holder: HostConnection, request: wire.AnyRequest, answer: type[A]) -> A:
        """Ask this host; one that went away is not asked again."""
        try:
            return await holder.ask(request, answer)
        except HostUnavailable as problem:
            # Whoever asks again gets a new connection; what others wait for on this one is left to them.
            if self._active is holder:
                self._active = None
            self._others = {sandbox: other for sandbox, other in self._others.items() if other is not holder}
            raise lost_answer(problem) from problem

    async def _holder_after(self, problem: WorkbenchError, sandbox: SandboxId, asked: HostConnection) -> HostConnection:
        """Another host to ask, after one has said no; if it was the right one, its no stands."""
        try:
            state = await asked.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)
        except NotFound:
            return await self._search(sandbox, asked)
        if state.gone:
            raise sandbox_gone(sandbox, state.gone, began=_may_have_begun(problem)) from problem
        if isinstance(problem, NotFound) and problem.context.keys() == {"sandbox"}:
            # It was being made when we asked first, and is there now.
            return asked
        raise problem

    async def _search(self, sandbox: SandboxId, asked: HostConnection | None) -> HostConnection:
        silent: HostUnavailable | None = None
        for run in DataFolder(self._settings.data_dir).run_folders():
            if asked is not None and run.host == asked.greeting.host:
                continue
            try:
                found = await HostConnection.open(run.socket)
            except HostUnavailable as problem:
                silent = silent if nobody_listens(problem) else problem
                continue
            try:
                await found.ask(wire.DescribeSandbox(sandbox=sandbox), wire.SandboxReport)
            except NotFound:
                await found.aclose()
                continue
            except HostUnavailable as problem:
                # It may hold it: not to be taken for a no.
                await found.aclose()
                silent = problem
                continue
            except BaseException:
                await found.aclose()
                raise
            self._opened.append(found)
            self._others[sandbox] = found
            return found
        if silent is not None:
            raise silent
        raise sandbox_gone(sandbox, _ENDED_WITH_HOST)

    def forget(self, sandbox: SandboxId) -> None:
        """It was closed."""
        self._others.pop(sandbox, None)

    async def aclose(self) -> None:
        """May be called twice."""
        while self._opened:
            await self._opened.pop().aclose()


def _may_have_begun(problem: WorkbenchError) -> bool:
    """What was asked about, at a host that knows how the sandbox ended, and gives results for what began there.

    It has no result of a cell that never came, nor of one that ended and was dropped; and none at all once the sandbox
    was closed.
    """
    return isinstance(problem, NotFound) and ("cell" not in problem.context or was_dropped(problem))
