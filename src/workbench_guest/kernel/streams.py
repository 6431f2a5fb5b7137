"""What the kernel prints, on its way out: nothing is dropped, and whoever prints faster than it leaves waits.

Text of Python's own streams, and what libraries and child processes write to descriptors 1 and 2, in one order.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import json
import mmap
import os
import re
import select
import threading
from collections.abc import Callable, Iterator
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from zmq.eventloop.zmqstream import ZMQStream

from workbench_guest.kernel.flight_recorder import RING_BYTES, FlightRecorder, note_sent

# One message holds at most this much text: the reader can begin before the writer has ended.
_PIECE = 256 * 1024
# Output that has not left yet; a cell that prints more waits for it, and can be interrupted meanwhile.
_MOST_PENDING_BYTES = 8 * 1024 * 1024
_MOST_PENDING_MESSAGES = 2000
# A value's text or a picture comes in one message; the host takes none that is much larger.
_MOST_MESSAGE_BYTES = 48 * 1024 * 1024
# Messages that libzmq holds for the host; each is at most a piece.
HIGH_WATER_MARK = 32
# Every wait is made of these, so that an interrupt gets through.
_WAIT_S = 0.05
_LONE = re.compile("[\ud800-\udfff]")
# For what a forked child sent last to leave.
_CHILD_LINGER_MS = 3000
# A host that takes nothing for this long is gone.
_FLUSH_TIMEOUT_S = 60.0
# For what is being sent to be taken; a host that is that slow gets no snapshot.
_STILL_S = 5.0


class Publisher(IOPubThread):
    """The thread that sends. Started once its socket is bound."""

    def __init__(self, socket: Any, session: Any) -> None:
        self._pending_bytes = 0
        self._pending_messages = 0
        self._room = threading.Condition()
        self._sent = 0
        self.memory: mmap.mmap | None = None
        """shared with the host"""
        super().__init__(socket, pipe=True, session=session)

    def _count(self) -> None:
        """One more is about to leave; stock sends by two ways."""
        self._sent += 1
        if self.memory is not None:
            note_sent(self.memory, self._sent)

    def _really_send(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        if self._is_master_process():
            self._count()
        super()._really_send(msg, *args, **kwargs)

    def _send_welcome_message(self, subscription: str) -> None:
        self._count()
        super()._send_welcome_message(subscription)

    def _setup_pipe_in(self) -> None:
        """A way back for forked children, as stock has it, but on a name of this sandbox instead of a port."""
        self._pipe_uuid = os.urandom(16)
        self._pipe_name = f"ipc://@workbench-{os.urandom(8).hex()}"
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        pipe.bind(self._pipe_name)
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def _setup_pipe_out(self) -> tuple[Any, Any]:
        context: zmq.Context[Any] = zmq.Context()
        pipe = context.socket(zmq.PUSH)
        pipe.linger = _CHILD_LINGER_MS
        pipe.connect(self._pipe_name)
        return context, pipe

    def send_multipart(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """As stock, with a bound on what waits."""
        if threading.current_thread() is self.thread or not self.thread.is_alive():
            self._really_send(msg, *args, **kwargs)
            return
        size = sum(memoryview(part).nbytes for part in msg)
        if size > _MOST_MESSAGE_BYTES:
            msg = self._instead_of(msg, size)
            size = sum(memoryview(part).nbytes for part in msg)
        with self._room:
            while self._pending_bytes > _MOST_PENDING_BYTES or self._pending_messages > _MOST_PENDING_MESSAGES:
                self._room.wait(_WAIT_S)
                if not self.thread.is_alive():
                    return
            self._pending_bytes += size
            self._pending_messages += 1

        def send() -> None:
            try:
                self._really_send(msg, *args, **kwargs)
            finally:
                with self._room:
                    self._pending_bytes -= size
                    self._pending_messages -= 1
                    self._room.notify_all()

        self.schedule(send)

    def _instead_of(self, msg: Any, size: int) -> Any:
        """What is too large for one message is named; the host would not take it."""
        parent = json.loads(bytes(msg[msg.index(b"<IDS|MSG>") + 3]))
        text = f"[sandbox] an output of {size // 2**20} MiB was not shown: write what is that large to a file\n"
        told = self.session.msg("stream", {"name": "stderr", "text": text}, parent=parent)
        return [b"stream.stderr", *self.session.serialize(told)]

    def on_first_message(self, socket: Any, begin: Callable[[], None]) -> None:
        """Call `begin`, in this thread and once, when the socket has something. Before the thread is started."""
        descriptor = int(socket.getsockopt(zmq.FD))

        def look(*_: object) -> None:
            if socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
                self.io_loop.remove_handler(descriptor)
                begin()

        self.io_loop.add_handler(descriptor, look, self.io_loop.READ)

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """While the thread stands where it holds no lock.

        Raises:
            TimeoutError: it is busy sending what nobody takes.
        """
        stands, may_go = threading.Event(), threading.Event()

        def stand() -> None:
            stands.set()
            may_go.wait(_STILL_S)

        self.schedule(stand)
        try:
            if not stands.wait(_STILL_S):
                raise TimeoutError("output is still on its way")
            yield
        finally:
            may_go.set()

    def descriptors(self) -> set[int]:
        """Of the sockets by which threads of the agent's have reached it."""
        return {int(socket.getsockopt(zmq.FD)) for socket in self._event_pipes.values()}

    def watch(self, stream: Printed) -> None:
        """Have what is written to the stream's descriptor printed as it comes. Before the thread is started."""
        self.io_loop.add_handler(stream.captured, lambda *_: stream.take_in(), self.io_loop.READ)


class Printed(OutStream):
    """sys.stdout or sys.stderr; `captured` is the reading end of the pipe that descriptor 1 or 2 writes to."""

    def __init__(self, session: Any, publisher: Publisher, name: str, captured: int, recorder: FlightRecorder) -> None:
        super().__init__(session, publisher, name, watchfd=False)
        self._number = {"stdout": 1, "stderr": 2}[name]
        self._begin(captured, recorder)

    def _begin(self, captured: int, recorder: FlightRecorder) -> None:
        self.captured = captured
        self._recorder = recorder
        os.set_blocking(captured, False)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._texts: list[tuple[Any, str]] = []
        self._held = 0
        self._room = threading.Condition()
        self._taking_in = threading.Lock()
        self._ready = threading.local()

    def move(self, publisher: Publisher, captured: int, recorder: FlightRecorder) -> None:
        """To another life of the kernel. The same object: the agent's loggers hold on to it."""
        self.pub_thread = publisher
        self._master_pid = os.getpid()
        self._buffer_lock = threading.RLock()
        self._flush_pending = self._subprocess_flush_pending = False
        self._io_loop = publisher.io_loop
        self._begin(captured, recorder)

    def fileno(self) -> int:
        """A real descriptor: what is written there is printed here."""
        return self._number

    def write(self, string: str) -> int:
        """As stock, with a bound on what waits; by the descriptor in a forked child, where no thread sends."""
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string)}")
        if not self._is_master_process():
            _write_all(self._number, string.encode("utf-8", "surrogateescape"))
            return len(string)
        if self.pub_thread is None:
            raise ValueError("I/O operation on closed file")
        if self._taking_in.locked() or self._holds_something():
            # A child or a library has written before us, and comes before us.
            self.take_in()
        if len(string) <= _PIECE:
            self._print(string)
        else:
            for start in range(0, len(string), _PIECE):
                self._print(string[start : start + _PIECE])
        return len(string)

    def _print(self, text: str) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            # Half of a character pair: no message can carry it, and the whole message would be lost for it.
            text = _LONE.sub("\ufffd", text)
            data = text.encode()
        with self._buffer_lock:
            self._keep(data, text, self.parent_header)
        self._send_soon()

    def _keep(self, data: bytes, text: str, parent: Any) -> None:
        self._recorder.record(data)
        self._texts.append((parent, text))
        self._held += len(text)

    def _send_soon(self) -> None:
        if self._held >= _PIECE:
            self._wait_for_room()
        else:
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        """As stock, but in the order of what waits to be sent: by the clock alone it would come before that."""
        if self._flush_pending:
            return
        self._flush_pending = True
        publisher = self.pub_thread
        later = self._io_loop.call_later
        publisher.schedule(lambda: later(self.flush_interval, publisher.schedule, self._flush))

    def _wait_for_room(self) -> None:
        """Have a full buffer sent; with several on their way, wait until they have left."""
        if threading.current_thread() is self.pub_thread.thread:
            self._flush()
            return
        self.pub_thread.schedule(self._flush)
        with self._room:
            while self._held > RING_BYTES and self.pub_thread.thread.is_alive():
                self._room.wait(_WAIT_S)

    def _flush(self) -> None:
        """In the publisher's thread. Stock sends an empty buffer's nothing through two threads; most are empty."""
        self._flush_pending = False
        if self._texts:
            super()._flush()
            with self._room:
                self._room.notify_all()

    def _flush_buffers(self) -> Iterator[tuple[Any, str]]:
        with self._buffer_lock:
            texts, self._texts, self._held = self._texts, [], 0
        for _, same in itertools.groupby(texts, key=lambda one: id(one[0])):
            pieces = list(same)
            data = "".join(text for _, text in pieces)
            for start in range(0, len(data), _PIECE):
                yield pieces[0][0], data[start : start + _PIECE]

    def flush(self) -> None:
        """As stock, with what the descriptor has taken so far; nothing to send costs nothing."""
        if not self._is_master_process() or self.pub_thread is None:
            return
        if threading.current_thread() is self.pub_thread.thread or not self.pub_thread.thread.is_alive():
            self._flush()
        elif self._texts or self._taking_in.locked() or self._holds_something():
            self.pub_thread.schedule(self.take_in)
            self.pub_thread.schedule(self._flush)
            done = threading.Event()
            self.pub_thread.schedule(done.set)
            for _ in range(int(_FLUSH_TIMEOUT_S / _WAIT_S)):
                if done.wait(_WAIT_S) or not self.pub_thread.thread.is_alive():
                    return

    def _holds_something(self) -> bool:
        """Whether a child or a library has written what we have not taken in."""
        ready = getattr(self._ready, "poll", None)
        if ready is None:
            # One for each thread: one that several ask at once raises.
            ready = self._ready.poll = select.poll()
            ready.register(self.captured, select.POLLIN)
        return bool(ready.poll(0))

    def take_in(self) -> None:
        """Print what the pipe holds now."""
        taken = 0
        with self._taking_in:
            while taken < _MOST_PENDING_BYTES:
                # BARRIER: the process may end between a read and the record of it; held by
                # tests/kernel/test_floods.py, test_what_a_child_wrote_before_the_kernel_died_is_there.
                with self._buffer_lock:
                    data = self._recorder.take(self.captured)
                    if not data:
                        return
                    taken += len(data)
                    if text := self._decoder.decode(data):
                        # Nobody knows who wrote it: it belongs to the cell of the moment, whoever takes it in.
                        self._keep(text.encode(), text, self._parent_header_global)
                self._send_soon()


def _write_all(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]
