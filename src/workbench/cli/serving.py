"""Running the server: in the foreground for people, or embedded for a program that brings its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import click

from workbench.cli.asking import OWNER
from workbench.cli.host_beside import ending_with_us, host_beside
from workbench.cli.late_beside import late_beside
from workbench.cli.outcome import EXIT_ENDED, EXIT_INTERRUPTED
from workbench.cli.printing import notice
from workbench.cli.welcome import welcome
from workbench.core import requests
from workbench.errors import NotFound
from workbench.images.additions import ChosenImage
from workbench.model.access import NewKey, Scope
from workbench.server.serve import run_server
from workbench.settings import Settings
from workbench.wiring import Service, open_service

_ENDS = (signal.SIGINT, signal.SIGTERM)
# As Ctrl-D at a terminal.
_GOODBYE = b"\x04"


def serve_in_foreground(settings: Settings, *, with_host: bool) -> int:
    """Until a signal; the exit code."""
    if with_host:
        _have_image(settings)
    running = _Foreground(settings, with_host=with_host)
    return _until_its_end(running, lambda: run_server(running.opened, settings, started=running.started))


def serve_embedded(settings: Settings, program: int | None = None) -> int:
    """Until standard input ends, or a signal, or the process of the pidfd `program` does; the exit code."""
    if settings.log_level == "info":
        # Whoever brings a server along in a notebook wants no line for each of its requests.
        settings = replace(settings, log_level="warning")
    _have_image(settings)
    running = _Embedded(settings, program)
    return _until_its_end(running, lambda: run_server(running.opened, settings, started=running.started))


def _have_image(settings: Settings) -> None:
    """Whoever installed us with pip has none yet, and need not know."""
    chosen = ChosenImage(settings.data_dir, settings.images_dir)
    try:
        chosen.find()
    except NotFound:
        if chosen.chosen:
            raise
        notice("building the image that sandboxes run on, once; a minute or two")
        chosen.build(notice)


class _Running:
    """What is open as long as the server runs, and what is done with signals before and after."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.ended_by: int | None = None
        """the signal that came before it served"""

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The server has its own handlers while it serves; before that a signal ends the start, and after that nothing
        disturbs the tidying up.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            self.ended_by = number
            task.cancel()

        for number in _ENDS:
            loop.add_signal_handler(number, end, number)
        # A terminal that is closed is an end like the others.
        loop.add_signal_handler(signal.SIGHUP, os.kill, os.getpid(), signal.SIGTERM)
        try:
            yield
        finally:
            for number in (*_ENDS, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def _undisturbed(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (*_ENDS, signal.SIGHUP):
            loop.add_signal_handler(number, lambda: None)


class _Foreground(_Running):
    """For people."""

    def __init__(self, settings: Settings, *, with_host: bool) -> None:
        super().__init__(settings)
        self._with_host = with_host
        self._ours = False
        self._new: NewKey | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Service]:
        """The service, with a host if one is wanted."""
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self._signals())
            if self._with_host:
                notice("starting the host, if none runs")
                self._ours = await stack.enter_async_context(host_beside(self._settings, os.environ))
            service = await stack.enter_async_context(open_service(self._settings, os.environ))
            self._new = await service.access.first_key()
            if self._with_host:
                await stack.enter_async_context(late_beside(self._settings))
            try:
                yield service
            finally:
                self._undisturbed()
                if self._ours:
                    notice("stopping the host, and what runs in it")

    def started(self, url: str) -> None:
        """Say where, and how."""
        click.echo(welcome(url, self._new, with_host=self._ours))


class _Embedded(_Running):
    """For programs."""

    def __init__(self, settings: Settings, program: int | None) -> None:
        super().__init__(settings)
        self._program = program
        self._key: NewKey | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Service]:
        """The service, with a host and a key that are there as long as this."""
        # Nobody else is there to end the host, should we be killed.
        environ = ending_with_us(os.environ)
        with self._signals(), _ended_with_program(self._program):
            async with (
                host_beside(self._settings, environ),
                open_service(self._settings, environ) as service,
                _key_meanwhile(service) as self._key,
            ):
                try:
                    yield service
                finally:
                    self._undisturbed()

    def started(self, url: str) -> None:
        """Say where, and with what key."""
        assert self._key is not None
        click.echo(json.dumps({"url": url, "key": self._key.presented}))


def _until_its_end(running: _Running, run: Callable[[], None]) -> int:
    try:
        run()
    except (asyncio.CancelledError, KeyboardInterrupt):
        return EXIT_INTERRUPTED if running.ended_by == signal.SIGINT else EXIT_ENDED
    return 0


@contextlib.asynccontextmanager
async def _key_meanwhile(service: Service) -> AsyncIterator[NewKey]:
    """A key that is good as long as this."""
    request = requests.CreateKey(by=OWNER, label="embedded server", scopes=frozenset(Scope))
    made = await service.access.create_key(request)
    try:
        yield made
    finally:
        await service.access.revoke_key(requests.RevokeKey(by=OWNER, key=made.key.id))


@contextlib.contextmanager
def _ended_with_program(program: int | None) -> Iterator[None]:
    """Whoever started us holds the other end of our standard input: we end with them, however they end.

    So do the children that they forked, which may outlive them. Hence they may say goodbye there, and a pidfd of
    theirs tells of their own end if they could not.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()

    def end() -> None:
        loop.remove_reader(stdin)
        if program is not None:
            loop.remove_reader(program)
        os.kill(os.getpid(), signal.SIGTERM)

    def look() -> None:
        said = os.read(stdin, 65_536)
        if not said or _GOODBYE in said:
            end()

    try:
        loop.add_reader(stdin, look)
    except OSError:
        raise click.UsageError("--embedded ends with its standard input, which must be a pipe") from None
    try:
        if program is not None:
            os.set_inheritable(program, False)
            loop.add_reader(program, end)
        yield
    finally:
        loop.remove_reader(stdin)
        if program is not None:
            loop.remove_reader(program)
