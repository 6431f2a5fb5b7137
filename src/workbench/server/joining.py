"""Calls that are sent again while the first is still under way: both get the end of one.

Some clients send a call once more when they have heard nothing for a minute, or when their connection broke, and with
nothing by which the second could be told from a new one. What it asks for must not be done twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from workbench.model.access import Caller
from workbench.server.kept import Kept

T = TypeVar("T")


def mark_of(caller: Caller, operation: str, about: str, body: Any, chosen: str = "") -> str:
    """By which two calls are one: who asks, for what, where, and with which words. `chosen` is what a caller sent to
    tell calls apart.
    """
    said = [caller.project, caller.key, caller.session, operation, about, chosen, body]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Joining:
    """What is under way. Nothing is remembered of what has ended: the same call is a new one then."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def start(self, mark: str, work: Callable[[], Coroutine[Any, Any, T]], what: str) -> asyncio.Task[T]:
        """Do it, whoever waits for it; or what the first of the same mark does."""
        # BARRIER: a call that its client has sent twice would be carried out twice; held by
        # tests/composio/tools/test_joining.py.
        task: asyncio.Task[T] | None = self._tasks.get(mark)
        if task is None:
            task = self._kept.start(work(), what)
            self._tasks[mark] = task
            task.add_done_callback(lambda _: self._tasks.pop(mark, None))
        return task
