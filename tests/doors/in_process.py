"""The core itself, in the process of the tests, as the owner of the data folder has it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from tests.doors.door import PLAIN, Described, Lying, Named, Past, Ran, Refused, Said

from workbench.core import mount_requests, requests
from workbench.core.workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.model.execution import CellResult, CommandResult
from workbench.model.ids import SessionId
from workbench.model.records import Progress
from workbench.model.session import SessionDescription
from workbench.model.tier import tier_named
from workbench.settings import Settings
from workbench.wiring import open_workbench

T = TypeVar("T")
_CALL_S = 120.0


class Loop:
    """An event loop in a thread of its own, for tests that are plain functions."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="doors")
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """From any thread, to its end; an error of the tree is a refusal."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_S)
        except WorkbenchError as problem:
            raise Refused(problem.code, problem.message) from problem

    def close(self) -> None:
        """With nothing left in it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_S)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


@contextlib.contextmanager
def in_process(settings: Settings, loop: Loop) -> Iterator[CoreDoor]:
    """A door without any wire."""
    opened = open_workbench(settings, os.environ)
    bench = loop.call(opened.__aenter__())
    try:
        yield CoreDoor(bench, loop)
    finally:
        loop.call(_left(opened))


async def _left(opened: contextlib.AbstractAsyncContextManager[Workbench]) -> None:
    await opened.__aexit__(None, None, None)


class CoreDoor:
    """Requests of the core, as they are."""

    name = "in process"
    makes_what_it_runs_in = False

    def __init__(self, bench: Workbench, loop: Loop) -> None:
        self._bench = bench
        self._call = loop.call

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        request = requests.CreateSession(session=SessionId(session), runtime=runtime, tier=tier_named(size), eager=True)
        return _described(self._call(self._bench.create_session(request)))

    def describe(self, session: str) -> Described:
        request = requests.DescribeSession(session=SessionId(session))
        return _described(self._call(self._bench.describe_session(request)))

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        request = requests.RunCell(
            session=SessionId(session),
            code=code,
            limit_s=said.limit_s,
            progress=_progress(said),
            idempotency_key=said.idempotency_key,
        )
        return _of_cell(self._call(self._bench.run_cell(request)))

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        request = requests.RunCommand(
            session=SessionId(session),
            command=command,
            limit_s=said.limit_s,
            progress=_progress(said),
            idempotency_key=said.idempotency_key,
        )
        return _of_command(self._call(self._bench.run_command(request)))

    def variables(self, session: str) -> tuple[Named, ...]:
        found = self._call(self._bench.list_variables(requests.ListVariables(session=SessionId(session))))
        return tuple(Named(name=one.name, type=one.type, preview=one.preview) for one in found)

    def interrupt(self, session: str) -> None:
        self._call(self._bench.interrupt_kernel(requests.InterruptKernel(session=SessionId(session))))

    def restart(self, session: str) -> Described:
        return _described(self._call(self._bench.restart_kernel(requests.RestartKernel(session=SessionId(session)))))

    def undo(self, session: str, cells: int = 1) -> Described:
        request = requests.UndoCells(session=SessionId(session), cells=cells)
        return _described(self._call(self._bench.undo(request)).described)

    def branch(self, session: str, name: str) -> Described:
        request = requests.BranchSession(session=SessionId(session), branch=SessionId(name))
        return _described(self._call(self._bench.branch(request)).described)

    def resize(self, session: str, size: str) -> Described:
        request = requests.ChangeTier(session=SessionId(session), tier=tier_named(size))
        return _described(self._call(self._bench.change_tier(request)))

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        request = requests.CreateContext(
            session=SessionId(session), context=SessionId(name), runtime=runtime, working_folder=folder
        )
        return _described(self._call(self._bench.create_context(request)))

    def contexts(self, session: str) -> tuple[str, ...]:
        found = self._call(self._bench.list_contexts(requests.ListContexts(session=SessionId(session))))
        return tuple(one.session.spec.id for one in found)

    def restart_context(self, session: str, name: str) -> Described:
        request = requests.RestartContext(session=SessionId(session), context=SessionId(name))
        return _described(self._call(self._bench.restart_context(request)))

    def remove_context(self, session: str, name: str) -> None:
        request = requests.RemoveContext(session=SessionId(session), context=SessionId(name))
        self._call(self._bench.remove_context(request))

    def history(self, session: str) -> tuple[Past, ...]:
        page = self._call(self._bench.list_cells(requests.ListCells(session=SessionId(session))))
        return tuple(
            Past(
                kind=one.kind,
                code=one.code,
                thought=one.progress.thought,
                status=one.status,
                outcome=one.result.outcome if one.result is not None else None,
            )
            for one in page.cells
        )

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        return self._call(self._put(session, path, data))

    async def _put(self, session: str, path: str, data: bytes) -> Lying:
        request = mount_requests.StageFile(session=SessionId(session), path=path)
        async with self._bench.mounts.stage(request) as staged:
            await staged.write(data)
            made = await staged.commit()
        return Lying(path=made.path, size=made.size)

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        request = mount_requests.ListFiles(session=SessionId(session), prefix=prefix)
        return tuple(Lying(path=one.path, size=one.size) for one in self._call(self._bench.mounts.list(request)).files)

    def get_file(self, session: str, path: str) -> bytes:
        return self._call(self._get(session, path))

    async def _get(self, session: str, path: str) -> bytes:
        request = mount_requests.OpenMountFile(session=SessionId(session), path=path)
        async with self._bench.mounts.open(request) as opened:
            return os.pread(opened.descriptor, opened.file.size, 0)

    def delete_file(self, session: str, path: str) -> int:
        request = mount_requests.DeleteFile(session=SessionId(session), path=path)
        return self._call(self._bench.mounts.delete(request)).files

    def delete(self, session: str) -> None:
        self._call(self._bench.delete_session(requests.DeleteSession(session=SessionId(session))))


def _progress(said: Said) -> Progress:
    return Progress(thought=said.thought, current_step=said.step, current_step_metric=said.metric)


def _described(told: SessionDescription) -> Described:
    return Described(
        state=told.state,
        epoch=told.session.epoch,
        size=told.session.spec.tier.name,
        runtime=told.session.spec.runtime,
        parent=told.session.parent,
        running=any(one.running for one in told.queue),
        step=told.progress.current_step,
        metric=told.progress.current_step_metric,
    )


def _of_cell(result: CellResult) -> Ran:
    return Ran(
        cell=result.cell,
        outcome=result.outcome,
        stdout=result.stdout.text,
        stderr=result.stderr.text,
        results=result.results.text,
        stdout_file=result.stdout.file_path,
        error=result.error.name if result.error is not None else None,
        explanation=result.explanation,
        displays=tuple(tuple(sorted(one.data.items())) for one in result.displays),
        epoch=result.receipt.epoch,
        state=result.receipt.state,
        reason=result.receipt.reason,
        added=result.receipt.added,
        rebound=result.receipt.rebound,
    )


def _of_command(result: CommandResult) -> Ran:
    return Ran(
        cell=result.command,
        outcome=result.outcome,
        stdout=result.stdout.text,
        stderr=result.stderr.text,
        stdout_file=result.stdout.file_path,
        exit_code=result.exit_code,
        explanation=result.explanation,
        epoch=result.receipt.epoch,
        state=result.receipt.state,
        reason=result.receipt.reason,
        added=result.receipt.added,
        rebound=result.receipt.rebound,
    )
