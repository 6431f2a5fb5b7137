"""Which languages sessions may have, and what a language that keeps no memory cannot do. How a kernel of one is started
is the host's.
"""

from __future__ import annotations

import difflib
from dataclasses import replace

from workbench.errors import Conflict, InvalidRequest
from workbench.model.execution import CellResult, CommandResult, Receipt, SnapshotState
from workbench.model.runtime import PYTHON, Runtime, Runtimes
from workbench.model.session import Session, SessionDescription

ONLY_PYTHON = Runtimes(
    known=(Runtime(name=PYTHON, title="Python", language="python", kernelspec="python3", file_extension=".py"),)
)
_MOST_QUOTED = 40
# Below it unrelated words are proposed.
_ALIKE = 0.5


class Languages:
    """Of one server."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that there are, without their other names."""
        return tuple(one.name for one in self._runtimes.known)

    def named(self, name: str) -> Runtime:
        """What a caller means, in whatever letters and by whatever name it has.

        Raises:
            InvalidRequest: there is none; it names those there are, and the nearest.
        """
        found = self._runtimes.find(name)
        if found is None:
            raise InvalidRequest(self._unknown(name), {"runtime": name[:_MOST_QUOTED]})
        return found

    def _unknown(self, name: str) -> str:
        owner = {known: one for one in self._runtimes.known for known in one.names}
        near = difflib.get_close_matches(name.strip().lower(), list(owner), n=1, cutoff=_ALIKE)
        meant = f"; did you mean {owner[near[0]].name!r}?" if near else ""
        there = ", ".join(sorted(self.names))
        return f"there is no runtime {name[:_MOST_QUOTED]!r} here{meant or '.'} There is: {there}. No session was made"

    def of(self, session: Session) -> Runtime:
        """Its own; one that was taken away since it was made has no more than its name."""
        name = session.spec.runtime
        bare = Runtime(name=name, title=name, language=name, kernelspec=name, file_extension="")
        return self._runtimes.find(name) or bare

    def check_kept(self, session: Session, what: str) -> None:
        """For what needs a memory that is kept beside the kernel.

        Raises:
            Conflict: its language has none; nothing was asked of anybody.
        """
        runtime = self.of(session)
        if why := why_no_memory(runtime):
            raise Conflict(
                f"session {session.spec.id!r} runs {runtime.title}, which cannot be {what}: {why}. Write "
                "what is to be kept to files under /mnt/files and read it from there; variables come back by running "
                "again the code that made them",
                {"session": session.spec.id, "runtime": runtime.name},
            )

    def described(self, told: SessionDescription) -> SessionDescription:
        """With the reason why nothing is kept of its memory, if it is the language's."""
        return replace(told, snapshots=self._snapshots(told.session, told.snapshots))

    def receipted(self, session: Session, result: CellResult | CommandResult) -> CellResult | CommandResult:
        """The same for the receipt of what ran in it."""
        receipt: Receipt = result.receipt
        return replace(result, receipt=replace(receipt, snapshot=self._snapshots(session, receipt.snapshot)))

    def _snapshots(self, session: Session, told: SnapshotState) -> SnapshotState:
        runtime = self.of(session)
        why = why_no_memory(runtime)
        return SnapshotState(reason=f"{runtime.title}: {why}") if why else told


def why_no_memory(runtime: Runtime) -> str:
    """Why it has no undo, no branches and no restoring; empty if it has. Only an interpreter that we fork has them."""
    return "" if runtime.forked else runtime.no_memory or "its memory is not kept beside it"


def is_python(session: Session) -> bool:
    """Whether what is known of Python's code is true of its code."""
    return session.spec.runtime == PYTHON
