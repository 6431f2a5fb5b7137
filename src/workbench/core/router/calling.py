"""One call of a tool, from its name to its answer: which tool, with which arguments, as whom, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.storage import ToolMemory
from workbench.core.mounts import Mounts
from workbench.core.router import files, shapes
from workbench.core.router.accounts import Accounts, Standing
from workbench.core.router.approving import Considered
from workbench.core.router.catalogue import Catalogue, Entry
from workbench.core.router.checking import fitting
from workbench.errors import Denied, InvalidRequest, WorkbenchError
from workbench.model.connection import NOT_CONNECTED, Credential
from workbench.model.ids import ProjectId
from workbench.model.session import Session
from workbench.model.toolkit import LOCAL_PREFIX, Tool, ToolCall, Toolkit, ToolResult

# Of one tool: as long as code inside waits for it.
MOST_S = 280.0
_MOST_QUOTED = 100
_UNAUTHORIZED = 401
_BY_CLIENT = (
    "{slug} is a tool of the client's own, and is run there: the SDK that defined it calls its function by itself; "
    "this server has only its description"
)


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that can be made as it is: its tool is there, and the arguments fit."""

    entry: Entry
    call: ToolCall
    whose: tuple[str, ...] = ()
    """what the account is called that it is made with"""

    @property
    def considered(self) -> Considered:
        """For whoever approves it."""
        return Considered(self.call, self.entry.tool, self.whose)


class Calling:
    """Makes calls. Owns nothing."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        accounts: Accounts,
        memory: ToolMemory,
        clock: Clock,
        mounts_of: Callable[[ProjectId], Mounts],
    ) -> None:
        self._catalogue = catalogue
        self._accounts = accounts
        self._memory = memory
        self._clock = clock
        self._mounts_of = mounts_of

    async def ready(self, call: ToolCall, custom: tuple[Tool, ...] = ()) -> Ready:
        """The call, if it can be made.

        Raises:
            InvalidRequest: it is a tool of the client's own, or the arguments are not what it takes.
            NotConfigured: there is no such tool.
            Denied: the session may not use it, or its user has no account of the toolkit.
        """
        if call.slug.startswith(LOCAL_PREFIX) or any(tool.slug == call.slug for tool in custom):
            raise InvalidRequest(_BY_CLIENT.format(slug=call.slug[:_MOST_QUOTED]))
        entry = await self._catalogue.of(call.session.spec.project).find(call.slug, call.session.spec.config)
        fits = replace(call, arguments=fitting(entry.tool, call.arguments))
        # Before anybody is asked about a call that cannot be made.
        if not _needs_account(entry.toolkit, entry.tool):
            return Ready(entry, fits)
        standing = await self._connected(call.session, entry.toolkit)
        return Ready(entry, fits, standing.names_of(call.account))

    async def _connected(self, session: Session, toolkit: Toolkit) -> Standing:
        standing = await self._accounts.standing(session, toolkit)
        if not standing.reach.is_active:
            raise Denied(standing.reach.words, {"toolkit": toolkit.slug, "reason": NOT_CONNECTED})
        return standing

    async def carry_out(self, ready: Ready) -> ToolResult:
        """Make it, once.

        Raises:
            WorkbenchError: nothing was carried out.
        """
        entry, call = ready.entry, ready.call
        mounts = self._mounts_of(call.session.spec.project)
        if found := await files.named_in(call.arguments, call.session, mounts):
            call = replace(call, files=found)
        if _needs_account(entry.toolkit, entry.tool):
            credential = await self._accounts.credential_for(call.session, entry.toolkit, call.account)
            check_same(credential, ready.whose)
            call = replace(call, credential=credential)
        try:
            async with asyncio.timeout(MOST_S) as deadline:
                result = await self._run(entry, call)
        except TimeoutError:
            if not deadline.expired():
                raise  # a timeout inside a source is its defect, and no word on how long we waited
            words = f"{call.slug} took more than {MOST_S:.0f} s and was given up; it may have been carried out"
            return ToolResult(data={}, error=words)
        if not result.error:
            await self._remember(call, result.data)
        return await self._with_file(result, call.session, mounts)

    async def _run(self, entry: Entry, call: ToolCall) -> ToolResult:
        """With another credential, once, if the service says that this one is no good: then it has done nothing."""
        result = await entry.source.run(call)
        if result.http_status != _UNAUTHORIZED or call.credential is None:
            return result
        try:
            again = await self._accounts.renewed(call.session, entry.toolkit, call.credential)
        except WorkbenchError as problem:
            return replace(result, error=f"{result.error or 'the service refused the account'}. {problem.message}")
        return await entry.source.run(replace(call, credential=again))

    async def _remember(self, call: ToolCall, data: Any) -> None:
        """What the answer looks like. That it cannot be kept costs nobody the answer."""
        with contextlib.suppress(WorkbenchError):
            at = self._clock.now_iso()
            await self._memory.saw(call.session.spec.project, call.slug, at, lambda before: shapes.added(before, data))

    async def _with_file(self, result: ToolResult, session: Session, mounts: Mounts) -> ToolResult:
        if result.file is None:
            return result
        try:
            told = await files.kept(result.file, session, mounts, self._clock)
            more = [await files.kept(one, session, mounts, self._clock) for one in result.more_files]
        except WorkbenchError as problem:
            words = f"it was done, but the file that it gave could not be kept: {problem.message}"
            return replace(result, file=None, more_files=(), error=result.error or words)
        named = {"file": told, **({"files": [told, *more]} if more else {})}
        return replace(result, file=None, more_files=(), data={**result.data, **named})


def check_same(credential: Credential, whose: Sequence[str]) -> None:
    """BARRIER: what was considered, and maybe approved, for one account would be done with another that became the
    usual one in between; held by tests/unit/core/router/test_approving.py.

    Raises:
        Denied: it is another account.
    """
    if whose and credential.account not in whose:
        raise Denied("another account became the usual one just now; nothing was sent: make the call again")


def _needs_account(toolkit: Toolkit, tool: Tool) -> bool:
    return not (toolkit.no_auth or tool.no_auth)
