"""Text out of a file of a session, by the helper that its code has: inside a sandbox, within its limits.

A session that has none at the moment does not get one for this: a throw-away one of the standard tier is made instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.host import SandboxHost, SandboxOrder
from workbench.core.errands import Errands, Shell, last_words
from workbench.core.mount_requests import DeleteFile, ExtractedText, ExtractText, OpenMountFile
from workbench.core.mounts import Mounts
from workbench.core.places import Places
from workbench.errors import Conflict, InvalidRequest, SandboxUnavailable, WorkbenchError
from workbench.model.execution import CommandResult
from workbench.model.ids import SessionId, new_sandbox_id
from workbench.model.mounts import INSIDE
from workbench.model.session import Session
from workbench.model.tier import STANDARD

# A helper of ours gives up before.
_LIMIT_S = 180.0
# For who reads several files at once; together with the limit it is less than helpers wait.
_TURN_S, _PAUSE_S = 50.0, 0.05
_MOST_BYTES = 16 * 1024 * 1024
_ASK = """
import json, sys
from workbench_helper import smart_file_extract
print(json.dumps(smart_file_extract(sys.argv[1], show_preview=False)))
"""


class Extraction:
    """One project's."""

    def __init__(self, host: SandboxHost, clock: Clock, places: Places, errands: Errands, mounts: Mounts) -> None:
        self._host = host
        self._clock = clock
        self._places = places
        self._errands = errands
        self._mounts = mounts

    async def run(self, request: ExtractText) -> ExtractedText:
        """The text of one file.

        Raises:
            NotFound: no such session or file.
            InvalidRequest: nothing can be read out of it; the message says why.
            SandboxUnavailable: no sandbox could be used for it.
            Conflict: it has no sandbox of its own, and others of its files are read all the time.
        """
        file = await self._mounts.describe_file(
            OpenMountFile(session=request.session, path=request.path, mount=request.mount)
        )
        session = await self._places.use(request.session)

        async def work(shell: Shell) -> CommandResult:
            path = shlex.quote(f"{INSIDE}/{file.path}")
            return await shell.run(f"PATH=$all python3 -c {shlex.quote(_ASK)} {path}", limit_s=_LIMIT_S)

        end = await (self._errands.run(request.session, work) if session.begun else self._thrown_away(session, work))
        if end.exit_code != 0:
            raise SandboxUnavailable(f"the helper that reads files failed: {last_words(end)[:200]}")
        text, error = _told(await self._whole(request.session, end))
        if error:
            raise InvalidRequest(f"{file.path}: {error}", {"path": file.path})
        return ExtractedText(path=file.path, text=text)

    async def _thrown_away(self, session: Session, work: Callable[[Shell], Awaitable[CommandResult]]) -> CommandResult:
        order = SandboxOrder(sandbox=new_sandbox_id(), tier=STANDARD, mount=session.mount)
        try:
            await self._make(order, session)
        except Conflict:
            if not session.spec.config.sandbox.enable:
                raise
            # It has got one meanwhile, which has its files.
            return await self._errands.run(session.spec.id, work)
        try:
            return await work(Shell(self._host, replace(session, sandbox=order.sandbox)))
        finally:
            with contextlib.suppress(WorkbenchError):
                await self._host.close_sandbox(order.sandbox)

    async def _make(self, order: SandboxOrder, session: Session) -> None:
        """Files are in one sandbox at a time: for a session that never has one of its own, it is the one in which
        another file is read, and its end is waited for.
        """
        waited_s = 0.0
        while True:
            try:
                await self._host.create_sandbox(order)
            except Conflict as conflict:
                if session.spec.config.sandbox.enable:
                    raise
                if waited_s >= _TURN_S:
                    raise Conflict(
                        f"other files of session {session.spec.id!r} were being read for {_TURN_S:.0f} s; ask again, "
                        "for fewer at once",
                        {"session": session.spec.id},
                    ) from conflict
            else:
                return
            await self._clock.pause(_PAUSE_S)
            waited_s += _PAUSE_S

    async def _whole(self, session: SessionId, end: CommandResult) -> str:
        """What was printed; of a long text the answer has head and tail, and the mount has all of it."""
        if end.stdout.file_path is None:
            return end.stdout.text
        path = end.stdout.file_path
        try:
            async with self._mounts.open(OpenMountFile(session=session, path=path)) as opened:
                if opened.file.size > _MOST_BYTES:
                    raise InvalidRequest(f"the text has {opened.file.size} bytes; at most {_MOST_BYTES} are told")
                whole = await asyncio.to_thread(os.pread, opened.descriptor, opened.file.size, 0)
                return whole.decode("utf-8", "replace")
        finally:
            with contextlib.suppress(WorkbenchError):
                await self._mounts.delete(DeleteFile(session=session, path=path))


def _told(printed: str) -> tuple[str, str]:
    # BARRIER: it was printed inside, by programs that the guest may have bent; held by
    # tests/helpers/test_extraction.py.
    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(printed)
        if isinstance(told, list) and len(told) == 2 and all(isinstance(one, str) for one in told):
            return told[0], told[1]
    raise SandboxUnavailable("the helper that reads files does not tell what it read")
