"""What is remembered of tools, in this process's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.errors import NotFound
from workbench.model.approval import ApprovalMark, MarkState, SeenShape
from workbench.model.ids import ProjectId, SessionId
from workbench.storage.shelves import Shelves
from workbench.storage.wording import begins_of, no_such_session


class MemoryToolMemory:
    """A ToolMemory without a disk."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves

    async def keep(self, session: SessionId, mark: ApprovalMark, now: str) -> bool:
        """As the contract has it."""
        kept = self._kept(session, now)
        if mark.subject in kept:
            return False
        kept[mark.subject] = mark
        return True

    async def put(self, session: SessionId, mark: ApprovalMark, now: str) -> None:
        """As the contract has it."""
        self._kept(session, now)[mark.subject] = mark

    def _kept(self, session: SessionId, now: str) -> dict[str, ApprovalMark]:
        if session not in self._shelves.sessions:
            raise NotFound(no_such_session(session), {"session": session})
        kept = self._shelves.marks.setdefault(session, {})
        for subject in [subject for subject, mark in kept.items() if mark.until <= now]:
            del kept[subject]
        return kept

    async def marks(self, session: SessionId, now: str) -> tuple[ApprovalMark, ...]:
        """As the contract has it."""
        kept = self._shelves.marks.get(session, {})
        return tuple(kept[subject] for subject in sorted(kept) if kept[subject].until > now)

    async def take(self, session: SessionId, subject: str, now: str) -> bool:
        """As the contract has it."""
        found = self._shelves.marks.get(session, {}).get(subject)
        if found is None or found.state is not MarkState.GRANTED or found.until <= now:
            return False
        del self._shelves.marks[session][subject]
        return True

    async def drop(self, session: SessionId, subjects: Sequence[str]) -> None:
        """As the contract has it."""
        for subject in subjects:
            self._shelves.marks.get(session, {}).pop(subject, None)

    async def saw(self, project: ProjectId, tool: str, at: str, merged: Callable[[str], str]) -> None:
        """As the contract has it."""
        before = self._shelves.shapes.get((project, tool))
        calls, shape = (before.calls, before.shape) if before else (0, "")
        self._shelves.shapes[project, tool] = SeenShape(tool=tool, calls=calls + 1, shape=merged(shape), at=at)

    async def shapes(self, project: ProjectId, tools: Sequence[str]) -> dict[str, SeenShape]:
        """As the contract has it."""
        return {tool: self._shelves.shapes[project, tool] for tool in tools if (project, tool) in self._shelves.shapes}

    async def forget_shapes(self, project: ProjectId | None, toolkit: str | None = None) -> int:
        """As the contract has it."""
        begins = begins_of(toolkit)
        mine = [name for name in self._shelves.shapes if project in (None, name[0]) and name[1].startswith(begins)]
        for name in mine:
            del self._shelves.shapes[name]
        return len(mine)
