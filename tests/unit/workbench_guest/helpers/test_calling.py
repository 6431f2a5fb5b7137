"""One call over a real socket, with everything that can go wrong on its other side."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workbench_guest.helpers.answering import PATIENCE_S, Behaviour, answer, answering, frame, in_turn, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest.helpers import calling, invoke_llm

MAYBE = "it may have been carried out"
SOURCE = Path(calling.__file__).parents[2]


def echo(connection: socket.socket, request: dict[str, Any]) -> None:
    """After a moment that differs from call to call, so that answers come in another order than calls."""
    time.sleep(random.random() / 20)
    connection.sendall(answer(request["arguments"]["query"]))


def in_pieces(connection: socket.socket, _request: dict[str, Any]) -> None:
    for byte in answer("in pieces"):
        connection.sendall(bytes([byte]))


def cut(payload: bytes) -> Behaviour:
    """As if the other side died after that much."""
    return lambda connection, _request: connection.sendall(payload)


def test_an_answer_is_its_result_error_and_code(serve: Serve) -> None:
    serve(
        in_turn(answer({"a": [1, "ä"]}), answer({"partly": 1}, "no such tool", "not_found"), answer(None, "", "denied"))
    )
    assert calling.ask("x", {}) == ({"a": [1, "ä"]}, "", "")
    assert calling.ask("x", {}) == ({"partly": 1}, "no such tool", "not_found")
    assert calling.ask("x", {}) == (None, "the workbench refused the call: denied", "denied")


def test_the_request_has_operation_and_arguments(serve: Serve) -> None:
    server = serve(says())
    calling.ask("run_tool", {"tool_slug": "A", "arguments": {"ü": [None, True, 1.5]}})
    assert server.requests == [
        {"operation": "run_tool", "arguments": {"tool_slug": "A", "arguments": {"ü": [None, True, 1.5]}}}
    ]


def test_a_path_is_an_address_as_well(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(calling.ADDRESS_VARIABLE, str(short_dir / "calls"))
    with answering(says("by path"), str(short_dir / "calls")):
        assert calling.ask("x", {}) == ("by path", "", "")


def test_large_answers_arrive_whole_and_also_in_single_bytes(serve: Serve) -> None:
    serve(says("x" * 5_000_000))
    assert calling.ask("x", {})[0] == "x" * 5_000_000
    serve(in_pieces)
    assert calling.ask("x", {}) == ("in pieces", "", "")


@pytest.mark.parametrize("address", ["@workbench-test-nobody", "/nonexistent/calls"])
def test_where_nobody_listens_the_error_comes_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(calling.ADDRESS_VARIABLE, address)
    began = time.monotonic()
    assert calling.ask("x", {}) == (
        None,
        "no connection to the workbench: nobody answers in this sandbox",
        "not_connected",
    )
    assert time.monotonic() - began < 1


def test_an_address_that_cannot_be_one_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(calling.ADDRESS_VARIABLE, "/" + "x" * 200)
    result, error, code = calling.ask("x", {})
    assert (result, code) == (None, "not_connected")
    assert error.startswith("no connection to the workbench: ")


def test_a_full_queue_is_waited_for_and_then_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(says(), accepts=False, backlog=0) as server:
        monkeypatch.setenv(calling.ADDRESS_VARIABLE, server.address)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect("\0" + server.address[1:])
            result, error, code = calling.ask("x", {}, connect_timeout_s=0.2)
    assert (result, code) == (None, "not_connected")
    assert error == "no connection to the workbench: it took no call within 0.2 s; try again later"


def test_a_queue_that_empties_in_time_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(says("late"), accepts=False, backlog=0) as server:
        monkeypatch.setenv(calling.ADDRESS_VARIABLE, server.address)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect("\0" + server.address[1:])
            later = threading.Timer(0.2, server.start)
            later.start()
            assert calling.ask("x", {}) == ("late", "", "")
            later.join()


def test_one_who_never_answers_is_left_at_the_limit(serve: Serve) -> None:
    def wait(_connection: socket.socket, _request: dict[str, Any]) -> None:
        server.closing.wait(PATIENCE_S)

    server = serve(wait)
    assert calling.ask("x", {}, answer_timeout_s=0.2) == (
        None,
        f"no answer of the workbench within 0.2 s; {MAYBE}",
        "timed_out",
    )


def test_the_limit_is_for_the_whole_answer_and_not_for_each_piece(serve: Serve) -> None:
    def trickle(connection: socket.socket, _request: dict[str, Any]) -> None:
        for byte in answer("x" * 1000):
            connection.sendall(bytes([byte]))
            if server.closing.wait(0.02):
                return

    server = serve(says())
    server.behaviour = trickle
    began = time.monotonic()
    assert calling.ask("x", {}, answer_timeout_s=0.3)[2] == "timed_out"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("payload", [b"", b"\0\0", answer("whole")[:4], answer("whole")[:-1]])
def test_a_call_that_is_cut_off_is_told_and_never_sent_again(payload: bytes, serve: Serve) -> None:
    server = serve(cut(payload))
    result, error, code = calling.ask("x", {})
    assert (result, code) == (None, "cut_off")
    assert error.startswith("the call was cut off")
    assert error.endswith(MAYBE)
    assert invoke_llm("x") == ("", error)
    assert len(server.requests) == 2


def test_one_who_hangs_up_at_once_is_a_cut_off_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(says(), accepts=False) as server:
        monkeypatch.setenv(calling.ADDRESS_VARIABLE, server.address)

        def hang_up() -> None:
            server._listening.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        result, error, code = calling.ask("x", {"query": "x" * 4_000_000})
        thread.join(PATIENCE_S)
    assert (result, code) == (None, "cut_off")
    assert error.endswith(MAYBE)


def test_a_refusal_before_all_was_read_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(says(), accepts=False) as server:
        monkeypatch.setenv(calling.ADDRESS_VARIABLE, server.address)

        def refuse() -> None:
            connection, _ = server._listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer(None, "this is too much", "denied"))

        thread = threading.Thread(target=refuse)
        thread.start()
        assert calling.ask("x", {"query": "x" * 4_000_000}) == (None, "this is too much", "denied")
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (frame(b"no JSON at all"), "bad_answer"),
        (frame(b"\xff\xfe"), "bad_answer"),
        (frame(b"[1, 2]"), "bad_answer"),
        (frame(b"{}"), "bad_answer"),
        (frame(b""), "bad_answer"),
        (frame(b"[" * 100_000), "bad_answer"),
        (b"\xff\xff\xff\xff", "too_large"),
    ],
)
def test_an_answer_that_cannot_be_understood_is_an_error(payload: bytes, code: str, serve: Serve) -> None:
    serve(cut(payload))
    result, error, told = calling.ask("x", {})
    assert (result, told) == (None, code)
    assert error.endswith(MAYBE)


def test_what_is_too_large_is_not_sent(serve: Serve) -> None:
    server = serve(says())
    result, error, code = calling.ask("x", {"query": "x" * calling.MOST_FRAME_BYTES})
    assert (result, code) == (None, "too_large")
    assert "8,388,6" in error
    assert server.requests == []


def test_fifty_calls_at_once_get_each_its_own_answer(serve: Serve) -> None:
    serve(echo)
    texts = [f"{number} " * number for number in range(1, 201)]
    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(invoke_llm, texts)) == [(text, "") for text in texts]


def test_both_sides_of_a_fork_ask_at_the_same_time(serve: Serve) -> None:
    serve(echo)
    asking = (
        "import os; from concurrent.futures import ThreadPoolExecutor; from workbench_guest.helpers import invoke_llm\n"
        "def ask(who):\n"
        "    texts = [f'{who} {number}' for number in range(50)]\n"
        "    with ThreadPoolExecutor(50) as pool:\n"
        "        return list(pool.map(invoke_llm, texts)) == [(text, '') for text in texts]\n"
        "with ThreadPoolExecutor(50) as pool:\n"
        "    calls = [pool.submit(invoke_llm, f'before {number}') for number in range(50)]\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit(0 if ask('child') else 1)\n"
        "    fine = ask('parent')\n"
        "    whole = [call.result() for call in calls] == [(f'before {number}', '') for number in range(50)]\n"
        "print(fine, whole, os.waitpid(child, 0)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", asking], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True True 0\n", "")


async def test_code_that_awaits_asks_on_threads(serve: Serve) -> None:
    serve(echo)
    told = await asyncio.gather(*(asyncio.to_thread(invoke_llm, f"{number}") for number in range(20)))
    assert told == [(f"{number}", "") for number in range(20)]


def test_an_interrupt_passes_through_and_closes_the_connection(serve: Serve) -> None:
    closed = threading.Event()

    def wait(connection: socket.socket, _request: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        connection.settimeout(PATIENCE_S)
        if connection.recv(1) == b"":
            closed.set()

    serve(wait)
    with pytest.raises(KeyboardInterrupt):
        invoke_llm("x")
    assert closed.wait(PATIENCE_S)


def test_no_descriptor_stays_open_after_calls_that_fail(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(in_turn(b"", b"\0\0\0\x05abc", frame(b"no"), answer(1)))
    before = len(os.listdir("/proc/self/fd"))
    held = [calling.ask("x", {}) for _ in range(20)]
    monkeypatch.setenv(calling.ADDRESS_VARIABLE, "@workbench-test-nobody")
    held += [calling.ask("x", {}) for _ in range(20)]
    # The other side is in this process too, and closes in its own time.
    deadline = time.monotonic() + PATIENCE_S
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert len(held) == 40
