"""The kernel's own sockets against peers that do not behave; everything else in this folder is ZeroMQ's own library."""

from __future__ import annotations

import json
import socket
import struct

import pytest
import zmq
from jupyter_client.session import Session
from tests.runtimes.node.driving import KEY, Driven

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)


def connected(kernel: Driven, channel: str = "shell") -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(10)
    peer.connect(f"{kernel.connection['ip']}-{kernel.connection[channel + '_port']}")
    return peer


def ready(kind: bytes = b"DEALER") -> bytes:
    body = b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return b"\x04" + bytes([len(body)]) + body


def read_to_end(peer: socket.socket) -> bytes:
    told = b""
    try:
        while piece := peer.recv(65536):
            told += piece
    except ConnectionResetError:
        pass
    return told


WRONG = {
    "no greeting": b"GET / HTTP/1.1\r\n\r\n",
    "an old greeting": b"\xff" + bytes(8) + b"\x7f\x01" + bytes(53),
    "another mechanism": GREETING.replace(b"NULL" + bytes(1), b"PLAIN"),
    "a message before the handshake": GREETING + b"\x00\x05hello",
    "a command that is no handshake": GREETING + b"\x04\x06\x05HELLO",
    "a property that is cut off": GREETING + b"\x04\x0b\x05READY\x0bSock",
    "flags that do not exist": GREETING + ready() + b"\xf0\x01x",
    "a frame of a terabyte": GREETING + ready() + b"\x02" + struct.pack(">Q", 2**40),
    "a frame beyond all numbers": GREETING + ready() + b"\x02" + b"\xff" * 8,
    "a large command": GREETING + b"\x06" + struct.pack(">Q", 2**20),
    "a message in too many frames": GREETING + ready() + b"\x01\x00" * 2000,
}


@pytest.mark.parametrize("name", WRONG)
def test_who_does_not_speak_the_protocol_is_cut_off(shared: Driven, name: str) -> None:
    with connected(shared) as peer:
        peer.sendall(WRONG[name])
        read_to_end(peer)
    assert shared.run("1 + 1").result == "2"


def test_half_open_connections_hold_nothing_up(shared: Driven) -> None:
    for start in (b"", GREETING[:5], GREETING, GREETING + ready(), GREETING + ready() + b"\x01\x05he"):
        peer = connected(shared)
        peer.sendall(start)
        peer.shutdown(socket.SHUT_WR)
        assert shared.run("1 + 1").result == "2"
        peer.close()


def test_a_message_that_comes_byte_by_byte_is_understood(shared: Driven) -> None:
    session = Session(key=KEY)
    frames = session.serialize(session.msg("kernel_info_request", {}))
    data = GREETING + ready()
    for index, frame in enumerate(frames):
        more = 0 if index + 1 == len(frames) else 1
        data += (
            bytes([more, len(frame)]) if len(frame) < 256 else bytes([more | 2]) + struct.pack(">Q", len(frame))
        ) + frame
    with connected(shared) as peer:
        for one in data:
            peer.send(bytes([one]))
        told = b""
        while b"workbench-node" not in told:
            told += peer.recv(65536)


@pytest.mark.parametrize("key", [b"another key", b""])
def test_a_message_with_a_wrong_signature_is_not_answered(shared: Driven, key: bytes) -> None:
    context = zmq.Context()
    try:
        dealer = context.socket(zmq.DEALER)
        dealer.linger = 0
        dealer.connect(f"ipc://{shared.connection['ip']}-{shared.connection['shell_port']}")
        wrong, right = Session(key=key), Session(key=KEY)
        wrong.send(dealer, "execute_request", {"code": "globalThis.hacked = 1", "silent": False})
        dealer.send_multipart([b"<IDS|MSG>", b"no", b"message"])
        right.send(dealer, "kernel_info_request", {})
        assert dealer.poll(10_000)
        _, answer = right.recv(dealer, mode=0)
        assert answer is not None
        assert answer["msg_type"] == "kernel_info_reply"
        assert shared.run("typeof hacked").result == "'undefined'"
        dealer.close()
    finally:
        context.destroy(0)


def test_the_heartbeat_is_echoed_while_a_cell_is_busy(kernel: Driven) -> None:
    context = zmq.Context()
    try:
        beat = context.socket(zmq.REQ)
        beat.linger = 0
        beat.connect(f"ipc://{kernel.connection['ip']}-{kernel.connection['hb_port']}")
        kernel.client.execute("while (true);")
        beat.send(b"ping")
        assert beat.poll(10_000)
        assert beat.recv() == b"ping"
        beat.close()
    finally:
        context.destroy(0)


def test_a_peer_that_asks_for_signs_of_life_gets_them(shared: Driven) -> None:
    context = zmq.Context()
    try:
        dealer = context.socket(zmq.DEALER)
        dealer.linger = 0
        dealer.setsockopt(zmq.HEARTBEAT_IVL, 50)
        dealer.setsockopt(zmq.HEARTBEAT_TIMEOUT, 400)
        watch = dealer.get_monitor_socket()
        dealer.connect(f"ipc://{shared.connection['ip']}-{shared.connection['shell_port']}")
        events = []
        while watch.poll(1500):
            events.append(int.from_bytes(watch.recv_multipart()[0][:2], "little"))
        assert zmq.EVENT_HANDSHAKE_SUCCEEDED in events
        assert zmq.EVENT_DISCONNECTED not in events
        dealer.disable_monitor()
        dealer.close()
    finally:
        context.destroy(0)


def test_only_what_was_subscribed_to_comes(shared: Driven) -> None:
    context = zmq.Context()
    try:
        reader = context.socket(zmq.SUB)
        reader.linger = 0
        for topic in (b"stream", b"status"):
            reader.subscribe(topic)
        reader.unsubscribe(b"status")
        reader.connect(f"ipc://{shared.connection['ip']}-{shared.connection['iopub_port']}")
        # The subscription is on its way: there is no telling when it has arrived.
        for _ in range(100):
            shared.run("console.log('to all'); 1")
            if reader.poll(100):
                break
        topics = set()
        while reader.poll(300):
            frames = reader.recv_multipart()
            topics.add(frames[0])
            json.loads(frames[-1])
        assert topics == {b"stream"}
        reader.close()
    finally:
        context.destroy(0)
