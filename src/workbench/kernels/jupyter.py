"""A Jupyter kernel as the contract has it: one conversation over the sockets that were passed into the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import zmq

from workbench.contracts.engine import Process
from workbench.contracts.kernel import (
    AttachPoint,
    Began,
    Carried,
    Finished,
    KernelEvent,
    KernelGone,
    Names,
    SnapshotAnswer,
    Turn,
    Visit,
)
from workbench.errors import KernelUnavailable
from workbench.kernels import events
from workbench.kernels.channel import ZmqChannel, make_socket
from workbench.kernels.last_words import LastWords
from workbench.kernels.messages import Message, Signer, parse
from workbench.kernels.program_words import ProgramWords
from workbench.kernels.relay import Relay
from workbench.model.execution import Cell, Piece, PieceKind, Variable
from workbench.model.process import ProcessExit
from workbench.model.runtime import FORKED, Runtime

# A cell is over when the kernel has answered and has said that it is idle; one of the two may be missing.
_IDLE_TIMEOUT_S = 10.0
_REPLY_TIMEOUT_S = 2.0
_VARIABLES_TIMEOUT_S = 10.0
_SNAPSHOT_TIMEOUT_S = 10.0
_UNPACK_TIMEOUT_S = 120.0
# What a dead kernel sent is in the socket; that all has come is known by silence, or by this.
_QUIET_TIMEOUT_S = 5.0
# A program that has answered and is not heard on iopub had no subscriber yet when it said that it is busy.
_NUDGE_S = 0.05
_LOOK_S = 0.002
_END_TIMEOUT_S = 5.0
# A reader that falls this far behind stops the kernel's output, not ours.
_MOST_PENDING_BYTES = 32 * 1024 * 1024
# Printed between two cells, for the next one to tell.
_MOST_STRAY_PIECES, _MOST_STRAY_CHARACTERS = 1000, 1024 * 1024
# BARRIER: the most that a guest can make libzmq hold for us is the product of the two; held by
# tests/host/test_hostile_kernels.py. A kernel of ours sends pieces of 256 KiB, and nothing above 48 MiB.
_MOST_MESSAGE_BYTES, _HIGH_WATER_MARK = 64 * 1024 * 1024, 16
# Who may stop the output.
_READER, _VISITORS = "the reader of a cell", "visitors"
# The same on all channels: by it the kernel finds where to ask for input.
_IDENTITY = b"workbench"
# By which the kernel knows a cell whose corrections are told.
_SERVED = b'{"workbench": {}}'


class Sockets:
    """Our ends of a kernel's channels. `short` names its folder on this host in few bytes."""

    def __init__(self, context: zmq.Context[Any], short: str, place: Path) -> None:
        self.context = context
        self._short = short
        self.place = place

    def connect(self, channel: str, kind: int, identity: bytes = b"") -> zmq.Socket[bytes]:
        """A socket that speaks to one of them."""
        socket = make_socket(self.context, kind, LINGER=0, MAXMSGSIZE=_MOST_MESSAGE_BYTES, RCVHWM=_HIGH_WATER_MARK)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        else:
            socket.setsockopt(zmq.ROUTING_ID, identity)
        socket.connect(f"ipc://{self._short}/{channel}")
        return socket

    def remove(self) -> None:
        """Of the folder with them."""
        shutil.rmtree(self.place, ignore_errors=True)


class _Run:
    """What happens to one request, in order, for one reader."""

    def __init__(self, request: str) -> None:
        self.request = request
        self.events: deque[KernelEvent] = deque()
        self.pending_bytes = 0
        self.began = False
        self.reply: Message | None = None
        self.answered_at = 0.0
        self.idle_at = 0.0
        self.given_up = False
        """the other half of its end has not come, nor anything else, for as long as it may take"""
        self.changed = asyncio.Event()

    def add(self, event: KernelEvent, size: int = 0) -> None:
        self.events.append(event)
        self.pending_bytes += size
        self.changed.set()


class JupyterKernel:
    """One memory. Made by the launcher, owned by the host."""

    def __init__(
        self,
        process: Process,
        sockets: Sockets,
        words: LastWords,
        key: str,
        open_door: Callable[[Turn], Relay],
        runtime: Runtime = FORKED,
    ) -> None:
        """Only the image's own interpreter knows requests that are about its memory."""
        self._process = process
        self._forked = runtime.forked
        self._by_message = runtime.interrupt_by_message
        self._sockets = sockets
        self._words = words
        self._open_door = open_door
        self.signer = Signer(key)
        self._run: _Run | None = None
        self._replies: dict[str, asyncio.Future[Message]] = {}
        self._stray: deque[Piece] = deque(maxlen=_MOST_STRAY_PIECES)
        self._stray_characters = 0
        self._heard = asyncio.Event()
        self._heard_at = 0.0
        self._received = 0
        self._gone: ProcessExit | None = None
        self._relay: Relay | None = None
        self._side: dict[str, ZmqChannel] = {}
        """what is seldom used: control and stdin"""
        self._closing: asyncio.Task[None] | None = None
        self._iopub = ZmqChannel(sockets.connect("iopub", zmq.SUB), self._on_iopub)
        self._shell = ZmqChannel(sockets.connect("shell", zmq.DEALER, identity=_IDENTITY), self._on_shell)
        words.listen(self._tell)
        self._following = asyncio.create_task(words.follow(), name="a kernel's last words")
        self._waiting = asyncio.create_task(self._wait_for_end(), name="the end of a kernel")

    async def ready(self) -> bool:
        """Whether it has come up; False if it ended instead."""
        heard = asyncio.create_task(self._heard.wait() if self._forked else self._nudge())
        try:
            await asyncio.wait([heard, self._waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            heard.cancel()
        if self._gone is not None or not self._heard.is_set():
            return False
        if isinstance(self._words, ProgramWords):
            self._begin_clean(self._words)
        return True

    async def _nudge(self) -> None:
        """Until it answers and is heard: what a program says before anybody listens goes nowhere."""
        with contextlib.suppress(KernelGone):
            while True:
                await self._ask("kernel_info_request", {}, None)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_NUDGE_S):
                        await self._heard.wait()
                        return

    def _begin_clean(self, words: ProgramWords) -> None:
        """What a program says of its own start is no cell's output; what its keeper says of it is."""
        words.catch_up()
        self.left_over()
        self._stray_characters = 0
        if said := words.told_so_far():
            self._tell(Piece(kind=PieceKind.STDERR, text=said))

    async def last_said(self) -> str:
        """What the interpreter wrote last, for who must explain why there is no kernel."""
        await asyncio.wait([self._following], timeout=self._words.quiet_s)
        printed = "".join(piece.text for piece in self._stray)
        lines = (printed + self._words.tail).strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    # What comes in

    def _on_iopub(self, frames: list[bytes]) -> None:
        self._received += 1
        message = parse(frames)
        if message is None:
            return
        self._heard_at = time.monotonic()
        self._heard.set()
        if self._relay is not None:
            self._relay.publish(message, frames[: len(frames) - len(message.frames)])
            if self._relay.knows(message.parent):
                self._note(message)
                return
        run = self._run
        ours = run is not None and message.parent == run.request
        if message.kind == "status":
            if run is not None and ours and events.execution_state(message.content) == "idle":
                run.idle_at = self._heard_at
                run.changed.set()
        elif message.kind == "execute_input":
            if run is not None and ours and not run.began:
                self._begin(run, events.execution_count(message.content))
        elif (piece := events.piece_of(message.kind, message.content)) is not None:
            self._note(message, piece)
            if run is not None and ours and not run.began:
                # What it printed has overtaken the message that it began.
                self._begin(run, 0)
            self._tell(piece, len(message.content))

    def _note(self, message: Message, piece: Piece | None = None) -> None:
        """Count what has come by the protocol, so that what has not is known when the process dies."""
        piece = piece or events.piece_of(message.kind, message.content)
        if piece is not None and message.kind == "stream":
            self._words.note(piece.kind.value, piece.text)

    def _begin(self, run: _Run, count: int) -> None:
        run.began = True
        run.add(Began(execution_count=count))
        while self._stray:
            run.add(self._stray.popleft())
        self._stray_characters = 0

    def _tell(self, piece: Piece, size: int = 0) -> None:
        run = self._run
        if run is not None and run.began:
            run.add(piece, size)
            if run.pending_bytes > _MOST_PENDING_BYTES:
                self._iopub.pause(_READER)
                self._words.pause()
        elif self._stray_characters < _MOST_STRAY_CHARACTERS:
            self._stray_characters += len(piece.text)
            self._stray.append(piece)

    def _on_shell(self, frames: list[bytes]) -> None:
        message = parse(frames)
        if message is None:
            return
        if self._run is not None and message.parent == self._run.request:
            self._run.reply = message
            self._run.answered_at = time.monotonic()
            self._run.changed.set()
        elif (waiting := self._replies.get(message.parent)) is not None and not waiting.done():
            waiting.set_result(message)
        elif self._relay is not None:
            self._relay.answer("shell", message)

    # What is asked

    async def execute(self, cell: Cell) -> AsyncIterator[KernelEvent]:
        """As the contract says."""
        assert self._run is None, "one cell at a time"
        self._raise_if_gone()
        content = {
            "code": cell.code,
            "silent": False,
            "store_history": cell.store_history,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        metadata = _SERVED if cell.corrected else b"{}"
        identity, frames = self.signer.request("execute_request", content, metadata=metadata)
        run = self._run = _Run(identity)
        caught_up = False
        try:
            self._shell.send(frames)
            while True:
                while run.events:
                    yield run.events.popleft()
                run.pending_bytes = 0
                self._iopub.resume(_READER)
                self._words.resume()
                if run.events:
                    continue
                if (finished := self._finished(run)) is not None:
                    if not caught_up:
                        # Once: what goes on printing in the background must not put off the end for ever.
                        caught_up = True
                        self._words.catch_up()
                        continue
                    if not run.began:
                        yield Began(execution_count=finished.execution_count)
                    yield finished
                    return
                self._raise_if_gone()
                run.changed.clear()
                await self._something(run)
        finally:
            self._run = None
            self._iopub.resume(_READER)
            self._words.resume()

    async def _something(self, run: _Run) -> None:
        """Until there is news; with half of an end in hand, not longer than the other half may take."""
        patience = None
        if run.reply is not None:
            # Output that is still coming in is a sign of life, however slowly it is read.
            patience = max(run.answered_at, self._heard_at) + _IDLE_TIMEOUT_S - time.monotonic()
        elif run.idle_at:
            patience = run.idle_at + _REPLY_TIMEOUT_S - time.monotonic()
        try:
            async with asyncio.timeout(patience):
                await run.changed.wait()
        except TimeoutError:
            # It may be we who did not get to look: what has come meanwhile counts.
            run.given_up = not (self._iopub.look() or self._shell.look())

    def _finished(self, run: _Run) -> Finished | None:
        if run.reply is not None and (run.idle_at or run.given_up):
            reply = events.reply(run.reply.content)
            names, folder, mended = events.receipt(run.reply.metadata)
            return Finished(
                ok=reply.status == "ok",
                execution_count=max(0, reply.execution_count or 0),
                names=names,
                working_folder=folder,
                mended=mended,
                output_incomplete=not run.idle_at,
            )
        if run.reply is None and run.idle_at and run.given_up:
            # An interrupt between the code's end and the answer: the cell is over, and nobody can say how.
            return Finished(ok=False, execution_count=0, names=Names(), working_folder="")
        return None

    async def variables(self, most: int) -> tuple[Variable, ...]:
        """As the contract says."""
        answer = await self._ask("workbench_variables_request", {"most": most}, _VARIABLES_TIMEOUT_S)
        return events.variables(answer, most)

    async def snapshot(self, name: str, most_bytes: int) -> SnapshotAnswer:
        """As the contract says."""
        content = {"snapshot": name, "most_bytes": most_bytes}
        return events.snapshot(await self._ask("workbench_snapshot_request", content, _SNAPSHOT_TIMEOUT_S))

    async def unpack(self, path: str, working_folder: str) -> Carried:
        """As the contract says."""
        content = {"path": path, "cwd": working_folder}
        return events.carried(await self._ask("workbench_unpack_request", content, _UNPACK_TIMEOUT_S))

    async def _ask(self, kind: str, content: dict[str, Any], timeout_s: float | None) -> bytes:
        """A message of our own; the content of its reply."""
        self._raise_if_gone()
        identity, frames = self.signer.request(kind, content)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[identity] = answer
        try:
            self._shell.send(frames)
            either: list[asyncio.Future[Any]] = [answer, self._waiting]
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result().content
            self._raise_if_gone()
            raise KernelUnavailable(f"the kernel has not answered for {timeout_s or 0:.0f} s")
        finally:
            del self._replies[identity]

    async def use_threads(self, count: int) -> None:
        """As the contract says; other programs than ours find out by themselves, or do not."""
        if self._forked:
            _, frames = self.signer.request("workbench_threads_request", {"threads": count})
            self._shell.send(frames)

    async def interrupt(self) -> None:
        """As the contract says."""
        # The signal first: what the kernel waits for ends by it, and what the message does may presume that.
        await self._process.signal(signal.SIGINT)
        if self._by_message and self._gone is None and self._closing is None:
            _, frames = self.signer.request("interrupt_request", {})
            self._beside("control").send(frames)

    async def attach(self, turn: Turn, visit: Visit | None = None) -> AttachPoint:
        """As the contract says."""
        if self._relay is None:
            relay = self._open_door(turn)
            relay.visit = visit or relay.visit
            self.plug_into(relay)
        assert self._relay is not None
        return self._relay.point

    def plug_into(self, relay: Relay) -> None:
        """Serve its visitors from now on."""
        for channel in ("control", "stdin"):
            self._beside(channel)
        self._relay = relay
        relay.plug(self)

    def _beside(self, channel: str) -> ZmqChannel:
        """One that most sessions never use: connected when it is needed first."""
        if channel not in self._side:
            socket = self._sockets.connect(channel, zmq.DEALER, identity=_IDENTITY)
            self._side[channel] = ZmqChannel(socket, functools.partial(self._on_side, channel))
        return self._side[channel]

    def hold(self, yes: bool) -> None:
        """Take no more output for a moment: a visitor is behind."""
        if yes:
            self._iopub.pause(_VISITORS)
        else:
            self._iopub.resume(_VISITORS)

    def _on_side(self, channel: str, frames: list[bytes]) -> None:
        message = parse(frames)
        if message is not None and self._relay is not None:
            self._relay.answer(channel, message)

    def pass_on(self, channel: str, frames: list[bytes]) -> None:
        """From a visitor to the kernel."""
        (self._shell if channel == "shell" else self._side[channel]).send(frames)

    # How it ends

    async def _wait_for_end(self) -> None:
        end = await self._process.wait()
        # What it sent before is on its way. It told how much that is; if that is not so, silence must do.
        ended_at = time.monotonic()
        while time.monotonic() < ended_at + _QUIET_TIMEOUT_S:
            self._iopub.resume(_READER, _VISITORS)
            if self._received == self._words.sent():
                break
            await asyncio.sleep(_LOOK_S)
            if time.monotonic() - max(ended_at, self._heard_at) >= self._words.quiet_s:
                break
        await asyncio.wait([self._following], timeout=self._words.quiet_s)
        if self._run is not None and not self._run.began and self._words.has_begun(self._run.request):
            self._begin(self._run, 0)
        for piece in self._words.take_rest():
            self._tell(piece)
        self._gone = end
        if self._relay is not None:
            self._relay.unplug(self)
        if self._run is not None:
            self._run.changed.set()

    def _raise_if_gone(self) -> None:
        if self._gone is not None:
            raise KernelGone(self._gone)

    async def wait(self) -> ProcessExit:
        """As the contract says."""
        await asyncio.shield(self._waiting)
        assert self._gone is not None
        return self._gone

    def left_over(self) -> tuple[Piece, ...]:
        """As the contract says."""
        pieces = tuple(self._stray)
        self._stray.clear()
        return pieces

    async def aclose(self) -> None:
        """As the contract says."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close a kernel")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        with contextlib.ExitStack() as freed:
            # Whatever comes between, each of these is freed, the last one first.
            freed.callback(self._sockets.remove)
            freed.callback(self._words.close)
            for channel in (self._shell, self._iopub, *self._side.values()):
                freed.callback(channel.close)
            await self._process.signal(signal.SIGKILL)
            await asyncio.wait([self._waiting], timeout=_END_TIMEOUT_S)
            self._waiting.cancel()
            self._following.cancel()
            await asyncio.wait([self._waiting, self._following])
