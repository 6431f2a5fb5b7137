"""A session's kernel as one that Jupyter started: between the sockets of a connection file and those of the relay.

Both sides have a key of their own; what comes in is verified with the one, and goes out signed with the other.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import zmq

from workbench.errors import InvalidRequest
from workbench.kernels.channel import ZmqChannel, make_socket
from workbench.kernels.messages import Message, Signer, parse

_SCHEME = "hmac-sha256"
_ASKING = ("shell", "control", "stdin")
# Messages that wait for one client, and for us; the relay drops what we do not take.
_HIGH_WATER_MARK, _RELAYED_HIGH_WATER_MARK = 1000, 10_000
# Whom an answer belongs to; the oldest are forgotten.
_MOST_KNOWN = 10_000
_WELCOME_TIMEOUT_S = 30.0
# What was said last still leaves, if somebody is there to take it.
_LINGER_MS = 500


class _File(msgspec.Struct):
    """What we read of a connection file."""

    ip: str
    shell_port: int
    iopub_port: int
    stdin_port: int
    control_port: int
    hb_port: int
    key: str = ""
    transport: str = "tcp"
    signature_scheme: str = _SCHEME


@dataclass(frozen=True, slots=True)
class Endpoints:
    """One side's five addresses and its key; an empty key means that nothing is verified there."""

    addresses: Mapping[str, str]
    ports: Mapping[str, int]
    key: str

    @classmethod
    def from_info(cls, info: Mapping[str, str | int]) -> Endpoints:
        """Of what a connection file says.

        Raises:
            InvalidRequest: it says something else.
        """
        try:
            file = msgspec.convert(dict(info), _File)
        except msgspec.ValidationError as problem:
            raise InvalidRequest(f"this is no connection file: {problem}") from None
        if file.transport not in ("tcp", "ipc") or file.signature_scheme not in ("", _SCHEME):
            raise InvalidRequest(
                f"a connection file wants {file.transport} and {file.signature_scheme}; we have tcp, ipc and {_SCHEME}"
            )
        between = ":" if file.transport == "tcp" else "-"
        ports = {
            "shell": file.shell_port,
            "iopub": file.iopub_port,
            "stdin": file.stdin_port,
            "control": file.control_port,
            "hb": file.hb_port,
        }
        addresses = {name: f"{file.transport}://{file.ip}{between}{port}" for name, port in ports.items()}
        return cls(addresses, ports, file.key)

    @classmethod
    def from_file(cls, path: Path) -> Endpoints:
        """Of a connection file."""
        try:
            info = msgspec.json.decode(path.read_bytes(), type=dict[str, str | int])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise InvalidRequest(f"{path} cannot be read as a connection file: {problem}") from None
        return cls.from_info(info)


class Bridge:
    """Carries messages until a client asks for the end. `near` is what Jupyter's clients use, `far` is the relay's."""

    def __init__(self, near: Endpoints, far: Endpoints) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._near_end, self._far_end = near, far
        self._near_signer, self._far_signer = Signer(near.key), Signer(far.key)
        self._near: dict[str, ZmqChannel] = {}
        self._far: dict[str, ZmqChannel] = {}
        self._routes: OrderedDict[str, list[bytes]] = OrderedDict()
        """clients by what they asked"""
        self._welcome = asyncio.Event()
        self.asked_to_end = asyncio.Event()
        self.restarts = False
        """whether the end that was asked for is the first half of a restart"""

    async def open(self) -> None:
        """Join the relay, and only then let clients in: what is published for them is seen from the beginning.

        Raises:
            InvalidRequest: an address of the connection file is taken.
        """
        self._join()
        async with asyncio.timeout(_WELCOME_TIMEOUT_S):
            await self._welcome.wait()
        for name in (*_ASKING, "iopub", "hb"):
            self._bind(name)

    def _join(self) -> None:
        # The same on all channels: by it the relay finds where to ask for input.
        identity = b"bridge-" + secrets.token_hex(8).encode()
        for name in _ASKING:
            socket = make_socket(self._context, zmq.DEALER, LINGER=0)
            socket.setsockopt(zmq.ROUTING_ID, identity)
            socket.connect(self._far_end.addresses[name])
            self._far[name] = ZmqChannel(socket, functools.partial(self._answer, name))
        socket = make_socket(self._context, zmq.SUB, LINGER=0, RCVHWM=_RELAYED_HIGH_WATER_MARK)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(self._far_end.addresses["iopub"])
        self._far["iopub"] = ZmqChannel(socket, self._publish)

    def _bind(self, name: str) -> None:
        take = {"iopub": self._on_subscription, "hb": self._on_heartbeat}.get(name)
        kind = zmq.XPUB if name == "iopub" else zmq.ROUTER
        socket = make_socket(self._context, kind, SNDHWM=_HIGH_WATER_MARK)
        if kind == zmq.ROUTER:
            socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        else:
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        try:
            socket.bind(self._near_end.addresses[name])
        except zmq.ZMQError as problem:
            socket.close(linger=0)
            raise InvalidRequest(f"{self._near_end.addresses[name]} cannot be used: {problem}") from None
        self._near[name] = ZmqChannel(socket, take or functools.partial(self._ask, name))

    # From the relay

    def _answer(self, channel: str, frames: list[bytes]) -> None:
        message = self._verified(frames, self._far_signer)
        route = self._routes.get(message.parent) if message is not None else None
        if message is not None and route is not None and channel in self._near:
            self._near[channel].send([*route, *_resigned(message, self._near_signer)])

    def _publish(self, frames: list[bytes]) -> None:
        message = self._verified(frames, self._far_signer)
        if message is None:
            return
        if message.kind == "iopub_welcome":
            # Ours, and nobody else's.
            self._welcome.set()
        elif "iopub" in self._near:
            topics = frames[: len(frames) - len(message.frames)]
            self._near["iopub"].send([*topics, *_resigned(message, self._near_signer)])

    # From clients

    def _ask(self, channel: str, frames: list[bytes]) -> None:
        message = self._verified(frames, self._near_signer)
        if message is None or self.asked_to_end.is_set():
            return
        route = frames[: len(frames) - len(message.frames)]
        if channel != "stdin":
            self._routes[message.request] = route
            while len(self._routes) > _MOST_KNOWN:
                self._routes.popitem(last=False)
        if message.kind == "shutdown_request":
            self.restarts = _wants_restart(message.content)
            self._reply(channel, route, message, {"status": "ok", "restart": self.restarts})
            self.asked_to_end.set()
        elif message.kind == "connect_request":
            # Of all questions the one that only we can answer.
            ports = {f"{name}_port": port for name, port in self._near_end.ports.items()}
            self._reply(channel, route, message, {"status": "ok", **ports})
        else:
            self._far[channel].send(_resigned(message, self._far_signer))

    def _reply(self, channel: str, route: list[bytes], message: Message, content: dict[str, Any]) -> None:
        """In the kernel's place: the session keeps its kernel, and what ends is this bridge."""
        header, kind = message.frames[2], message.kind.replace("_request", "_reply")
        self._tell("status", {"execution_state": "busy"}, header)
        _, reply = self._near_signer.request(kind, content, header)
        self._near[channel].send([*route, *reply])
        if kind == "shutdown_reply":
            self._tell(kind, content, header)
        self._tell("status", {"execution_state": "idle"}, header)

    def _on_heartbeat(self, frames: list[bytes]) -> None:
        self._near["hb"].send(frames)

    def _on_subscription(self, frames: list[bytes]) -> None:
        if frames[0][:1] == b"\x01":
            topic = frames[0][1:]
            content = {"subscription": topic.decode("utf-8", "replace")}
            _, message = self._near_signer.request("iopub_welcome", content)
            self._near["iopub"].send([topic, *message] if topic else message)

    def _tell(self, kind: str, content: dict[str, Any], parent: bytes) -> None:
        _, frames = self._near_signer.request(kind, content, parent)
        self._near["iopub"].send([kind.encode(), *frames])

    @staticmethod
    def _verified(frames: list[bytes], signer: Signer) -> Message | None:
        message = parse(frames)
        # BARRIER: whoever can reach a port must also know the key; held by tests/cli/test_kernel.py.
        return message if message is not None and (not signer.key or signer.signed_by_us(message)) else None

    def interrupt(self) -> None:
        """What the kernel runs."""
        _, frames = self._far_signer.request("interrupt_request", {})
        self._far["control"].send(frames)

    async def aclose(self) -> None:
        """May be called at any time, once."""
        for channel in self._far.values():
            channel.close()
        for channel in self._near.values():
            channel.close(_LINGER_MS)
        await asyncio.to_thread(self._context.term)


def _resigned(message: Message, signer: Signer) -> list[bytes]:
    delimiter, _, *rest = message.frames
    return [delimiter, signer.signature(rest[:4]) if signer.key else b"", *rest]


def _wants_restart(content: bytes) -> bool:
    try:
        return msgspec.json.decode(content, type=dict[str, Any]).get("restart") is True
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
