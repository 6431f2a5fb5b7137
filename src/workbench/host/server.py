"""The host's socket: frames in, frames out, many requests at once on one connection. Decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct

from workbench import __version__
from workbench.data_folder import DataFolder, RunFolder, reach, release
from workbench.errors import HostIncompatible, InvalidRequest, WorkbenchError
from workbench.host.calls.clients import answer_client
from workbench.host.service import HostService
from workbench.wire import calls
from workbench.wire import host as wire

_log = logging.getLogger(__name__)
_HELLO_TIMEOUT_S = 10.0
# Each is a task; a server that follows hundreds of sessions over one connection stays well below it.
_MAX_IN_FLIGHT = 5000


class HostServer:
    """Listens for one service. `leave` is the host's, and set when a client asks for it."""

    def __init__(
        self,
        service: HostService,
        data: DataFolder,
        run: RunFolder,
        leave: asyncio.Event,
        version: str = __version__,
    ) -> None:
        self._service = service
        self._data = data
        self._run = run
        self._version = version
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._leave = leave
        self.hand_over = asyncio.Event()
        """set when another host should become the active one"""

    async def open(self) -> None:
        """Listen, then become the one that clients find."""
        name = reach(self._run.socket)
        try:
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._accept, name)
            finally:
                os.umask(before)
        finally:
            release(name)
        fresh = self._data.path / f".{self._run.host}.sock"
        fresh.symlink_to(self._run.socket.relative_to(self._data.path))
        # A rename replaces a dead host's link in one step.
        fresh.rename(self._data.socket)

    def step_aside(self) -> None:
        """Stay reachable under our own name, and leave the common one to the next host."""
        with contextlib.suppress(OSError):
            if self._data.socket.readlink() == self._run.socket.relative_to(self._data.path):
                self._data.socket.unlink()

    async def close(self) -> None:
        """Stop listening and end every connection."""
        self.step_aside()
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            _only_owner(writer)
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
            pass
        except WorkbenchError as problem:
            _log.warning("a connection was refused: %s", problem.message)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HELLO_TIMEOUT_S):
            first = wire.read_asked(await _read(reader))
        if not isinstance(first.request, wire.Hello):
            raise HostIncompatible("the first request was not a hello")
        greeting = wire.HelloAnswer(
            protocol=wire.PROTOCOL, version=self._version, host=self._run.host, draining=self._service.draining
        )
        _write(writer, wire.Answered(number=first.number, answer=greeting))
        in_flight: set[asyncio.Task[None]] = set()
        client = object()
        try:
            while True:
                body = await _read(reader)
                if len(in_flight) >= _MAX_IN_FLIGHT:
                    # Not read on until there is room: whoever asks too much waits in the socket.
                    await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._answer(body, writer, client))
                in_flight.add(task)
                task.add_done_callback(in_flight.discard)
        finally:
            # The client is gone. What it waited for is not wanted any more; what it started lives on.
            for task in in_flight:
                task.cancel()
            if in_flight:
                await asyncio.wait(in_flight)
            self._service.calls.left(client)

    async def _answer(self, body: bytes, writer: asyncio.StreamWriter, client: object) -> None:
        number = wire.number_of(body)
        try:
            answer = await self._dispatch(wire.read_asked(body).request, client)
        except WorkbenchError as problem:
            answer = wire.Problem(code=problem.code, message=problem.message, context=problem.context)
        except Exception:  # noqa: BLE001
            # A bug of ours must reach the client as ours, and never end the host.
            _log.exception("request %d failed", number)
            answer = wire.Problem(code="host_error", message="the host failed; its log has the reason", context={})
        try:
            _write(writer, wire.Answered(number=number, answer=answer))
        except (UnicodeEncodeError, OverflowError):
            # A guest's word, or number, that cannot be sent.
            unsayable = wire.Problem(code="host_error", message="the answer cannot be put into words", context={})
            _write(writer, wire.Answered(number=number, answer=unsayable))
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def _dispatch(self, request: wire.AnyRequest, client: object) -> wire.AnyAnswer:  # noqa: C901  one line a request
        service = self._service
        match request:
            case wire.Status():
                return service.status()
            case wire.CreateSandbox():
                return await service.create(request)
            case wire.DescribeSandbox():
                return service.describe(request)
            case wire.ListSandboxes():
                return service.list_all()
            case wire.CloseSandbox():
                return await service.close(request)
            case wire.FreezeSandbox():
                return await service.freeze(request)
            case wire.ThawSandbox():
                return await service.thaw(request)
            case wire.ChangeTier():
                return await service.change_tier(request)
            case wire.MeasureSandbox():
                return await service.measure(request)
            case wire.StartProcess():
                return await service.start(request)
            case wire.WriteStdin():
                return await service.write_stdin(request)
            case wire.SignalProcess():
                return await service.signal(request)
            case wire.ReadOutput():
                return await service.read_output(request)
            case wire.WaitProcess():
                return await service.wait(request)
            case wire.ForgetProcess():
                return await service.forget(request)
            case wire.RefreshImage():
                return await service.refresh_image()
            case wire.Drain():
                self._drain()
                return wire.Done()
            case wire.Stop():
                self._leave.set()
                return wire.Done()
            case calls.TakeCalls() | calls.AnswerCall():
                return await answer_client(service.calls, client, request)
            case wire.Hello():
                raise InvalidRequest("hello was said already")
            case _:
                return await service.kernels.answer(request)

    def _drain(self) -> None:
        self._service.draining = True
        self.step_aside()
        self.hand_over.set()


async def _read(reader: asyncio.StreamReader) -> bytes:
    length = wire.frame_length(await reader.readexactly(4))
    return await reader.readexactly(length)


def _write(writer: asyncio.StreamWriter, message: wire.Answered) -> None:
    if not writer.is_closing():
        writer.write(wire.frame(message))


def _only_owner(writer: asyncio.StreamWriter) -> None:
    """BARRIER: whoever speaks here owns every sandbox; held by tests/security/test_host_socket.py."""
    raw = writer.get_extra_info("socket")
    credentials = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    if uid not in (0, os.geteuid()):
        raise InvalidRequest(f"uid {uid} may not use this host")
