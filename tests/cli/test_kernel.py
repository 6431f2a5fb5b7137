"""`workbench kernel` as Jupyter meets it: a kernelspec, a manager that starts and ends it, clients that use it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session
from tests.host.conftest import settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

__all__ = ["settings"]
PATIENCE_S = 60.0


@pytest.fixture
def jupyter(settings: Settings, short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter finds our kernelspec, as `workbench kernel --install` writes it, and what it starts has our settings."""
    code, out, _ = output_of(workbench(settings, "kernel", "--install", "--prefix", str(short_dir)))
    assert code == 0
    assert Path(out.split()[-1]) == short_dir / "share/jupyter/kernels/workbench/kernel.json"
    monkeypatch.setenv("JUPYTER_PATH", str(short_dir / "share/jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(short_dir / "runtime"))
    for name, value in settings.to_env().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(params=["tcp", "ipc"])
def manager(request: pytest.FixtureRequest, jupyter: None) -> Iterator[KernelManager]:
    """One that has started our kernel."""
    manager = KernelManager(kernel_name="workbench", transport=request.param)
    manager.start_kernel()
    try:
        yield manager
    finally:
        if manager.has_kernel:
            manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


@pytest.fixture
def client(manager: KernelManager) -> Iterator[BlockingKernelClient]:
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield client
    finally:
        client.stop_channels()


def sessions_of(settings: Settings) -> list[str]:
    listed = json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])
    return [str(one["session"]) for one in listed]


def run(client: BlockingKernelClient, code: str, **options: Any) -> tuple[str, str]:
    """The status of the reply, and what was printed."""
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        printed.append(message["content"].get("text", ""))

    reply = client.execute_interactive(code, output_hook=hear, timeout=PATIENCE_S, **options)
    return reply["content"]["status"], "".join(printed)


def test_jupyter_starts_it_runs_interrupts_and_ends_it_and_the_session_is_gone(
    settings: Settings, manager: KernelManager, client: BlockingKernelClient
) -> None:
    assert run(client, "import os; print(6 * 7, os.getcwd())") == ("ok", "42 /home/user\n")
    assert len(sessions_of(settings)) == 1
    request = client.execute("print('begun', flush=True); import time; time.sleep(60)")
    until_printed(client, "begun")
    manager.interrupt_kernel()
    assert answer_to(client, request)["ename"] == "KeyboardInterrupt"
    assert client.is_alive()
    client.shutdown()
    assert client.get_control_msg(timeout=PATIENCE_S)["content"]["status"] == "ok"
    eventually(lambda: not manager.is_alive(), "the kernel ended")
    assert sessions_of(settings) == []


def answer_to(client: BlockingKernelClient, request: str) -> dict[str, Any]:
    """Its content; answers to what the client asked while the kernel started may come before it."""
    while True:
        reply = client.get_shell_msg(timeout=PATIENCE_S)
        if reply["parent_header"]["msg_id"] == request:
            return dict(reply["content"])


def until_printed(client: BlockingKernelClient, sign: str) -> None:
    while sign not in client.get_iopub_msg(timeout=PATIENCE_S)["content"].get("text", ""):
        pass


@pytest.mark.parametrize("manager", ["tcp"], indirect=True)
def test_a_cell_asks_its_own_client_for_input(client: BlockingKernelClient) -> None:
    def answer(message: dict[str, Any]) -> None:
        client.input(f"answer to {message['content']['prompt']}")

    assert run(client, "print(input('who?'))", allow_stdin=True, stdin_hook=answer) == ("ok", "answer to who?\n")


@pytest.mark.parametrize("manager", ["tcp"], indirect=True)
def test_two_clients_get_their_own_answers(manager: KernelManager, client: BlockingKernelClient) -> None:
    other = BlockingKernelClient(connection_file=manager.connection_file)
    other.load_connection_file()
    other.start_channels()
    try:
        asked = {client.execute("a = 1"): client, other.execute("b = 2"): other}
        for request, who in asked.items():
            assert answer_to(who, request)["status"] == "ok"
        assert run(client, "print(a + b)") == ("ok", "3\n")
    finally:
        other.stop_channels()


@pytest.mark.parametrize("manager", ["tcp"], indirect=True)
def test_a_restart_gives_a_new_session_and_one_that_is_killed_is_deleted_too(
    settings: Settings, manager: KernelManager, client: BlockingKernelClient
) -> None:
    run(client, "x = 1")
    first = sessions_of(settings)
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE_S)
    assert run(client, "x")[0] == "error"
    second = sessions_of(settings)
    assert len(second) == 1
    assert second != first
    manager.shutdown_kernel(now=True)
    eventually(lambda: sessions_of(settings) == [], "somebody deleted the session")


@pytest.mark.parametrize("manager", ["tcp"], indirect=True)
def test_a_message_without_the_key_is_not_heard(manager: KernelManager, client: BlockingKernelClient) -> None:
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    try:
        info = manager.get_connection_info()
        socket.connect(f"tcp://{info['ip']}:{info['shell_port']}")
        stranger = Session(key=secrets.token_bytes(16))
        content = {"code": "x = 'stranger'", "silent": False}
        stranger.send(socket, "execute_request", content)
        assert not socket.poll(1000)
    finally:
        socket.close(linger=0)
        context.term()
    assert run(client, "print('x' in globals())") == ("ok", "False\n")


def test_a_named_session_stays_and_signals_interrupt_and_end_it(settings: Settings, short_dir: Path) -> None:
    path, _ = write_connection_file(str(short_dir / "c.json"), transport="ipc", ip=str(short_dir / "c"))
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "kernel", "-f", path, "-s", "mine"],
        env={**os.environ, **settings.to_env()},
    )
    client = BlockingKernelClient(connection_file=path)
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        assert run(client, "x = 5") == ("ok", "")
        for _ in range(2):
            request = client.execute("print('begun', flush=True); import time; time.sleep(60)")
            until_printed(client, "begun")
            process.send_signal(signal.SIGINT)
            assert answer_to(client, request)["ename"] == "KeyboardInterrupt"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
    finally:
        client.stop_channels()
        process.kill()
        process.wait()
    assert output_of(workbench(settings, "exec", "-s", "mine", "x")) == (0, "5\n", "")


@pytest.mark.parametrize("manager", ["tcp"], indirect=True)
def test_a_session_that_somebody_deletes_takes_the_kernel_with_it(
    settings: Settings, manager: KernelManager, client: BlockingKernelClient
) -> None:
    (name,) = sessions_of(settings)
    assert output_of(workbench(settings, "sessions", "rm", name))[0] == 0
    eventually(lambda: not manager.is_alive(), "the kernel ended")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "give either"),
        (("--install", "-f", "{file}"), "give either"),
        (("-f", "{file}"), "cannot be read as a connection file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    settings: Settings, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    file = tmp_path / "file"
    file.write_text("nonsense", encoding="utf-8")
    code, _, err = output_of(workbench(settings, "kernel", *(one.format(file=file) for one in arguments)))
    assert code in (2, 125)
    assert complaint in err
