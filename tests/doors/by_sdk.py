"""The SDK, as programs use it: plain, and async in an event loop of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.doors.door import PLAIN, Described, Lying, Named, Past, Ran, Refused, Said
from tests.doors.in_process import Loop

from workbench import AsyncSession, AsyncWorkbench, ListedFile, Result, Session, Workbench
from workbench.errors import WorkbenchError
from workbench.wire import rest


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except WorkbenchError as problem:
        raise Refused(problem.code, problem.message) from problem


class SdkDoor:
    """The plain one."""

    name = "SDK"
    makes_what_it_runs_in = False

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def _session(self, session: str) -> Session:
        with _refusals():
            return self._bench.use(session)

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        with _refusals():
            made = self._bench.create(id=session, sandbox={"sandbox_size": size}, runtime=runtime, eager=True)
            return described_of(made.describe())

    def describe(self, session: str) -> Described:
        with _refusals():
            return described_of(self._session(session).describe())

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        with _refusals():
            return _ran(
                self._session(session).run(
                    code,
                    limit_s=said.limit_s,
                    thought=said.thought,
                    current_step=said.step,
                    current_step_metric=said.metric,
                    idempotency_key=said.idempotency_key or None,
                )
            )

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        with _refusals():
            return _ran(
                self._session(session).bash(
                    command,
                    limit_s=said.limit_s,
                    thought=said.thought,
                    current_step=said.step,
                    current_step_metric=said.metric,
                    idempotency_key=said.idempotency_key or None,
                )
            )

    def variables(self, session: str) -> tuple[Named, ...]:
        with _refusals():
            return tuple(_named(one) for one in self._session(session).variables())

    def interrupt(self, session: str) -> None:
        with _refusals():
            self._session(session).interrupt()

    def restart(self, session: str) -> Described:
        with _refusals():
            return described_of(self._session(session).restart())

    def undo(self, session: str, cells: int = 1) -> Described:
        with _refusals():
            return described_of(self._session(session).undo(cells).session)

    def branch(self, session: str, name: str) -> Described:
        with _refusals():
            return described_of(self._session(session).branch(id=name).describe())

    def resize(self, session: str, size: str) -> Described:
        with _refusals():
            return described_of(self._session(session).change(sandbox_size=size))  # type: ignore[arg-type]

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        with _refusals():
            made = self._session(session).contexts.create(name, runtime=runtime or None, working_folder=folder or None)
            return described_of(made.describe())

    def contexts(self, session: str) -> tuple[str, ...]:
        with _refusals():
            return tuple(one.id for one in self._session(session).contexts.list())

    def restart_context(self, session: str, name: str) -> Described:
        with _refusals():
            return described_of(self._session(session).contexts.restart(name))

    def remove_context(self, session: str, name: str) -> None:
        with _refusals():
            self._session(session).contexts.remove(name)

    def history(self, session: str) -> tuple[Past, ...]:
        with _refusals():
            return tuple(_past(one) for one in self._session(session).history())

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        with _refusals():
            made = self._session(session).files.upload(data, remote_path=path)
            return Lying(path=made.mount_relative_path, size=made.size)

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        with _refusals():
            return tuple(_lying(one) for one in self._session(session).files.list(prefix).items)

    def get_file(self, session: str, path: str) -> bytes:
        with _refusals():
            return self._session(session).files.download(path).buffer()

    def delete_file(self, session: str, path: str) -> int:
        with _refusals():
            return self._session(session).files.delete(path).files

    def delete(self, session: str) -> None:
        with _refusals():
            self._session(session).delete()


class AsyncSdkDoor:
    """The async one."""

    name = "SDK, async"
    makes_what_it_runs_in = False

    def __init__(self, bench: AsyncWorkbench, loop: Loop) -> None:
        self._bench = bench
        self._call = loop.call

    def _session(self, session: str) -> AsyncSession:
        return self._call(self._bench.use(session))

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        made = self._call(self._bench.create(id=session, sandbox={"sandbox_size": size}, runtime=runtime, eager=True))
        return described_of(self._call(made.describe()))

    def describe(self, session: str) -> Described:
        return described_of(self._call(self._session(session).describe()))

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        return _ran(
            self._call(
                self._session(session).run(
                    code,
                    limit_s=said.limit_s,
                    thought=said.thought,
                    current_step=said.step,
                    current_step_metric=said.metric,
                    idempotency_key=said.idempotency_key or None,
                )
            )
        )

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        return _ran(
            self._call(
                self._session(session).bash(
                    command,
                    limit_s=said.limit_s,
                    thought=said.thought,
                    current_step=said.step,
                    current_step_metric=said.metric,
                    idempotency_key=said.idempotency_key or None,
                )
            )
        )

    def variables(self, session: str) -> tuple[Named, ...]:
        return tuple(_named(one) for one in self._call(self._session(session).variables()))

    def interrupt(self, session: str) -> None:
        self._call(self._session(session).interrupt())

    def restart(self, session: str) -> Described:
        return described_of(self._call(self._session(session).restart()))

    def undo(self, session: str, cells: int = 1) -> Described:
        return described_of(self._call(self._session(session).undo(cells)).session)

    def branch(self, session: str, name: str) -> Described:
        made = self._call(self._session(session).branch(id=name))
        return described_of(self._call(made.describe()))

    def resize(self, session: str, size: str) -> Described:
        return described_of(self._call(self._session(session).change(sandbox_size=size)))  # type: ignore[arg-type]

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        contexts = self._session(session).contexts
        made = self._call(contexts.create(name, runtime=runtime or None, working_folder=folder or None))
        return described_of(self._call(made.describe()))

    def contexts(self, session: str) -> tuple[str, ...]:
        return tuple(one.id for one in self._call(self._session(session).contexts.list()))

    def restart_context(self, session: str, name: str) -> Described:
        return described_of(self._call(self._session(session).contexts.restart(name)))

    def remove_context(self, session: str, name: str) -> None:
        self._call(self._session(session).contexts.remove(name))

    def history(self, session: str) -> tuple[Past, ...]:
        return self._call(_all_past(self._session(session)))

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        made = self._call(self._session(session).files.upload(data, remote_path=path))
        return Lying(path=made.mount_relative_path, size=made.size)

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        return tuple(_lying(one) for one in self._call(self._session(session).files.list(prefix)).items)

    def get_file(self, session: str, path: str) -> bytes:
        return self._call(self._call(self._session(session).files.download(path)).buffer())

    def delete_file(self, session: str, path: str) -> int:
        return self._call(self._session(session).files.delete(path)).files

    def delete(self, session: str) -> None:
        self._call(self._session(session).delete())


async def _all_past(session: AsyncSession) -> tuple[Past, ...]:
    return tuple([_past(one) async for one in session.history()])


def described_of(told: rest.Session) -> Described:
    """From a session as the SDK has it."""
    return Described(
        state=told.state,
        epoch=told.epoch,
        size=told.sandbox.sandbox_size,
        runtime=told.runtime,
        parent=told.parent,
        running=any(one.running for one in told.queue),
        step=told.progress.current_step,
        metric=told.progress.current_step_metric,
    )


def _lying(one: ListedFile) -> Lying:
    return Lying(path=one.mount_relative_path, size=one.size)


def _named(one: rest.Variable) -> Named:
    return Named(name=one.name, type=one.type, preview=one.preview)


def _past(one: rest.Cell) -> Past:
    return Past(
        kind=one.kind,
        code=one.code,
        thought=one.thought,
        status=one.status,
        outcome=one.result.outcome if one.result is not None else None,
    )


def _ran(result: Result) -> Ran:
    return Ran(
        cell=result.cell_id,
        outcome=result.outcome,
        stdout=result.stdout,
        stderr=result.stderr,
        results=result.results,
        stdout_file=result.stdout_file_path,
        error=result.error.name if result.error is not None else None,
        exit_code=result.exit_code,
        explanation=result.explanation,
        displays=tuple(tuple(sorted(one.data.items())) for one in result.displays),
        epoch=result.receipt.epoch,
        state=result.receipt.state,
        reason=result.receipt.reason,
        added=tuple(result.receipt.added),
        rebound=tuple(result.receipt.rebound),
    )
