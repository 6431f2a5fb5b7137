"""`asyncio.run` and `run_until_complete` where a loop runs: on a thread of their own, with a loop of their own."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import types
from collections.abc import Callable, Coroutine
from typing import Any

from workbench_guest.corrections.desk import desk, own_name

_RULE = "asyncio-run"
# For what was interrupted to come to its end.
_END_S = 2.0
_Run = Callable[..., Any]


def patch() -> None:
    """Both; elsewhere than in the agent's own code, and without a running loop, they are what they were."""
    module: Any = asyncio
    module.run = module.runners.run = own_name(_run_for(asyncio.run), asyncio.run)
    loop: Any = asyncio.BaseEventLoop
    loop.run_until_complete = own_name(_complete_for(loop.run_until_complete), loop.run_until_complete)


def _run_for(before: _Run) -> _Run:
    def run(main: Coroutine[Any, Any, Any], **kwargs: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001  who asks is the question
        if not asyncio.iscoroutine(main) or not _is_stuck(frame):
            return before(main, **kwargs)
        _note(frame, "asyncio.run in a running loop")
        return _on_a_thread(lambda task: before(task, **kwargs), main)

    return run


def _complete_for(before: _Run) -> _Run:
    def run_until_complete(self: Any, future: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001
        if not asyncio.iscoroutine(future) or not _is_stuck(frame):
            return before(self, future)
        _note(frame, "run_until_complete in a running loop")
        if self.is_running():
            return _on_a_thread(asyncio.runners.run, future)
        return _on_a_thread(lambda task: before(self, task), future)

    return run_until_complete


def _is_stuck(frame: types.FrameType) -> bool:
    """Whether the agent asks for what cannot be done where a loop runs."""
    if not desk.serves("runtime", frame):
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _note(frame: types.FrameType, written: str) -> None:
    desk.acted(_RULE, written, "a loop of its own", desk.line_of(frame.f_code.co_filename, frame.f_lineno))


def _on_a_thread(run: Callable[[Any], Any], main: Coroutine[Any, Any, Any]) -> Any:
    """Its result or its error, here. An interrupt cancels it, and is raised."""
    done: list[tuple[bool, Any]] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def followed() -> Any:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await main

    def work() -> None:
        try:
            done.append((True, run(followed())))
        except BaseException as problem:  # noqa: BLE001  told to who waits
            done.append((False, problem))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="asyncio.run", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        thread.join(_END_S)
        raise
    succeeded, result = done[0]
    if succeeded:
        return result
    raise result
