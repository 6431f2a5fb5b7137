"""Serving one MCP client on standard input and output: who it is, its default session, and the end of both."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator

from pydantic import TypeAdapter, ValidationError

from workbench.cli.asking import OWNER
from workbench.cli.mcp_sessions import OwnSession, own_session
from workbench.cli.outcome import EXIT_ENDED, EXIT_INTERRUPTED
from workbench.cli.printing import notice
from workbench.core.caretaker import Caretaker
from workbench.errors import InvalidRequest, NotFound, WorkbenchError
from workbench.images.additions import ChosenImage
from workbench.mcp.alone import Alone
from workbench.mcp.families import Families, chosen_families
from workbench.mcp.server import Context, make_server
from workbench.mcp.stdio import serve_stdio
from workbench.mcp.visit import Tooling, Visit
from workbench.model.ids import session_id
from workbench.settings import Settings
from workbench.wire.rest import UserName
from workbench.wiring import Service, open_service

_ENDS = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_ENDED, signal.SIGHUP: EXIT_ENDED}
# As a server does.
_CARE_EVERY_S = 60.0


def serve_client(settings: Settings, *, tools: str | None, name: str | None, user: str) -> int:
    """Until standard input ends, or a signal; the exit code.

    Raises:
        InvalidRequest: no such family of tools, or no name for a session or a user.
    """
    families = chosen_families(settings.mcp_tools if tools is None else tools)
    named = session_id(name) if name is not None else None
    _check_user(user)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="[workbench] %(message)s")
    _tell_of_a_missing_image(settings)
    return asyncio.run(_Client(settings, families, OwnSession.of(settings, named), user).to_end())


def _check_user(user: str) -> None:
    try:
        TypeAdapter(UserName).validate_python(user)
    except ValidationError:
        raise InvalidRequest("--user must be a name of 1 to 200 characters in one line") from None


def _tell_of_a_missing_image(settings: Settings) -> None:
    """Only said: it may be built while we run, and a client that lists the tools needs none."""
    try:
        ChosenImage(settings.data_dir, settings.images_dir).find()
    except NotFound as problem:
        notice(f"{problem.message}; until then every call is refused")


class _Client:
    """One client and the signals that come meanwhile."""

    def __init__(self, settings: Settings, families: Families, own: OwnSession, user: str) -> None:
        self._settings = settings
        self._families = families
        self._own = own
        self._user = user
        self._code: int | None = None

    async def to_end(self) -> int:
        """The exit code."""
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._serve(), name="the client")

        def end(code: int) -> None:
            # Once: a second signal must not disturb the tidying up of the first.
            if self._code is None:
                self._code = code
                task.cancel()

        for number, code in _ENDS.items():
            loop.add_signal_handler(number, end, code)
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return self._code or 0

    async def _serve(self) -> None:
        async with (
            open_service(self._settings, os.environ) as service,
            service.answering_beside(),
            own_session(self._own, service.workbench()),
            _cared_for(service.caretaker),
            _alone(service) as around,
        ):

            async def receive(_: Context) -> Visit:
                return Visit(
                    bench=service.workbench(),
                    around=around,
                    default_session=self._own.id,
                    families=self._families,
                    tooling=Tooling(router=service.router, may_proxy=True),
                    user=self._user,
                )

            await serve_stdio(make_server(receive))


@contextlib.asynccontextmanager
async def _alone(service: Service) -> AsyncIterator[Alone]:
    around = Alone(service.access, OWNER)
    try:
        yield around
    finally:
        await around.aclose()


@contextlib.asynccontextmanager
async def _cared_for(caretaker: Caretaker) -> AsyncIterator[None]:
    """Idle sandboxes stand still and end as under a server; without one there is nobody else to see to it."""
    task = asyncio.create_task(_care(caretaker), name="caretaker")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _care(caretaker: Caretaker) -> None:
    while True:
        await asyncio.sleep(_CARE_EVERY_S)
        # The next round tries again.
        with contextlib.suppress(WorkbenchError):
            await caretaker.look()
