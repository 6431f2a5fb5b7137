"""A session, as a program holds it. `AsyncSession` in aio_session.py has the same names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from workbench.client import _requests
from workbench.client._requests import Request, Said
from workbench.client._sending import Sender
from workbench.client.cells import Cell, Stream
from workbench.client.files import Experimental, Files
from workbench.client.values import UNCHANGED, LocalWorkbenchSession, Result, Unchanged
from workbench.model.execution import DEFAULT_LIMIT_S
from workbench.model.records import CellKind
from workbench.model.runtime import PYTHON
from workbench.wire import rest

OnOutput = Callable[[rest.Piece], object]
"""What it gives back is not used; for async sessions it is awaited, if it can be."""
HOME = "/home/user"


class Session:
    """A place with a memory: variables stay from one cell to the next, files in /mnt/files until it is deleted."""

    def __init__(
        self,
        sender: Sender,
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
        self.files = Files(sender, id)
        """files in /mnt/files, in and out"""
        self.experimental = Experimental(self.files)
        """the same under the name that other SDKs have for it"""
        self.contexts = Contexts(sender, id)
        """further kernels, each with a language and a memory of its own"""
        self._sender = sender

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.user_id}>"

    def run(
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
        """Run code in its kernel, after what is queued there, and wait for the end.

        A lost answer is asked for again, and the code runs once. `on_output` is called with every piece as it comes.
        Code that raises, runs out of time or is interrupted is a result, not an error.

        Raises:
            WorkbenchError: it never began.
        """
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        mode: rest.Mode = "detach" if on_output else "await"
        request = _requests.run_cell(self.id, code, said, mode=mode, store_history=store_history)
        return self._to_its_end(request, on_output)

    def stream(
        self,
        code: str,
        *,
        limit_s: float = DEFAULT_LIMIT_S,
        store_history: bool = True,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> Stream:
        """Run code and get its output piece by piece; the stream has the result at its end."""
        cell = self.start(
            code,
            limit_s=limit_s,
            store_history=store_history,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        return Stream(self._sender, cell, 0, started_by_us=True)

    def start(
        self,
        code: str,
        *,
        limit_s: float = DEFAULT_LIMIT_S,
        store_history: bool = True,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> Cell:
        """Have code run whoever listens, and get a handle at once."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        request = _requests.run_cell(self.id, code, said, mode="detach", store_history=store_history)
        return Cell(self._sender, self._sender.send(request))

    def bash(
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
        """Run a command line by bash, beside what the kernel does. For the rest see `run`."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        mode: rest.Mode = "detach" if on_output else "await"
        return self._to_its_end(_requests.run_command(self.id, command, said, mode=mode, cwd=cwd), on_output)

    def start_bash(
        self,
        command: str,
        *,
        cwd: str = HOME,
        limit_s: float = DEFAULT_LIMIT_S,
        thought: str = "",
        current_step: str = "",
        current_step_metric: str = "",
        idempotency_key: str | None = None,
    ) -> Cell:
        """Have a command line run whoever listens, and get a handle at once."""
        said = Said(
            limit_s=limit_s,
            thought=thought,
            current_step=current_step,
            current_step_metric=current_step_metric,
            idempotency_key=idempotency_key,
        )
        request = _requests.run_command(self.id, command, said, mode="detach", cwd=cwd)
        return Cell(self._sender, self._sender.send(request))

    def cell(self, id: str) -> Cell:  # noqa: A002
        """A handle of a cell that was started before, here or elsewhere.

        Raises:
            NotFound: there is none of this name in the session.
        """
        return Cell(self._sender, self._sender.send(_requests.get_cell(self.id, CellKind.CELL, id)))

    def command(self, id: str) -> Cell:  # noqa: A002
        """The same for a command."""
        return Cell(self._sender, self._sender.send(_requests.get_cell(self.id, CellKind.COMMAND, id)))

    def interrupt(self) -> bool:
        """Interrupt what its kernel runs; False if it runs nothing."""
        return self._sender.send(_requests.interrupt(self.id))

    def restart(self) -> rest.Session:
        """A new memory in the same sandbox: variables are gone, files are not."""
        return self._sender.send(_requests.restart(self.id))

    def undo(self, n: int = 1) -> rest.Undone:
        """Back to the memory from before the last cells; files stay as they are.

        Raises:
            Conflict: no snapshot reaches back so far.
        """
        return self._sender.send(_requests.undo(self.id, n))

    def branch(self, *, copy: bool = False, id: str | None = None) -> Session:  # noqa: A002
        """A second session with the same memory: in the same sandbox, or as a copy in one of its own."""
        made = self._sender.send(_requests.branch(self.id, copy=copy, id=id))
        return Session(self._sender, made.session.id, made.session.user_id, made, runtime=made.session.runtime)

    def variables(self) -> list[rest.Variable]:
        """Names of its memory; none if it has no memory now."""
        return self._sender.send(_requests.list_variables(self.id))

    def processes(self) -> list[rest.BackgroundProcess]:
        """What runs in its background."""
        return self._sender.send(_requests.list_processes(self.id))

    def history(self, *, newest_first: bool = False) -> Iterator[rest.Cell]:
        """What was run in it, in the order it was accepted or backwards; asks for pages when they are needed."""
        cursor: str | None = None
        while True:
            page = self._sender.send(_requests.list_cells(self.id, cursor, newest_first=newest_first))
            yield from page.items
            if (cursor := page.next_cursor) is None:
                return

    def notebook(self) -> rest.Notebook:
        """Its history as a notebook (nbformat 4)."""
        return self._sender.send(_requests.get_notebook(self.id))

    def save_notebook(self, path: str | Path) -> Path:
        """Write that to a file here."""
        return write_notebook(path, self.notebook())

    def change(
        self,
        *,
        sandbox_size: rest.Size | None = None,
        snapshots: bool | None = None,
        freeze_after_s: int | Unchanged | None = UNCHANGED,
        end_after_s: int | Unchanged | None = UNCHANGED,
    ) -> rest.Session:
        """Another size, at once and with its memory kept, or other rules; None for a time is the server's setting."""
        return self._sender.send(
            _requests.change_session(
                self.id,
                sandbox_size=sandbox_size,
                snapshots=snapshots,
                freeze_after_s=freeze_after_s,
                end_after_s=end_after_s,
            )
        )

    def keep_alive(self) -> None:
        """Count as used now: it is neither frozen nor ended for being idle until its limits have passed again."""
        self._sender.send(_requests.keep_alive(self.id))

    def token(self, lifetime_s: int = 3600) -> rest.Token:
        """A key for this session only, to hand to whoever should reach nothing else."""
        return self._sender.send(_requests.create_token(self.id, lifetime_s))

    def local_sandbox(self, *, expires_in_s: int = 24 * 3600) -> LocalWorkbenchSession:
        """What a box of your own needs to be the place of this session, whose sandbox is off; good for a day.

        Raises:
            Conflict: its sandbox is on.
        """
        return self._sender.send(_requests.create_local_sandbox(self.id, expires_in_s))

    def describe(self) -> rest.Session:
        """How it is; changes nothing and starts nothing."""
        return self._sender.send(_requests.get_session(self.id))

    def delete(self) -> None:
        """End it and drop its files and its history."""
        self._sender.send(_requests.delete_session(self.id))

    def _to_its_end(self, request: Request[rest.Cell], on_output: OnOutput | None) -> Result:
        cell = Cell(self._sender, self._sender.send(request))
        if on_output is None:
            # It ended, unless the server is leaving and told what it knew.
            return cell.wait()
        with Stream(self._sender, cell, 0, started_by_us=True) as stream:
            for piece in stream:
                on_output(piece)
        return stream.result


class Contexts:
    """Further kernels of a session, around the same files. Each is a session by its name, and goes with this one."""

    def __init__(self, sender: Sender, session: str) -> None:
        self._sender = sender
        self._session = session

    def create(
        self,
        id: str | None = None,  # noqa: A002
        *,
        runtime: str | None = None,
        working_folder: str | None = None,
    ) -> Session:
        """One more, with an empty memory; language and folder are the session's unless given.

        Raises:
            Conflict: there is a session of this id.
            KernelUnavailable: its language is not on the machine; the message has what to install.
        """
        request = _requests.create_context(self._session, id=id, runtime=runtime, working_folder=working_folder)
        return self._held(self._sender.send(request))

    def list(self) -> list[Session]:
        """All of them, oldest first."""
        return [self._held(one) for one in self._sender.send(_requests.list_contexts(self._session))]

    def restart(self, id: str) -> rest.Session:  # noqa: A002
        """A new memory for one of them."""
        return self._sender.send(_requests.restart_context(self._session, id))

    def remove(self, id: str) -> None:  # noqa: A002
        """End one of them; files and the others stay."""
        self._sender.send(_requests.remove_context(self._session, id))

    def _held(self, told: rest.Session) -> Session:
        return Session(self._sender, told.id, told.user_id, runtime=told.runtime)


def write_notebook(path: str | Path, notebook: rest.Notebook) -> Path:
    """As Jupyter writes them."""
    target = Path(path)
    target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return target
