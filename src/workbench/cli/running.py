"""What `exec` and `bash` share: the session they run in, and what signals and closed pipes mean meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from workbench.cli.asking import OWNER
from workbench.cli.outcome import EXIT_ENDED, EXIT_INTERRUPTED
from workbench.cli.printing import notice
from workbench.core.requests import CreateSession, DeleteSession, DescribeSession
from workbench.core.workbench import Workbench
from workbench.errors import Cancelled, Conflict, NotFound, WorkbenchError
from workbench.model.ids import SessionId, new_session_id, session_id
from workbench.model.records import Progress
from workbench.model.runtime import PYTHON
from workbench.model.tier import TIERS, tier_named
from workbench.settings import Settings
from workbench.wiring import Service, open_service

# Closing a sandbox takes milliseconds; removing what a guest made of its files can take longer.
_DELETE_S = 60.0
_STOP_S = 10.0

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Where to run: a session that stays, or one of its own."""

    name: str | None
    tier: str | None = None
    variables: tuple[str, ...] = ()
    cwd: str | None = None
    runtime: str | None = None

    def creation(self) -> CreateSession:
        """The request that makes it."""
        return CreateSession(
            session=session_id(self.name) if self.name is not None else new_session_id(),
            runtime=self.runtime or PYTHON,
            tier=tier_named(self.tier or "standard"),
            env=parsed_variables(self.variables),
            working_folder=self.cwd or "/home/user",
            eager=True,
        )


def parsed_variables(given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, several times."""
    env = {}
    for variable in given:
        name, equals, value = variable.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--env wants NAME=VALUE, not {variable!r}")
        env[name] = value
    return env


class Place:
    """A session to run in, and the way to stop what runs in it."""

    def __init__(self, bench: Workbench, session: SessionId, *, stays: bool) -> None:
        self.bench = bench
        self.session = session
        self.stays = stays
        self.stop: Callable[[], Awaitable[bool]] | None = None
        """set by who runs something; whether there was something to stop"""

    @property
    def name(self) -> str | None:
        """Of one that stays."""
        return self.session if self.stays else None

    async def stop_quietly(self) -> bool:
        """As far as it can be; whether it was."""
        if self.stop is None:
            return False
        try:
            async with asyncio.timeout(_STOP_S):
                return await self.stop()
        except (WorkbenchError, TimeoutError):
            return False


Job = Callable[[Place], Awaitable[int]]


def run_in_session(settings: Settings, wanted: Wanted, job: Job) -> int:
    """Run the job; the exit code."""
    return asyncio.run(_Run(settings, wanted, job).to_end())


class _Run:
    """One job and the signals that come while it runs."""

    def __init__(self, settings: Settings, wanted: Wanted, job: Job) -> None:
        self._settings = settings
        self._wanted = wanted
        self._job = job
        self._place: Place | None = None
        self._ended = False
        self._stopping: asyncio.Task[None] | None = None
        self._task: asyncio.Task[int]

    async def to_end(self) -> int:
        loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name="the command")
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_end)
        try:
            return await self._task
        except asyncio.CancelledError:
            return EXIT_ENDED if self._ended else EXIT_INTERRUPTED
        finally:
            if self._stopping is not None:
                self._stopping.cancel()
                await asyncio.wait([self._stopping])

    def _on_end(self) -> None:
        """Once: a second signal must not disturb the tidying up of the first."""
        if not self._ended:
            self._ended = True
            self._task.cancel()

    def _on_interrupt(self) -> None:
        if self._place is None or self._stopping is not None:
            self._task.cancel()
        else:
            self._stopping = asyncio.create_task(self._interrupt(self._place), name="interrupt")

    async def _interrupt(self, place: Place) -> None:
        if not await place.stop_quietly():
            # Nothing runs yet, or any more: it is the waiting or the printing that is to stop.
            self._task.cancel()

    async def _run(self) -> int:
        async with open_service(self._settings, os.environ) as service, service.answering_beside():
            bench = service.workbench()
            place = await self._open(service, bench)
            try:
                return await self._job(place)
            except BrokenPipeError:
                # `| head` has seen enough. As for any program, nobody to print for is a reason to end.
                await place.stop_quietly()
                return EXIT_ENDED
            except Cancelled as problem:
                if self._stopping is None:
                    raise
                notice(problem.message)
                return EXIT_INTERRUPTED
            except asyncio.CancelledError:
                await self._leave(place)
                raise
            finally:
                if not place.stays:
                    await _delete(bench, place.session)

    async def _open(self, service: Service, bench: Workbench) -> Place:
        request, stays = self._wanted.creation(), self._wanted.name is not None
        try:
            described = await bench.create_session(request)
            if stays:
                # Not one of its own: it is gone before anybody could ask who made it.
                await service.access.note(OWNER, "session.create", session=request.session)
            if described.warning:
                notice(described.warning)
        except Conflict as taken:
            if not stays:
                raise
            try:
                await self._check_existing(bench, request)
            except NotFound:
                # It cannot be made although it is not there: its files are those of its branches.
                raise taken from None
        self._place = Place(bench, request.session, stays=stays)
        return self._place

    async def _check_existing(self, bench: Workbench, request: CreateSession) -> None:
        """Options that make a session have no effect on one that is there, and that must not be silent."""
        spec = (await bench.describe_session(DescribeSession(session=request.session))).session.spec
        wanted = self._wanted
        if wanted.runtime is not None and bench.languages.named(wanted.runtime).name != spec.runtime:
            raise Conflict(
                f"session {spec.id} is one of {spec.runtime}, and a session keeps its language: choose another"
            )
        if wanted.tier is not None and spec.tier != request.tier:
            raise Conflict(f"session {spec.id} is {spec.tier.name}; `workbench sessions tier {spec.id} {wanted.tier}`")
        if wanted.variables and any(spec.env.get(name) != value for name, value in request.env.items()):
            raise Conflict(f"session {spec.id} was made with other variables; set them in the code, or make it anew")
        if wanted.cwd is not None and spec.working_folder != wanted.cwd:
            raise Conflict(f"session {spec.id} was made with the working folder {spec.working_folder}; use %cd instead")

    async def _leave(self, place: Place) -> None:
        if not place.stays or place.stop is None:
            return
        if self._ended:
            await place.stop_quietly()
        else:
            end = f"`workbench sessions interrupt {place.session}`"
            notice(f"no longer waiting; what still runs in session {place.session} goes on: {end} ends it")


async def _delete(bench: Workbench, session: SessionId) -> None:
    try:
        async with asyncio.timeout(_DELETE_S):
            await bench.delete_session(DeleteSession(session=session))
    except NotFound:
        pass
    except (WorkbenchError, TimeoutError) as problem:
        notice(f"session {session} could not be deleted ({problem}); `workbench sessions rm {session}` tries again")


tier_option = click.option("--tier", type=click.Choice(list(TIERS)), help="Size of the session; standard unless given.")
runtime_option = click.option(
    "--runtime", metavar="NAME", help="Language of a new session, such as node or r; python unless given."
)
env_option = click.option(
    "--env", "-e", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the session; repeatable."
)
session_option = click.option(
    "-s", "--session", "name", metavar="NAME", help="Run in this session; it is made if new, and stays."
)
timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=180.0, show_default=True, help="Time limit in seconds."
)
_PROGRESS = (
    click.option("--thought", default="", help="Why this is done; kept with it."),
    click.option("--step", default="", help="Where you are, in a word or two; shown on the session."),
    click.option("--metric", default="", help="How far, such as 10/100 emails."),
    click.option(
        "--idempotency-key", default="", metavar="KEY", help="The same again with the same KEY gives the kept answer."
    ),
)


def progress_options(command: F) -> F:
    """What an agent says about a cell, and by what it knows it again."""
    for option in reversed(_PROGRESS):
        command = option(command)
    return command


def check_idempotency(key: str, name: str | None) -> None:
    """Only in a session that stays is there an answer to keep."""
    if key and name is None:
        raise click.UsageError("--idempotency-key needs --session: without one nothing is kept")


def progress_from(thought: str, step: str, metric: str) -> Progress:
    """The options, as one value."""
    return Progress(thought=thought, current_step=step, current_step_metric=metric)


json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
