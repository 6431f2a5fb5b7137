"""One connection to one host: requests by number, answers as they come, errors of our own tree."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from workbench import __version__
from workbench.data_folder import reach, release
from workbench.errors import HostIncompatible, HostUnavailable, from_wire
from workbench.wire import host as wire
from workbench.wire.values import Value

CONNECT_TIMEOUT_S = 10.0
# Longer than any wait that a request may ask for.
_ANSWER_TIMEOUT_S = 150.0

A = TypeVar("A", bound=Value)


class HostConnection:
    """Owned by whoever opened it: `async with await HostConnection.open(path)`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[wire.AnyAnswer]] = {}
        self._listener: asyncio.Task[None] | None = None
        self.greeting: wire.HelloAnswer

    @classmethod
    async def open(cls, socket_path: Path, version: str = __version__) -> HostConnection:
        """Connect and say hello.

        Raises:
            HostUnavailable: nobody listens there, or nobody answers.
        """
        try:
            name = reach(socket_path)
        except OSError as problem:
            raise _nobody(socket_path, problem) from problem
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self = cls(*await asyncio.open_unix_connection(name))
        except (OSError, TimeoutError) as problem:
            raise _nobody(socket_path, problem) from problem
        finally:
            release(name)
        self._listener = asyncio.create_task(self._listen(), name="answers of the host")
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self.greeting = await self.ask(wire.Hello(protocol=wire.PROTOCOL, version=version), wire.HelloAnswer)
        except BaseException as problem:
            await self.aclose()
            if isinstance(problem, TimeoutError):
                raise HostUnavailable("the host does not answer; see `workbench host status`") from problem
            raise
        return self

    @property
    def alive(self) -> bool:
        """Whether, as far as is known, somebody still listens at the other end."""
        return self._listener is not None and not self._listener.done()

    async def ask(self, request: wire.AnyRequest, answer: type[A]) -> A:
        """One request.

        Raises:
            WorkbenchError: what the host raised, as its class of our tree.
            HostUnavailable: the host went away before it answered.
        """
        number = next(self._numbers)
        waiting: asyncio.Future[wire.AnyAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            if not self.alive:
                raise HostUnavailable("the host is gone; what it ran is told by `workbench host status`")
            self._writer.write(wire.frame(wire.Asked(number=number, request=request)))
            await self._writer.drain()
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                told = await waiting
        except (ConnectionError, TimeoutError) as problem:
            raise HostUnavailable(f"the host did not answer: {problem}") from problem
        finally:
            self._waiting.pop(number, None)
        if isinstance(told, wire.Problem):
            raise from_wire(told.code, told.message, told.context)
        if not isinstance(told, answer):
            raise HostIncompatible(f"the host answered {type(told).__name__} to {type(request).__name__}")
        return told

    async def _listen(self) -> None:
        try:
            while True:
                length = wire.frame_length(await self._reader.readexactly(4))
                answered = wire.read_answered(await self._reader.readexactly(length))
                waiting = self._waiting.get(answered.number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answered.answer)
        except (asyncio.IncompleteReadError, ConnectionError, HostIncompatible):
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(HostUnavailable("the host went away before it answered"))

    async def aclose(self) -> None:
        """May be called twice."""
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        self._writer.close()

    async def __aenter__(self) -> HostConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def nobody_listens(problem: HostUnavailable) -> bool:
    """Whether it means that there is no host at all, rather than one that does not answer."""
    return isinstance(problem.__cause__, FileNotFoundError | ConnectionRefusedError)


def _nobody(socket_path: Path, problem: BaseException) -> HostUnavailable:
    return HostUnavailable(f"no host listens at {socket_path}: {problem or 'no answer'}; start one by `make run`")
