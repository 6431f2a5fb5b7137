"""Contexts: further kernels of a session, each with a language, a working folder and a memory of its own.

A context is a session of the same family, in the same sandbox and around the same files: whatever is done with a
session is done with a context by its name. It begins empty, before or after anything ran, and goes with its session.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from workbench.contracts.clock import Clock
from workbench.contracts.storage import SessionStore
from workbench.core import requests
from workbench.core.languages import Languages
from workbench.core.places import Places, with_sandbox
from workbench.core.sessions import Sessions, checked_branch, checked_folder
from workbench.errors import NotFound, WorkbenchError
from workbench.model.ids import SessionId, new_kernel_id
from workbench.model.session import Session, SessionDescription


class Contexts:
    """Of the sessions of one project."""

    def __init__(
        self, store: SessionStore, clock: Clock, places: Places, sessions: Sessions, languages: Languages
    ) -> None:
        self._store = store
        self._clock = clock
        self._places = places
        self._sessions = sessions
        self._languages = languages

    async def create(self, request: requests.CreateContext) -> SessionDescription:
        """With its kernel started, so that a language which is not on the machine is told; one that fails leaves
        nothing behind.
        """
        name = checked_branch(request.context)
        origin = await self._places.enter(request.session)
        if origin.context_of is not None:
            origin = await self._places.enter(origin.context_of)
        while True:
            context = self._sketch(origin, name, request)
            if await self._store.add_branch(context, origin):
                break
            origin = with_sandbox(await self._store.get(origin.spec.id))
        try:
            return await self._sessions.described(await self._places.ready(context))
        except BaseException:
            # Nobody was told of it; who asks again may use the same name.
            with contextlib.suppress(WorkbenchError):
                await self._sessions.end(context)
            raise

    def _sketch(self, origin: Session, name: SessionId, request: requests.CreateContext) -> Session:
        now = self._clock.now_iso()
        runtime = self._languages.named(request.runtime).name if request.runtime else origin.spec.runtime
        folder = checked_folder(request.working_folder) if request.working_folder else origin.spec.working_folder
        # What runs in each new memory of the session may be of another language, and of other variables.
        spec = replace(origin.spec, id=name, runtime=runtime, working_folder=folder, start_up="")
        return Session(
            spec=spec,
            created_at=now,
            used_at=now,
            mount=origin.mount,
            principal=origin.principal,
            context_of=origin.spec.id,
            kernel=new_kernel_id(),
            sandbox=origin.sandbox,
        )

    async def list(self, request: requests.ListContexts) -> tuple[SessionDescription, ...]:
        """As they are, without touching them."""
        session = await self._store.get(request.session)
        family = await self._store.family(session.mount)
        found = sorted((one for one in family if one.context_of == session.spec.id), key=lambda one: one.created_at)
        return tuple([await self._sessions.described(one) for one in found])

    async def restart(self, request: requests.RestartContext) -> SessionDescription:
        """A new, empty memory for it alone."""
        found = await self._one(request.session, request.context)
        return await self._sessions.restart(requests.RestartKernel(session=found.spec.id))

    async def remove(self, request: requests.RemoveContext) -> None:
        """End its kernel and drop its record and history; the others stay."""
        await self._sessions.end(await self._one(request.session, request.context))

    async def _one(self, session: SessionId, context: SessionId) -> Session:
        await self._store.get(session)
        with contextlib.suppress(NotFound):
            found = await self._store.get(context)
            if found.context_of == session:
                return found
        raise NotFound(f"session {session!r} has no context {context!r}", {"session": session, "context": context})
