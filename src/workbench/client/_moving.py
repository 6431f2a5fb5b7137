"""Taking the steps of transfers to their end, sync and async."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar

import httpx2

from workbench.client import _file_requests
from workbench.client._requests import Request
from workbench.client._retries import Attempts
from workbench.client._sending import AsyncSender, Sender
from workbench.client._transfers import Call, Exchange, Pause, Steps
from workbench.errors import WorkbenchError
from workbench.threads import to_its_end
from workbench.wire import rest_files as rest

T = TypeVar("T")
Step = Call | Exchange | Pause


class MountOf:
    """A mount of a session, as transfers know it."""

    def __init__(self, sender: Sender | AsyncSender, session: str, mount: str) -> None:
        self._session = session
        self._mount = mount
        self.server = sender.target.url
        self._sender = sender

    def attempts(self, request: Request[object]) -> Attempts:
        """As for what is asked of the server."""
        return self._sender.attempts(request)

    def upload_link(self, path: str, size: int | None) -> Request[rest.UploadLink]:
        """By our own REST."""
        return _file_requests.upload_link(self._session, self._mount, path, size)

    def download_link(self, path: str) -> Request[rest.DownloadLink]:
        """By our own REST."""
        return _file_requests.download_link(self._session, self._mount, path)

    def fetched(self, url: str, path: str) -> Request[rest.File]:
        """By our own REST."""
        return _file_requests.fetch_file(self._session, self._mount, url, path)


class _Ended(Exception):
    """A generator's end: `StopIteration` itself cannot leave a thread."""

    def __init__(self, value: object) -> None:
        self.value = value


def move(sender: Sender, steps: Steps[T]) -> T:
    """Take all steps.

    Raises:
        WorkbenchError: the server refused, or cannot be reached.
    """
    answer: object = None
    problem: Exception | None = None
    try:
        while True:
            step = _next(steps, answer, problem)
            answer = problem = None
            try:
                answer = _take(sender, step)
            except (httpx2.TransportError, WorkbenchError) as failed:
                problem = failed
    except _Ended as end:
        value: T = end.value  # type: ignore[assignment]  # what the generator returned
        return value
    finally:
        steps.close()


async def amove(sender: AsyncSender, steps: Steps[T]) -> T:
    """As `move`; the generator runs in threads, as it may open and read files."""
    answer: object = None
    problem: Exception | None = None
    try:
        while True:
            step: Step = await to_its_end(_next, steps, answer, problem)
            answer = problem = None
            try:
                answer = await _atake(sender, step)
            except (httpx2.TransportError, WorkbenchError) as failed:
                problem = failed
    except _Ended as end:
        value: T = end.value  # type: ignore[assignment]  # what the generator returned
        return value
    finally:
        # It closes files, which may take as long as reading them.
        await to_its_end(steps.close)


def _next(steps: Steps[T], answer: object, problem: Exception | None) -> Step:
    try:
        return steps.send(answer) if problem is None else steps.throw(problem)
    except StopIteration as end:
        raise _Ended(end.value) from None


def _take(sender: Sender, step: Step) -> object:
    match step:
        case Call():
            return sender.send(step.request)
        case Exchange():
            return sender.links.exchange(step)
        case Pause():
            time.sleep(step.seconds)
            return None


async def _atake(sender: AsyncSender, step: Step) -> object:
    match step:
        case Call():
            return await sender.send(step.request)
        case Exchange():
            return await sender.links.exchange(step)
        case Pause():
            await asyncio.sleep(step.seconds)
            return None
