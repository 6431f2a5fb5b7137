"""A session, as an async program holds it. Every name is one of session.py, where it is described."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

from workbench.client import _requests
from workbench.client._requests import Request, Said
from workbench.client._sending import AsyncSender
from workbench.client.aio_files import AsyncExperimental, AsyncFiles
from workbench.client.cells import AsyncCell, AsyncStream
from workbench.client.session import HOME, OnOutput, write_notebook
from workbench.client.values import UNCHANGED, LocalWorkbenchSession, Result, Unchanged
from workbench.model.execution import DEFAULT_LIMIT_S
from workbench.model.records import CellKind
from workbench.model.runtime import PYTHON
from workbench.wire import rest


class AsyncSession:
    """As `Session`, with `await`."""

    def __init__(
        self,
        sender: AsyncSender,
        id: str,  # noqa: A002
        user_id: str,
        branched: rest.Branched | None = None,
        *,
        runtime: str = PYTHON,
    ) -> None:
        self.id = id
        self.user_id = user_id
        self.runtime = runtime
        """its language, by the name that the server has for it"""
        self.branched = branched
        """what this branch did not get of the other's memory; None unless `branch` made it"""
        self.files = AsyncFiles(sender, id)
        """files in /mnt/files, in and out"""
        self.experimental = AsyncExperimental(self.files)
        """the same under the name that other SDKs have for it"""
        self.contexts = AsyncContexts(sender, id)
        """further kernels, each with a language and a memory of its own"""
        self._sender = sender

    def __repr__(self) -> str:
        return f"<AsyncSession {self.id} of {self.user_id}>"

    async def run(
        self,
        code: str,
        *,
        limit_s: float = DEFAULT_LIMIT_S,
        on_output: OnOutput | None = None,
        store_history: bool = True,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> Result:
        """As `Session.run`."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        mode: rest.Mode = "detach" if on_output else "await"
        request = _requests.run_cell(self.id, code, said, mode=mode, store_history=store_history)
        return await self._to_its_end(request, on_output)

    async def stream(
        self,
        code: str,
        *,
        limit_s: float = DEFAULT_LIMIT_S,
        store_history: bool = True,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> AsyncStream:
        """As `Session.stream`."""
        cell = await self.start(
            code,
            limit_s=limit_s,
            store_history=store_history,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        return AsyncStream(self._sender, cell, 0, started_by_us=True)

    async def start(
        self,
        code: str,
        *,
        limit_s: float = DEFAULT_LIMIT_S,
        store_history: bool = True,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> AsyncCell:
        """As `Session.start`."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        request = _requests.run_cell(self.id, code, said, mode="detach", store_history=store_history)
        return AsyncCell(self._sender, await self._sender.send(request))

    async def bash(
        self,
        command: str,
        *,
        cwd: str = HOME,
        limit_s: float = DEFAULT_LIMIT_S,
        on_output: OnOutput | None = None,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> Result:
        """As `Session.bash`."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        mode: rest.Mode = "detach" if on_output else "await"
        return await self._to_its_end(_requests.run_command(self.id, command, said, mode=mode, cwd=cwd), on_output)

    async def start_bash(
        self,
        command: str,
        *,
        cwd: str = HOME,
        limit_s: float = DEFAULT_LIMIT_S,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> AsyncCell:
        """As `Session.start_bash`."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        request = _requests.run_command(self.id, command, said, mode="detach", cwd=cwd)
        return AsyncCell(self._sender, await self._sender.send(request))

    async def cell(self, id: str) -> AsyncCell:  # noqa: A002
        """As `Session.cell`."""
        return AsyncCell(self._sender, await self._sender.send(_requests.get_cell(self.id, CellKind.CELL, id)))

    async def command(self, id: str) -> AsyncCell:  # noqa: A002
        """As `Session.command`."""
        return AsyncCell(self._sender, await self._sender.send(_requests.get_cell(self.id, CellKind.COMMAND, id)))

    async def interrupt(self) -> bool:
        """As `Session.interrupt`."""
        return await self._sender.send(_requests.interrupt(self.id))

    async def restart(self) -> rest.Session:
        """As `Session.restart`."""
        return await self._sender.send(_requests.restart(self.id))

    async def undo(self, n: int = 1) -> rest.Undone:
        """As `Session.undo`."""
        return await self._sender.send(_requests.undo(self.id, n))

    async def branch(self, *, copy: bool = False, id: str | None = None) -> AsyncSession:  # noqa: A002
        """As `Session.branch`."""
        made = await self._sender.send(_requests.branch(self.id, copy=copy, id=id))
        return AsyncSession(self._sender, made.session.id, made.session.user_id, made, runtime=made.session.runtime)

    async def variables(self) -> list[rest.Variable]:
        """As `Session.variables`."""
        return await self._sender.send(_requests.list_variables(self.id))

    async def processes(self) -> list[rest.BackgroundProcess]:
        """As `Session.processes`."""
        return await self._sender.send(_requests.list_processes(self.id))

    async def history(self, *, newest_first: bool = False) -> AsyncIterator[rest.Cell]:
        """As `Session.history`."""
        cursor: str | None = None
        while True:
            page = await self._sender.send(_requests.list_cells(self.id, cursor, newest_first=newest_first))
            for record in page.items:
                yield record
            if (cursor := page.next_cursor) is None:
                return

    async def notebook(self) -> rest.Notebook:
        """As `Session.notebook`."""
        return await self._sender.send(_requests.get_notebook(self.id))

    async def save_notebook(self, path: str | Path) -> Path:
        """As `Session.save_notebook`."""
        return await asyncio.to_thread(write_notebook, path, await self.notebook())

    async def change(
        self,
        *,
        sandbox_size: rest.Size | None = None,
        snapshots: bool | None = None,
        freeze_after_s: int | Unchanged | None = UNCHANGED,
        end_after_s: int | Unchanged | None = UNCHANGED,
    ) -> rest.Session:
        """As `Session.change`."""
        return await self._sender.send(
            _requests.change_session(
                self.id,
                sandbox_size=sandbox_size,
                snapshots=snapshots,
                freeze_after_s=freeze_after_s,
                end_after_s=end_after_s,
            )
        )

    async def keep_alive(self) -> None:
        """As `Session.keep_alive`."""
        await self._sender.send(_requests.keep_alive(self.id))

    async def token(self, lifetime_s: int = 3600) -> rest.Token:
        """As `Session.token`."""
        return await self._sender.send(_requests.create_token(self.id, lifetime_s))

    async def local_sandbox(self, *, expires_in_s: int = 24 * 3600) -> LocalWorkbenchSession:
        """As `Session.local_sandbox`."""
        return await self._sender.send(_requests.create_local_sandbox(self.id, expires_in_s))

    async def describe(self) -> rest.Session:
        """As `Session.describe`."""
        return await self._sender.send(_requests.get_session(self.id))

    async def delete(self) -> None:
        """As `Session.delete`."""
        await self._sender.send(_requests.delete_session(self.id))

    async def _to_its_end(self, request: Request[rest.Cell], on_output: OnOutput | None) -> Result:
        cell = AsyncCell(self._sender, await self._sender.send(request))
        if on_output is None:
            # It ended, unless the server is leaving and told what it knew.
            return await cell.wait()
        async with AsyncStream(self._sender, cell, 0, started_by_us=True) as stream:
            async for piece in stream:
                # Either kind of function will do.
                if inspect.isawaitable(done := on_output(piece)):
                    await done
        return stream.result


class AsyncContexts:
    """As `Contexts`, with `await`."""

    def __init__(self, sender: AsyncSender, session: str) -> None:
        self._sender = sender
        self._session = session

    async def create(
        self,
        id: str | None = None,  # noqa: A002
        *,
        runtime: str | None = None,
        working_folder: str | None = None,
    ) -> AsyncSession:
        """As `Contexts.create`."""
        request = _requests.create_context(self._session, id=id, runtime=runtime, working_folder=working_folder)
        return self._held(await self._sender.send(request))

    async def list(self) -> list[AsyncSession]:
        """As `Contexts.list`."""
        return [self._held(one) for one in await self._sender.send(_requests.list_contexts(self._session))]

    async def restart(self, id: str) -> rest.Session:  # noqa: A002
        """As `Contexts.restart`."""
        return await self._sender.send(_requests.restart_context(self._session, id))

    async def remove(self, id: str) -> None:  # noqa: A002
        """As `Contexts.remove`."""
        await self._sender.send(_requests.remove_context(self._session, id))

    def _held(self, told: rest.Session) -> AsyncSession:
        return AsyncSession(self._sender, told.id, told.user_id, runtime=told.runtime)
