"""The Jupyter protocol for a kernel that does one thing at a time: signed messages on five sockets, nothing dropped."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import zmq

_DELIMITER = b"<IDS|MSG>"
_VERSION = "5.4"
_PARTS = 4
# Messages that libzmq holds for who listens; each is at most a piece.
_HIGH_WATER_MARK = 32
_LINGER_MS = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants."""

    kind: str
    content: dict[str, Any]
    header: dict[str, Any] = field(default_factory=dict)
    route: list[bytes] = field(default_factory=list)


class Wire:
    """Owns its sockets."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self._key = str(connection["key"]).encode()
        self._session = uuid.uuid4().hex
        context = zmq.Context()
        kinds = {
            "shell": zmq.ROUTER,
            "control": zmq.ROUTER,
            "stdin": zmq.ROUTER,
            "iopub": zmq.XPUB,
            "hb": zmq.ROUTER,
        }
        self._sockets: dict[str, zmq.Socket[bytes]] = {}
        between = "-" if connection["transport"] == "ipc" else ":"
        for name, kind in kinds.items():
            made = context.socket(kind)
            made.linger = _LINGER_MS
            if kind == zmq.ROUTER:
                made.setsockopt(zmq.ROUTER_HANDOVER, 1)
            else:
                # Stock drops output when its reader is slow; here whoever prints waits.
                made.setsockopt(zmq.XPUB_NODROP, 1)
                made.sndhwm = _HIGH_WATER_MARK
            made.bind(f"{connection['transport']}://{connection['ip']}{between}{connection[f'{name}_port']}")
            self._sockets[name] = made
        self._poller = zmq.Poller()
        for made in self._sockets.values():
            self._poller.register(made, zmq.POLLIN)

    def watch(self, descriptor: int) -> None:
        """Wait for this as well."""
        self._poller.register(descriptor, zmq.POLLIN)

    def forget(self, descriptor: int) -> None:
        """Do not any more."""
        self._poller.unregister(descriptor)

    def wait(self, within_ms: int | None) -> set[str | int]:
        """Names of channels and descriptors that have something; heartbeats and subscriptions are dealt with."""
        names = {id(made): name for name, made in self._sockets.items()}
        ready: set[str | int] = set()
        for who, _ in self._poller.poll(within_ms):
            name = names.get(id(who))
            if name == "hb":
                self._sockets["hb"].send_multipart(self._sockets["hb"].recv_multipart())
            elif name == "iopub":
                self._sockets["iopub"].recv()
            else:
                ready.add(name if name is not None else int(who))
        return ready

    def receive(self, channel: str) -> Request | None:
        """The next request, if it is signed as it should be."""
        frames = self._sockets[channel].recv_multipart()
        try:
            at = frames.index(_DELIMITER)
            signature, *parts = frames[at + 1 : at + 2 + _PARTS]
            if not hmac.compare_digest(signature, self._signature(parts)):
                return None
            header, _, _, content = (json.loads(part) for part in parts)
            return Request(str(header["msg_type"]), content, header, frames[:at])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def publish(self, kind: str, content: dict[str, Any], parent: dict[str, Any]) -> None:
        """To everybody; waits until it is taken."""
        self._send("iopub", [kind.encode()], kind, content, parent, {})

    def answer(
        self, channel: str, request: Request, content: dict[str, Any], metadata: dict[str, Any] | None = None
    ) -> None:
        """To who asked."""
        kind = request.kind.removesuffix("_request") + "_reply"
        self._send(channel, request.route, kind, content, request.header, metadata or {})

    def _send(
        self,
        channel: str,
        route: list[bytes],
        kind: str,
        content: dict[str, Any],
        parent: dict[str, Any],
        metadata: dict[str, Any],
    ) -> None:
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self._session,
            "username": "kernel",
            "date": datetime.datetime.now(datetime.UTC).isoformat(),
            "msg_type": kind,
            "version": _VERSION,
        }
        parts = [json.dumps(part).encode() for part in (header, parent, metadata, content)]
        self._sockets[channel].send_multipart([*route, _DELIMITER, self._signature(parts), *parts])

    def _signature(self, parts: list[bytes]) -> bytes:
        if not self._key:
            return b""
        return hmac.new(self._key, b"".join(parts), hashlib.sha256).hexdigest().encode()

    def close(self) -> None:
        """What was sent still leaves."""
        for made in self._sockets.values():
            made.close()
