"""A real kernel for Node, driven by Jupyter's own client."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

import workbench_guest

KERNEL = Path(next(iter(workbench_guest.__path__))) / "node" / "kernel.cjs"
# Without this, Node ends when a callback of a timer is terminated.
FLAGS = ("--no-force-async-hooks-checks",)
KEY = b"a key for tests"
WAIT_S = 40


def node() -> str:
    """The Node that is tried: that of the machine, unless another one is named."""
    return os.environ.get("WORKBENCH_TEST_NODE", "node")


@dataclass
class Ran:
    """What came of a cell."""

    reply: dict[str, Any]
    metadata: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def status(self) -> str:
        return str(self.reply["status"])

    @property
    def result(self) -> str | None:
        found = [one["content"]["data"]["text/plain"] for one in self.of("execute_result")]
        return found[0] if found else None

    @property
    def error(self) -> str:
        return "\n".join(line for one in self.of("error") for line in one["content"]["traceback"])

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.messages if one["msg_type"] == kind]

    def text(self, name: str = "stdout") -> str:
        return "".join(one["content"]["text"] for one in self.of("stream") if one["content"]["name"] == name)


class Driven:
    """One kernel and one client of it."""

    def __init__(
        self, process: subprocess.Popen[bytes], client: BlockingKernelClient, connection: dict[str, Any]
    ) -> None:
        self.process = process
        self.client = client
        self.connection = connection

    def run(self, code: str, **given: Any) -> Ran:
        """Run a cell to its end."""
        messages: list[dict[str, Any]] = []
        reply = self.client.execute_interactive(
            code, timeout=WAIT_S, output_hook=messages.append, allow_stdin=False, **given
        )
        return Ran(reply["content"], reply["metadata"], messages)

    def interrupted(self, code: str) -> Ran:
        """Run a cell that says `here` and is interrupted after that, as the host does it."""
        messages: list[dict[str, Any]] = []
        asked = threading.Event()

        def hook(message: dict[str, Any]) -> None:
            messages.append(message)
            if not asked.is_set() and message["content"].get("text", "").startswith("here"):
                asked.set()
                self.interrupt()

        reply = self.client.execute_interactive(code, timeout=WAIT_S, output_hook=hook, allow_stdin=False)
        assert asked.is_set()
        return Ran(reply["content"], reply["metadata"], messages)

    def interrupt(self) -> None:
        """The signal to the group and the message, as the host sends both."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.client.control_channel.send(self.client.session.msg("interrupt_request", {}))
        self.client.get_control_msg(timeout=WAIT_S)

    def ask(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        """Any question on the shell channel."""
        message = self.client.session.msg(kind, content)
        self.client.shell_channel.send(message)
        answer: dict[str, Any] = self.client.get_shell_msg(timeout=WAIT_S)
        assert answer["parent_header"]["msg_id"] == message["header"]["msg_id"]
        return dict(answer["content"])


@contextmanager
def driven(folder: Path, transport: str = "ipc", env: dict[str, str] | None = None) -> Iterator[Driven]:
    """A kernel in `folder`, ended afterwards."""
    ip = str(folder / "k") if transport == "ipc" else "127.0.0.1"
    file, connection = write_connection_file(str(folder / "kernel.json"), transport=transport, ip=ip, key=KEY)
    process = subprocess.Popen(
        [node(), *FLAGS, str(KERNEL), file], cwd=folder, start_new_session=True, env={**os.environ, **(env or {})}
    )
    client = BlockingKernelClient(connection_file=file)
    try:
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=WAIT_S)
        yield Driven(process, client, dict(connection))
    finally:
        client.stop_channels()
        process.kill()
        process.wait(WAIT_S)
