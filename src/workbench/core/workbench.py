"""Workbench: the operations that every door offers, one method each with one request value. Doors only translate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.fetching import Fetching
from workbench.contracts.host import OutputPage, SandboxHost
from workbench.contracts.kernel import AttachPoint
from workbench.contracts.mounts import MountStore
from workbench.contracts.storage import Records
from workbench.core import requests
from workbench.core.branches import Branches
from workbench.core.configurations import Configurations
from workbench.core.contexts import Contexts
from workbench.core.ends import Ends
from workbench.core.errands import Errands
from workbench.core.executions import Executions
from workbench.core.extraction import Extraction
from workbench.core.files import Files
from workbench.core.history import History
from workbench.core.installs import Installs, InstallTold
from workbench.core.languages import ONLY_PYTHON, Languages
from workbench.core.links import LinkSigner
from workbench.core.mount_requests import ExtractedText, ExtractText
from workbench.core.mounts import Mounts
from workbench.core.packages import Packages
from workbench.core.places import Places
from workbench.core.sessions import Sessions
from workbench.core.stops import Stops
from workbench.model.corrections import DEFAULT_TEXT
from workbench.model.execution import BackgroundProcess, CellResult, CommandResult, RuleCount, Variable
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId
from workbench.model.records import CellRecord
from workbench.model.runtime import Runtime, Runtimes
from workbench.model.session import SessionDescription


class Workbench:
    """One project's. Owns nothing that runs: cancelling a call, or ending this process, ends no cell and no session.

    Every method may raise any error of the tree; then nothing ran. `NotFound` means that there is no such session in
    this project, `Conflict` that it is being deleted or just being made. Calls may be made at once, from any number of
    processes.
    """

    def __init__(
        self,
        *,
        host: SandboxHost,
        records: Records,
        mounts: MountStore,
        fetching: Fetching,
        signer: LinkSigner,
        clock: Clock,
        installs: Installs,
        project: ProjectId = DEFAULT_PROJECT,
        corrections: str = DEFAULT_TEXT,
        runtimes: Runtimes = ONLY_PYTHON,
    ) -> None:
        sessions, cells = records.sessions(project), records.cells(project)
        self.languages = Languages(runtimes)
        """those that sessions may have"""
        places = Places(host, sessions, cells, mounts, clock, corrections)
        self._sessions = Sessions(host, records, mounts, clock, places, project, self.languages)
        self._branches = Branches(host, sessions, clock, places, self._sessions, self.languages)
        self._contexts = Contexts(sessions, clock, places, self._sessions, self.languages)
        ends = Ends(host, sessions, cells, places, clock, self.languages)
        self._executions = Executions(host, cells, places, ends, clock)
        self._rules = records.rules(project)
        self._stops = Stops(host, cells, places)
        self._history = History(sessions, cells, self.languages)
        errands = Errands(host, places)
        self._files = Files(errands)
        self._packages = Packages(errands, places, installs)
        self.mounts = Mounts(records, mounts, fetching, signer, clock, places, project)
        """files of sessions from outside, each operation a method of its own"""
        self.configurations = Configurations(sessions, clock, places, self._sessions)
        """what sessions may reach, version by version"""
        self._extraction = Extraction(host, clock, places, errands, self.mounts)

    async def create_session(self, request: requests.CreateSession) -> SessionDescription:
        """A new session.

        Raises:
            Conflict: there is one of that name.
            KernelUnavailable: it is `eager`, and its language is not on this machine; nothing is left of it.
            InvalidRequest: its name, language, variables, start-up code or working folder cannot be used.
        """
        return await self._sessions.create(request)

    async def describe_session(self, request: requests.DescribeSession) -> SessionDescription:
        """How it is now. Changes nothing, and starts no host."""
        return await self._sessions.describe(request)

    async def user_of(self, session: SessionId) -> str:
        """Whose it is, for the audit; empty if there is no such session."""
        return await self._sessions.user_of(session)

    async def runtime_of(self, session: SessionId) -> Runtime:
        """The language of one."""
        return await self._sessions.runtime_of(session)

    async def list_sessions(self, request: requests.ListSessions) -> requests.SessionPage:
        """A page of one user's or everybody's, by name."""
        return await self._sessions.list(request)

    async def delete_session(self, request: requests.DeleteSession) -> None:
        """End what runs in it and drop its record; sandbox and files go with the last of those that share them.

        Who was interrupted asks again.
        """
        await self._sessions.delete(request)

    async def delete_user(self, request: requests.DeleteUser) -> int:
        """All sessions of a user, and whatever is written down about them, for good; how many sessions there were.

        Who was interrupted asks again.
        """
        return await self._sessions.delete_user(request)

    async def keep_alive(self, request: requests.KeepAlive) -> None:
        """Count it as used now."""
        await self._sessions.keep_alive(request)

    async def set_idle_limits(self, request: requests.SetIdleLimits) -> SessionDescription:
        """Other limits for when nothing happens in it.

        Raises:
            InvalidRequest: no number of seconds.
        """
        return await self._sessions.set_idle_limits(request)

    async def change_tier(self, request: requests.ChangeTier) -> SessionDescription:
        """Another size for it and all who share its sandbox; living memories stay.

        Raises:
            QuotaExceeded: it uses more than that now; nothing changed.
        """
        return await self._sessions.change_tier(request)

    async def set_snapshots(self, request: requests.SetSnapshots) -> SessionDescription:
        """Keep its memory between cells from now on, or drop what is kept and keep nothing more."""
        return await self._sessions.set_snapshots(request)

    async def undo(self, request: requests.UndoCells) -> requests.Undone:
        """Back to the memory from before the last cells, with a new epoch; files stay, what waits never begins.

        Raises:
            Conflict: its language keeps no memory, it has none now, a cell runs, or so many are not kept; nothing
                changed.
            InvalidRequest: not a number of cells.
        """
        return await self._branches.undo(request)

    async def branch(self, request: requests.BranchSession) -> requests.Branched | requests.CopiedSession:
        """A second session with the same memory: `Branched`, or with `copy` a `CopiedSession`.

        A branch is in the same sandbox: it shares files, processes, limits and tier with what it was branched from, and
        they live as long as one of both does. A copy shares nothing.

        Raises:
            Conflict: it has no memory now or cannot be branched, with the reason; or the new name is taken.
        """
        return await self._branches.branch(request)

    async def create_context(self, request: requests.CreateContext) -> SessionDescription:
        """A further kernel of a session, empty, of any language: in the same sandbox, with the same files. By its name
        it is used as a session is, and it ends with the session.

        Raises:
            Conflict: the name is taken.
            InvalidRequest: its name, language or working folder cannot be used.
            KernelUnavailable: its language is not on this machine; nothing is left of it.
        """
        return await self._contexts.create(request)

    async def list_contexts(self, request: requests.ListContexts) -> tuple[SessionDescription, ...]:
        """Those of a session, oldest first."""
        return await self._contexts.list(request)

    async def restart_context(self, request: requests.RestartContext) -> SessionDescription:
        """A new, empty memory for one of them."""
        return await self._contexts.restart(request)

    async def remove_context(self, request: requests.RemoveContext) -> None:
        """End one of them; the session and its other contexts stay."""
        await self._contexts.remove(request)

    async def restart_kernel(self, request: requests.RestartKernel) -> SessionDescription:
        """A new memory, with the start-up code run in it."""
        return await self._sessions.restart(request)

    async def interrupt_kernel(self, request: requests.InterruptKernel) -> None:
        """Interrupt what runs, whoever runs it."""
        await self._sessions.interrupt(request)

    async def list_variables(self, request: requests.ListVariables) -> tuple[Variable, ...]:
        """Names of its memory; none if it has no memory now."""
        return await self._sessions.list_variables(request)

    async def list_processes(self, request: requests.ListProcesses) -> tuple[BackgroundProcess, ...]:
        """What runs in its background."""
        return await self._sessions.list_processes(request)

    async def attach_kernel(self, request: requests.AttachKernel) -> AttachPoint:
        """Where a Jupyter client on the host's machine finds its kernel."""
        return await self._sessions.attach(request)

    async def run_cell(self, request: requests.RunCell) -> CellResult:
        """Run code to its end, which is a result whatever it is.

        Cancelling the call does not stop the cell; `stop_cell` does.

        Raises:
            Cancelled: it was taken out of the queue before it began.
        """
        result = (await self.perform(request)).result
        assert isinstance(result, CellResult)
        return result

    async def run_command(self, request: requests.RunCommand) -> CommandResult:
        """The same for a command line; it does not wait for cells."""
        result = (await self.perform(request)).result
        assert isinstance(result, CommandResult)
        return result

    async def perform(self, request: requests.RunCell | requests.RunCommand) -> CellRecord:
        """Run it to its end; the record has the result. With an idempotency key that was used before, the kept answer.

        Raises:
            Conflict: the idempotency key, or the id, belongs to another request.
            Cancelled: it was taken out of the queue before it began.
        """
        return await self._executions.perform(request)

    async def submit(self, request: requests.RunCell | requests.RunCommand) -> CellRecord:
        """The same, answered as soon as the host has it: it goes on whoever waits for it, and `get_cell` tells."""
        return await self._executions.submit(request)

    async def get_cell(self, request: requests.GetCell) -> CellRecord:
        """A cell or command as it is, or at its end if that comes in time. One that never began is `failed`.

        Raises:
            NotFound: no such session or cell.
            HostUnavailable: it cannot be waited for, as the host does not answer.
        """
        return await self._executions.get(request)

    async def read_output(self, request: requests.ReadOutput) -> OutputPage:
        """What it said, from any offset, as long as the host keeps it.

        Raises:
            NotFound: no such session or cell.
            Conflict: it has ended, and its output is not kept any more; the result has head and tail.
            InvalidRequest: no piece begins at this offset.
        """
        return await self._executions.read_output(request)

    async def list_cells(self, request: requests.ListCells) -> requests.CellPage:
        """A page of a session's history, as it is written down."""
        return await self._history.list(request)

    async def export_notebook(self, request: requests.ExportNotebook) -> dict[str, Any]:
        """A session's history as a notebook (nbformat 4.5), with outputs and thoughts."""
        return await self._history.notebook(request)

    def notebook_parts(self, request: requests.ExportNotebook) -> AsyncIterator[dict[str, Any]]:
        """The same in parts: first everything but `cells`, then each of them."""
        return self._history.notebook_parts(request)

    async def cancel_cell(self, request: requests.CancelCell) -> None:
        """Take a waiting cell out of the queue.

        Raises:
            Conflict: it runs or has ended.
        """
        await self._stops.cancel_cell(request)

    async def stop_cell(self, request: requests.StopCell) -> bool:
        """Cancel it if it waits, interrupt it if it runs; whether there was something to stop. No other is touched."""
        return await self._stops.stop_cell(request)

    async def stop_command(self, request: requests.StopCommand) -> bool:
        """Interrupt it and everything in its group; whether there was something to stop."""
        return await self._stops.stop_command(request)

    async def write_file(self, request: requests.WriteFile) -> requests.FileState:
        """Put a file into its sandbox, by programs inside. Nobody sees half of it; the history does not have it.

        Raises:
            InvalidRequest: it cannot be written there, or is too large.
            QuotaExceeded: there is no room for it.
        """
        return await self._files.write(request)

    async def read_file(self, request: requests.ReadFile) -> requests.FileContent:
        """What is in a file of its sandbox, read by programs inside.

        Raises:
            NotFound: no such session or file; `path` in the context tells which.
            InvalidRequest: it is no ordinary file, too large, or cannot be read.
            Conflict: it was changed meanwhile.
        """
        return await self._files.read(request)

    async def copy_file(self, request: requests.CopyFile) -> requests.FileState:
        """From one path inside to another. Raises what reading and writing do."""
        return await self._files.copy(request)

    async def describe_file(self, request: requests.DescribeFile) -> requests.FileState:
        """That it is there, and how large. Raises what reading does."""
        return await self._files.describe(request)

    async def has_files(self, request: requests.HasFiles) -> bool:
        """Whether anything is in its /mnt/files. It gets a sandbox if it has none."""
        return await self._files.has_any(request)

    async def extract_text(self, request: ExtractText) -> ExtractedText:
        """The text of a file in its mount; in its sandbox, or in one that is thrown away."""
        return await self._extraction.run(request)

    async def count_corrections(self) -> tuple[RuleCount, ...]:
        """How often each rule of the corrections had something to do in this project, since it is counted."""
        return await self._rules.counted()

    async def find_packages(self, request: requests.FindPackages) -> dict[str, str]:
        """Versions of those of the packages that its Python has."""
        return await self._packages.find(request)

    async def install_packages(self, request: requests.InstallPackages) -> tuple[InstallTold, ...]:
        """Have packages installed for it, each with what came of it; those that are refused are told, not raised."""
        return await self._packages.install(request)
