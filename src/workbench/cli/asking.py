"""One question to the workbench, or to who keeps the keys: in this process, as the owner of the data folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import click

from workbench.core.workbench import Workbench
from workbench.errors import WorkbenchError
from workbench.model.access import Caller
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId, project_id
from workbench.settings import Settings
from workbench.wiring import Service, open_service

T = TypeVar("T")

# Whoever can read the data folder needs no key.
OWNER = Caller()


def ask(settings: Settings, question: Callable[[Workbench], Awaitable[T]]) -> T:
    """One operation of the workbench."""
    return ask_service(settings, lambda service: question(service.workbench()))


def ask_service(settings: Settings, question: Callable[[Service], Awaitable[T]]) -> T:
    """One that concerns keys, projects or what was written down."""

    async def asked() -> T:
        async with open_service(settings, os.environ) as service:
            return await question(service)

    return asyncio.run(asked())


def ask_and_note(
    settings: Settings, action: str, session: SessionId, question: Callable[[Workbench], Awaitable[T]]
) -> T:
    """One operation that makes, changes or deletes a session, written down as the owner's."""

    async def asked(service: Service) -> T:
        async with noted(service, action, session):
            return await question(service.workbench())

    return ask_service(settings, asked)


@contextlib.asynccontextmanager
async def noted(service: Service, action: str, session: SessionId) -> AsyncIterator[None]:
    """Write down that the owner did it, and how it went."""
    try:
        yield
    except WorkbenchError as problem:
        with contextlib.suppress(WorkbenchError):
            await service.access.note(OWNER, action, session=session, outcome=problem.code)
        raise
    await service.access.note(OWNER, action, session=session)


def owner_of(project: ProjectId) -> Caller:
    """The owner, at work in a project."""
    return Caller(project=project)


def _checked_project(_context: click.Context, _parameter: click.Parameter, value: str) -> ProjectId:
    return project_id(value)


project_option = click.option(
    "--project",
    default=DEFAULT_PROJECT,
    show_default=True,
    callback=_checked_project,
    metavar="PROJECT",
    help="Whose; keys and sessions of one project do not exist for another.",
)
