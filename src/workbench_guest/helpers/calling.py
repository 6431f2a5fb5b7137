"""One call to the workbench over its socket: a connection, a request, an answer. What is asked is left to the helpers.

Nothing outlives a call, so threads, forks and snapshots of a kernel have nothing to share. Runs on Python 3.9 too.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

ADDRESS_VARIABLE = "WORKBENCH_CALLS"
DEFAULT_ADDRESS = "@workbench-calls"
# What either side reads into memory of one request or answer.
MOST_FRAME_BYTES = 8 * 1024 * 1024
CONNECT_TIMEOUT_S = 5.0
# The other side reads at once what it has accepted; this is for one that is stuck.
SEND_TIMEOUT_S = 30.0
# More than the other side takes for the slowest of its own calls, so that its word on a failure comes first.
ANSWER_TIMEOUT_S = 290.0
# Between two looks whether somebody was accepted and there is a place in the queue.
_QUEUE_PAUSE_S = 0.02
# Between two calls of who wants to tell that it takes long.
_LOOK_UP_S = 1.0
_LENGTH = struct.Struct(">I")
_CHUNK = 256 * 1024

# Codes that are given on this side; all others come with an answer.
NOT_CONNECTED, CUT_OFF, TIMED_OUT = "not_connected", "cut_off", "timed_out"
BAD_ANSWER, TOO_LARGE = "bad_answer", "too_large"

Answer = tuple[Any, str, str]

_MAYBE = "it may have been carried out"


class _Failed(Exception):
    """There is no answer. Says why, and with which code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def ask(
    operation: str,
    arguments: dict[str, Any],
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
    answer_timeout_s: float = ANSWER_TIMEOUT_S,
    while_waiting: Callable[[], None] | None = None,
) -> Answer:
    """Ask once for `operation`: `(result, error, code)`, the last two empty on success.

    `arguments` are known to fit into JSON. Never asks twice: a call that got no answer may have been carried out.
    Raises nothing for a call that fails; an interrupt passes through, and the connection is closed. `while_waiting` is
    called about once a second until there is an answer.
    """
    try:
        frame = _framed(json.dumps({"operation": operation, "arguments": arguments}, ensure_ascii=False).encode())
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            _connect(connection, connect_timeout_s)
            _send(connection, frame)
            if while_waiting is not None:
                _wait(connection, answer_timeout_s, while_waiting)
            return _understood(_receive(connection, answer_timeout_s))
    except _Failed as failure:
        return None, str(failure), failure.code
    except OSError as problem:
        return None, f"no connection to the workbench: {_why(problem)}", NOT_CONNECTED


def _framed(payload: bytes) -> bytes:
    if len(payload) > MOST_FRAME_BYTES:
        raise _Failed(
            TOO_LARGE,
            f"what is sent has {len(payload):,} bytes, and one call can carry {MOST_FRAME_BYTES:,}: "
            "put large data into a file, or send it in parts",
        )
    return _LENGTH.pack(len(payload)) + payload


def _address() -> str:
    told = os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    return "\0" + told[1:] if told.startswith("@") else told


def _connect(connection: socket.socket, timeout_s: float) -> None:
    """A full queue is no refusal: wait for a place in it."""
    connection.setblocking(False)
    address = _address()
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.connect(address)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                message = f"no connection to the workbench: it took no call within {timeout_s:g} s; try again later"
                raise _Failed(NOT_CONNECTED, message) from None
            time.sleep(_QUEUE_PAUSE_S)
        else:
            return


def _send(connection: socket.socket, frame: bytes) -> None:
    connection.settimeout(SEND_TIMEOUT_S)
    try:
        connection.sendall(frame)
    except OSError as problem:
        # One that closed early may have said why before.
        if problem.errno in (errno.EPIPE, errno.ECONNRESET):
            return
        raise _Failed(CUT_OFF, f"the call was cut off while it was sent: {_why(problem)}; {_MAYBE}") from problem


def _wait(connection: socket.socket, timeout_s: float, while_waiting: Callable[[], None]) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and not select.select([connection], [], [], _LOOK_UP_S)[0]:
        while_waiting()


def _receive(connection: socket.socket, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    (size,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size, deadline, timeout_s))
    if size > MOST_FRAME_BYTES:
        raise _Failed(
            TOO_LARGE, f"the answer has {size:,} bytes, and one call can carry {MOST_FRAME_BYTES:,}; {_MAYBE}"
        )
    return _exactly(connection, size, deadline, timeout_s)


def _exactly(connection: socket.socket, size: int, deadline: float, timeout_s: float) -> bytes:
    told = bytearray()
    while len(told) < size:
        left = deadline - time.monotonic()
        try:
            # Zero would mean not to wait at all, and to say so by another error.
            connection.settimeout(max(left, 0.001))
            piece = connection.recv(min(size - len(told), _CHUNK))
        except OSError as problem:
            if time.monotonic() >= deadline:
                raise _Failed(TIMED_OUT, f"no answer of the workbench within {timeout_s:g} s; {_MAYBE}") from None
            raise _Failed(CUT_OFF, f"the call was cut off: {_why(problem)}; {_MAYBE}") from problem
        if not piece:
            raise _Failed(CUT_OFF, f"the call was cut off before its answer was complete; {_MAYBE}")
        told += piece
        if left <= 0 and len(told) < size:
            raise _Failed(TIMED_OUT, f"no whole answer of the workbench within {timeout_s:g} s; {_MAYBE}")
    return bytes(told)


def _understood(payload: bytes) -> Answer:
    try:
        answer = json.loads(payload)
    except (ValueError, RecursionError) as problem:
        raise _Failed(BAD_ANSWER, f"the answer of the workbench is not JSON: {problem}; {_MAYBE}") from problem
    if not isinstance(answer, dict) or "result" not in answer:
        raise _Failed(BAD_ANSWER, f"the answer of the workbench has no result; {_MAYBE}")
    error, code = answer.get("error") or "", answer.get("code") or ""
    if code and not error:
        error = f"the workbench refused the call: {code}"
    return answer["result"], str(error), str(code)


def _why(problem: OSError) -> str:
    if problem.errno in (errno.ECONNREFUSED, errno.ENOENT):
        return "nobody answers in this sandbox"
    return problem.strerror or str(problem)
