"""The door for notebooks: sockets of the host's that JupyterLab, a console or any jupyter_client may join.

It stands between them and the kernel, so that a stuck visitor stops nobody: what one does not take is dropped for that
visitor alone. It outlives the kernel's memories; each has a key of its own, which visitors never learn.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import zmq

from workbench.contracts.kernel import AttachPoint, Turn, Visit
from workbench.errors import Cancelled, InvalidRequest
from workbench.kernels import events
from workbench.kernels.audience import Audience
from workbench.kernels.channel import ZmqChannel, make_socket
from workbench.kernels.messages import Message, Signer, parse

# The ports of a connection file; with ipc they are the ends of file names.
_PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
_MOST_PATH = 107
# Answers that wait for one visitor; more are dropped for it.
_HIGH_WATER_MARK = 1000
# Whom an answer belongs to; the oldest are forgotten.
_MOST_KNOWN = 10_000
# With the reply in hand, for the idle that follows it, and the reverse.
_OTHER_HALF_S = 5.0
# Widgets' messages: the cell that runs may await one, and what is queued waits for that cell.
_OVERTAKING = ("comm_open", "comm_msg", "comm_close")
# Who may stop what comes in.
_WAKING = "a sandbox that is not awake"
_NO_SUBSHELLS = "this kernel has no subshells: cells of a session run one after the other"
_KEPT = "this kernel belongs to a workbench session, which keeps it; end it by `workbench sessions rm`"


_Take = Callable[[list[bytes], Message], None]


class Plugged(Protocol):
    """The kernel of the moment."""

    signer: Signer

    def pass_on(self, channel: str, frames: list[bytes]) -> None:
        """To the kernel."""

    def hold(self, yes: bool) -> None:
        """Give no more output for a moment, or again."""

    async def interrupt(self) -> None:
        """As the contract says."""


class _Request:
    """One message of a visitor's, until it is answered."""

    def __init__(self, channel: str, route: list[bytes], message: Message) -> None:
        self.channel = channel
        self.kind = message.kind
        self.route = route
        self.header = message.frames[2]
        self.passed = asyncio.Event()
        """it has been handed to the kernel, or never will be"""
        self.answered = asyncio.Event()
        self.idle = asyncio.Event()
        self.stops_on_error = False
        self.aborted = False
        """what its visitor asked before has failed"""


class Relay:
    """One per kernel that somebody attached to; `place` is a folder of the host's alone."""

    def __init__(self, context: zmq.Context[Any], place: Path, turn: Turn) -> None:
        self._signer = Signer(secrets.token_hex(32))
        self._turn = turn
        self.visit: Visit = lambda: None
        self._place = place
        self._kernel: Plugged | None = None
        self._known: OrderedDict[str, _Request] = OrderedDict()
        self._waiting: list[_Request] = []
        """cells that have not had their turn, in the order they came"""
        self._turns: set[asyncio.Task[None]] = set()
        place.mkdir(mode=0o700, exist_ok=True)
        self._channels: dict[str, ZmqChannel] = {}
        self._audience: Audience | None = None
        try:
            self._open(context)
        except BaseException:
            self.close()
            raise
        self.point = self._describe()

    def _open(self, context: zmq.Context[Any]) -> None:
        longest = f"{self._place}/door-{max(_PORTS.values())}"
        if len(longest.encode()) > _MOST_PATH:
            raise InvalidRequest(
                f"no socket can have a name as long as {longest}; choose a shorter WORKBENCH_DATA_DIR to attach"
            )
        takes: dict[str, Callable[[list[bytes]], None]] = {
            "shell": functools.partial(self._hear, "shell", self._on_shell),
            "control": functools.partial(self._hear, "control", self._on_control),
            "stdin": functools.partial(self._hear, "stdin", self._on_stdin),
            "hb": self._on_heartbeat,
        }
        for name, take in takes.items():
            socket = make_socket(context, zmq.ROUTER, LINGER=0, SNDHWM=_HIGH_WATER_MARK, ROUTER_HANDOVER=1)
            socket.bind(f"ipc://{self._place}/door-{_PORTS[name]}")
            self._channels[name] = ZmqChannel(socket, take)
        self._audience = Audience(context, f"ipc://{self._place}/door-{_PORTS['iopub']}", self._on_subscription)

    def _describe(self) -> AttachPoint:
        info: dict[str, str | int] = {
            "transport": "ipc",
            "ip": f"{self._place}/door",
            "key": self._signer.key,
            "signature_scheme": "hmac-sha256",
            "kernel_name": "workbench",
            **{f"{name}_port": port for name, port in _PORTS.items()},
        }
        path = self._place / "kernel.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(info, file, indent=2)
        return AttachPoint(connection_file=str(path), info=info)

    @property
    def _shown_to(self) -> Audience:
        assert self._audience is not None
        return self._audience

    # The kernel of the moment

    def plug(self, kernel: Plugged) -> None:
        """A new memory."""
        self._kernel = kernel
        self._shown_to.hold = kernel.hold
        self._tell_all("status", {"execution_state": "idle"})

    def unplug(self, kernel: Plugged) -> None:
        """The memory is gone; what visitors wait for will not come from it. Nothing happens if another is there."""
        if self._kernel is not kernel:
            return
        self._kernel = None
        for request in self._known.values():
            if request in self._waiting:
                continue
            if not request.answered.is_set() and request.kind.endswith("_request"):
                content = {"status": "error", "ename": "DeadKernel", "evalue": "the kernel ended", "traceback": []}
                self._reply(request, content)
                self._tell_all("status", {"execution_state": "idle"}, request.header)
            request.answered.set()
            request.idle.set()
        self._tell_all("status", {"execution_state": "restarting"})

    def knows(self, request: str) -> bool:
        """Whether a visitor asked that."""
        return request in self._known

    def publish(self, message: Message, topics: list[bytes]) -> None:
        """Let all visitors see what the kernel told."""
        self._shown_to.send([*topics, *self._resigned(message.frames, self._signer)])
        request = self._known.get(message.parent) if message.kind == "status" else None
        if request is not None and events.execution_state(message.content) == "idle":
            request.idle.set()

    def answer(self, channel: str, message: Message) -> None:
        """To the visitor that asked."""
        request = self._known.get(message.parent)
        if request is not None:
            if channel != "stdin":
                request.answered.set()
            if request.stops_on_error and message.kind == "execute_reply" and events.reply(message.content).failed:
                self._abort_behind(request)
            self._channels[channel].send([*request.route, *self._resigned(message.frames, self._signer)])

    def _abort_behind(self, failed: _Request) -> None:
        """As a kernel does with its own queue, where these would be: "run all" stops at the first error."""
        for request in self._waiting:
            request.aborted = request.aborted or request.route == failed.route

    @staticmethod
    def _resigned(frames: list[bytes], signer: Signer) -> list[bytes]:
        delimiter, _, *rest = frames
        return [delimiter, signer.signature(rest[:4]), *rest]

    # What visitors ask

    def _hear(self, channel: str, take: _Take, frames: list[bytes]) -> None:
        message = parse(frames)
        # BARRIER: whoever can reach the socket must also know the key; held by tests/kernel/test_attach.py.
        if message is None or not self._signer.signed_by_us(message):
            return
        route = frames[: len(frames) - len(message.frames)]
        awake = self.visit()
        if awake is None:
            take(route, message)
        else:
            # A channel keeps its order: what is behind this one waits in the socket.
            self._channels[channel].pause(_WAKING)
            self._later(self._take_awake(channel, awake, functools.partial(take, route, message)))

    async def _take_awake(
        self, channel: str, awake: AbstractAsyncContextManager[None], take: Callable[[], None]
    ) -> None:
        try:
            async with awake:
                take()
        finally:
            self._channels[channel].resume(_WAKING)

    def _request(self, channel: str, route: list[bytes], message: Message) -> _Request:
        request = _Request(channel, route, message)
        self._known[message.request] = request
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return request

    def _on_shell(self, route: list[bytes], message: Message) -> None:
        request = self._request("shell", route, message)
        before = [one for one in self._waiting if one.route == request.route]
        if message.kind == "shutdown_request":
            self._refuse(request, _KEPT)
        elif message.subshell:
            # The kernel would answer neither yes nor no, and the session would wait for ever.
            self._refuse(request, _NO_SUBSHELLS)
        elif message.kind == "execute_request":
            self._waiting.append(request)
            self._later(self._run(request, message))
        elif before and message.kind not in _OVERTAKING:
            self._later(self._pass_on_after(before[-1], request, message))
        else:
            self._pass_on(request, message)

    async def _pass_on_after(self, before: _Request, request: _Request, message: Message) -> None:
        """A channel keeps its order: what a visitor asked after a cell reaches the kernel after that cell."""
        await before.passed.wait()
        self._pass_on(request, message)

    async def _run(self, request: _Request, message: Message) -> None:
        """A cell of a visitor's waits for its turn like any other, and has no limit but an interrupt."""
        asked = _asked(message.content)
        request.stops_on_error = asked.stop_on_error and not asked.silent
        try:
            async with self._turn(asked.first_line()):
                if request.aborted:
                    self._abort(request)
                    return
                self._pass_on(request, message)
                self._has_passed(request)
                await _either(request.answered, request.idle)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_OTHER_HALF_S):
                        await request.answered.wait()
                        await request.idle.wait()
        except Cancelled:
            self._abort(request)
        finally:
            self._has_passed(request)

    def _has_passed(self, request: _Request) -> None:
        request.passed.set()
        if request in self._waiting:
            self._waiting.remove(request)

    def _abort(self, request: _Request) -> None:
        self._tell_all("status", {"execution_state": "busy"}, request.header)
        self._reply(request, {"status": "aborted"})
        self._tell_all("status", {"execution_state": "idle"}, request.header)

    def _on_control(self, route: list[bytes], message: Message) -> None:
        request = self._request("control", route, message)
        match message.kind:
            case "interrupt_request" if self._kernel is not None:
                self._later(self._interrupt(self._kernel.interrupt, request))
            case "shutdown_request":
                self._refuse(request, _KEPT)
            case "create_subshell_request" | "delete_subshell_request" | "list_subshell_request":
                self._refuse(request, _NO_SUBSHELLS)
            case _:
                self._pass_on(request, message)

    async def _interrupt(self, interrupt: Callable[[], Awaitable[None]], request: _Request) -> None:
        self._tell_all("status", {"execution_state": "busy"}, request.header)
        await interrupt()
        self._reply(request, {"status": "ok"})
        self._tell_all("status", {"execution_state": "idle"}, request.header)

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)

    def _refuse(self, request: _Request, reason: str) -> None:
        self._tell_all("status", {"execution_state": "busy"}, request.header)
        content = {"status": "error", "ename": "NotAllowed", "evalue": reason, "traceback": [], "restart": False}
        self._reply(request, content)
        self._tell_all("status", {"execution_state": "idle"}, request.header)

    def _on_stdin(self, _route: list[bytes], message: Message) -> None:
        if self._kernel is not None:
            self._kernel.pass_on("stdin", self._resigned(message.frames, self._kernel.signer))

    def _on_heartbeat(self, frames: list[bytes]) -> None:
        if self._kernel is not None:
            self._channels["hb"].send(frames)

    def _on_subscription(self, frames: list[bytes]) -> None:
        if frames[0][:1] == b"\x01":
            topic = frames[0][1:]
            _, message = self._signer.request("iopub_welcome", {"subscription": topic.decode("utf-8", "replace")})
            self._shown_to.send([topic, *message] if topic else message)

    def _pass_on(self, request: _Request, message: Message) -> None:
        if self._kernel is None:
            self._reply(request, {"status": "aborted"})
        else:
            self._kernel.pass_on(request.channel, self._resigned(message.frames, self._kernel.signer))

    def _reply(self, request: _Request, content: dict[str, Any]) -> None:
        kind = request.kind.replace("_request", "_reply")
        _, frames = self._signer.request(kind, content, request.header)
        request.answered.set()
        self._channels[request.channel].send([*request.route, *frames])

    def _tell_all(self, kind: str, content: dict[str, Any], parent: bytes = b"{}") -> None:
        _, frames = self._signer.request(kind, content, parent)
        self._shown_to.send([kind.encode(), *frames])

    def close(self) -> None:
        """Visitors find nobody any more. May be called twice."""
        for task in list(self._turns):
            task.cancel()
        for channel in self._channels.values():
            channel.close()
        if self._audience is not None:
            self._audience.close()


async def _either(*events_: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events_]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class _Asked(msgspec.Struct):
    """What we read of an execute request."""

    code: str = ""
    silent: bool = False
    stop_on_error: bool = True

    def first_line(self) -> str:
        lines = self.code.strip().splitlines()
        return lines[0][:200] if lines else ""


def _asked(content: bytes) -> _Asked:
    try:
        return msgspec.json.decode(content, type=_Asked)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Asked()
