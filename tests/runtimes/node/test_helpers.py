"""Helpers of the sandbox as JavaScript has them, asked over a real socket."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.runtimes.node.driving import driven

Answer = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def workbench(place: Path, answer: Answer) -> Iterator[list[dict[str, Any]]]:
    """The other end of the socket, which gives every call the same answer, or what a function says."""
    heard: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, connection.makefile("rwb") as stream:
                    (size,) = struct.unpack(">I", stream.read(4))
                    heard.append(json.loads(stream.read(size)))
                    said = answer(heard[-1]) if callable(answer) else answer
                    payload = json.dumps(said).encode()
                    stream.write(struct.pack(">I", len(payload)) + payload)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_helper_resolves_to_its_result(folder: Path) -> None:
    place = folder / "calls"
    env = {"WORKBENCH_CALLS": str(place)}
    with (
        workbench(place, {"result": {"data": {"n": 1}}, "error": "", "code": ""}) as heard,
        driven(folder, env=env) as kernel,
    ):
        ran = kernel.run("(await runComposioTool('a_tool', { x: 1 }, { account: 'ca_1' })).data")
        assert ran.result == "{ n: 1 }"
        assert "A_TOOL answered" in ran.text()
        assert heard == [
            {"operation": "run_tool", "arguments": {"tool_slug": "A_TOOL", "arguments": {"x": 1}, "account": "ca_1"}}
        ]
        assert kernel.run("await run_composio_tool('a_tool', {}, { printSchemaForTool: false })").text() == ""


def test_a_helper_that_fails_rejects_with_its_reason(folder: Path) -> None:
    place = folder / "calls"
    env = {"WORKBENCH_CALLS": str(place)}
    with workbench(place, {"result": None, "error": "no model", "code": "denied"}), driven(folder, env=env) as kernel:
        ran = kernel.run("await invokeLlm('x')")
        assert (ran.reply["ename"], ran.reply["evalue"]) == ("HelperError", "no model")
        assert kernel.run("await webSearch('')").reply["ename"] == "HelperError"


def test_a_session_without_tool_execution_has_three_helpers_less(folder: Path) -> None:
    with driven(folder, env={"WORKBENCH_TOOL_EXECUTION": "false"}) as kernel:
        ran = kernel.run("[typeof invokeLlm, typeof run_composio_tool, typeof webSearch, typeof uploadLocalFile]")
        assert ran.result == "[ 'undefined', 'undefined', 'undefined', 'function' ]"
