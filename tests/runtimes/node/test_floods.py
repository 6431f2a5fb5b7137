"""Nothing that a cell gives out is lost, and a reader that is slow holds up the cell instead of filling the memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.runtimes.node.driving import Driven
from tests.runtimes.node.test_zmtp import GREETING, connected, ready

MB = 1024 * 1024


def test_fifty_megabytes_of_text_are_complete(kernel: Driven) -> None:
    size = 0

    def count(message: dict[str, Any]) -> None:
        nonlocal size
        size += len(message["content"].get("text", ""))

    kernel.client.execute_interactive(
        "for (let i = 0; i < 50; i++) console.log('x'.repeat(1048575))", timeout=60, output_hook=count
    )
    assert size == 50 * MB


def test_twenty_thousand_displays_are_complete_and_in_order(kernel: Driven) -> None:
    ran = kernel.run("for (let i = 0; i < 20000; i++) display(i)")
    assert [int(one["content"]["data"]["text/plain"]) for one in ran.of("display_data")] == list(range(20_000))


def test_ten_thousand_lines_are_few_messages(kernel: Driven) -> None:
    ran = kernel.run("for (let i = 0; i < 10000; i++) console.log(i)")
    assert ran.text().splitlines() == [str(one) for one in range(10_000)]
    assert len(ran.of("stream")) < 1000


def test_one_large_display_is_whole(kernel: Driven) -> None:
    ran = kernel.run("display.html('x'.repeat(20 * 1024 * 1024)); undefined")
    assert len(ran.of("display_data")[0]["content"]["data"]["text/html"]) == 20 * MB


def test_a_reader_that_does_not_read_stops_the_cell_and_not_the_machine(kernel: Driven, folder: Path) -> None:
    before = memory_bytes(kernel)
    count = folder / "count"
    with connected(kernel, "iopub") as stuck:
        stuck.sendall(GREETING + ready(b"SUB") + b"\x00\x01\x01")
        while b"iopub_welcome" not in stuck.recv(65536):
            pass
        code = """for (let i = 0; i < 100; i++) {
            console.log('x'.repeat(1048575));
            require('fs').writeFileSync('count', `${i}`);
        }"""
        sent = kernel.client.execute(code)
        reached = still(count)
        assert reached < 20
        assert memory_bytes(kernel) - before < 80 * MB
    lines = 0
    while True:
        message = kernel.client.get_iopub_msg(timeout=40)
        if message["parent_header"].get("msg_id") == sent:
            lines += message["content"].get("text", "").count("\n")
            if message["content"].get("execution_state") == "idle":
                break
    assert lines == 100


def still(count: Path) -> int:
    """What the file says once it says the same for a second."""
    said, since = "", time.monotonic()
    while time.monotonic() - since < 1 or not said:
        now = count.read_text(encoding="utf-8") if count.exists() else ""
        if now != said:
            said, since = now, time.monotonic()
    return int(said)


def memory_bytes(kernel: Driven) -> int:
    """What of it lies in memory."""
    told = Path(f"/proc/{kernel.process.pid}/status").read_text(encoding="utf-8")
    return int(told.split("VmRSS:")[1].split()[0]) * 1024
