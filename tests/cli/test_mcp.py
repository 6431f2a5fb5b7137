"""`workbench mcp` as a client meets it: a real process on two pipes, a real host, and what is left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.one_host import settings, shared_settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

__all__ = ["settings", "shared_settings"]

# Clients close standard input, wait for two seconds, ask by a signal, wait for two more, and kill.
END_S = 4.0
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Talk:
    """Raw messages: that nothing else is on the wire is one of the promises."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._last = 0

    def send(self, method: str, params: dict[str, Any] | None = None, *, is_request: bool = True) -> int:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if is_request:
            self._last += 1
            message["id"] = self._last
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self._last

    def hear(self, number: int) -> dict[str, Any]:
        """The answer to one; every line before it is a message as well."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
        raise AssertionError("it ended without an answer")

    def hello(self) -> dict[str, Any]:
        told: dict[str, Any] = self.hear(self.send("initialize", _HELLO))["result"]
        self.send("notifications/initialized", is_request=False)
        return told

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.hear(self.send("tools/call", {"name": tool, "arguments": arguments}))["result"]
        return answer

    def run(self, code: str, **more: Any) -> dict[str, Any]:
        told: dict[str, Any] = self.call("COMPOSIO_REMOTE_WORKBENCH", code_to_execute=code, **more)["structuredContent"]
        return told

    def end(self) -> tuple[int, str]:
        """By closing standard input; the exit code and what was said on standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.wait()

    def wait(self) -> tuple[int, str]:
        code = self.process.wait(30)
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        # A call that was cut short may still be told so; nothing but messages comes.
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in self.process.stdout)
        return code, self.process.stderr.read().decode()


@contextlib.contextmanager
def talking(settings: Settings, *options: str) -> Iterator[Talk]:
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "mcp", *options],
        env={**os.environ, **settings.to_env()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Talk(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


def sessions_of(settings: Settings) -> list[str]:
    return [one["session"] for one in json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])]


def locks_of(settings: Settings) -> list[str]:
    return sorted(path.name for path in (settings.data_dir / "mcp").iterdir())


def begin_to_sleep(settings: Settings, talk: Talk, session: str) -> None:
    """Something that would run for minutes, and does."""
    talk.send(
        "tools/call",
        {"name": "COMPOSIO_REMOTE_WORKBENCH", "arguments": {"code_to_execute": "import time; time.sleep(150)"}},
    )
    eventually(lambda: _state(settings, session) == "busy", "it runs")


def _state(settings: Settings, session: str) -> str:
    known = json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])
    return next((one["state"] for one in known if one["session"] == session), "")


def test_a_client_gets_tools_without_server_or_key_and_leaves_nothing(settings: Settings) -> None:
    with talking(settings) as talk:
        assert talk.hello()["serverInfo"]["name"] == "open-workbench"
        listed = talk.hear(talk.send("tools/list"))["result"]["tools"]
        assert [one["name"] for one in listed] == ["COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"]
        first = talk.run("x = 41")
        name = first["data"]["session"]["id"]
        assert name.startswith("mcp-")
        assert len(name) == len("mcp-") + 12
        assert talk.run("x + 1")["data"]["results"] == "42"
        assert sessions_of(settings) == [name]
        assert talk.end() == (0, "")
    assert sessions_of(settings) == []
    assert locks_of(settings) == []


def test_nothing_that_a_cell_prints_reaches_the_wire_or_standard_error(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        told = talk.run("import os; print('out'); os.write(2, b'err'); os.system('echo from a child')")
        assert "out" in told["data"]["stdout"]
        assert talk.end() == (0, "")


def test_what_is_in_files_outlives_the_process_and_is_found_by_its_name(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        name = talk.run("open('/mnt/files/report.txt', 'w').write('work')")["data"]["session"]["id"]
        code, said = talk.end()
    assert code == 0
    assert f"`workbench sessions rm {name}`" in said
    assert sessions_of(settings) == [name]
    with talking(settings) as talk:
        talk.hello()
        assert talk.run("open('/mnt/files/report.txt').read()", session_id=name)["data"]["results"] == "'work'"
        assert talk.end() == (0, "")
    assert sessions_of(settings) == [name]


def test_a_session_that_is_named_stays_and_is_found_again(settings: Settings) -> None:
    for expected in ("None", "'kept'"):
        with talking(settings, "--session", "mine", "--user", "ada") as talk:
            talk.hello()
            told = talk.run("before = globals().get('x'); x = 'kept'; before or print('None', end='')")
            assert told["data"]["session"]["id"] == "mine"
            assert expected in (told["data"]["stdout"], told["data"]["results"])
            assert talk.end() == (0, "")
    known = json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])
    assert [(one["session"], one["user"]) for one in known] == [("mine", "ada")]


@pytest.mark.parametrize(
    ("how", "code"), [("closed", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["closed", "TERM", "INT"]
)
def test_it_ends_in_time_and_interrupts_what_it_has_running(settings: Settings, how: Any, code: int) -> None:
    with talking(settings, "--session", "mine") as talk:
        talk.hello()
        talk.run("x = 1")
        begin_to_sleep(settings, talk, "mine")
        began = time.monotonic()
        if how == "closed":
            assert talk.end() == (code, "")
        else:
            talk.process.send_signal(how)
            assert talk.wait() == (code, "")
        assert time.monotonic() - began < END_S
    assert _state(settings, "mine") == "idle"
    history = json.loads(output_of(workbench(settings, "sessions", "history", "mine", "--json"))[1])
    assert [one["result"]["outcome"] for one in history] == ["ok", "interrupted"]


def test_a_signal_ends_it_while_nobody_says_or_reads_anything(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        for _ in range(20):
            talk.send("tools/call", {"name": "COMPOSIO_REMOTE_WORKBENCH",
                                     "arguments": {"code_to_execute": "print('x' * 30_000)"}})  # fmt: skip
        talk.process.send_signal(signal.SIGTERM)
        assert talk.process.wait(30) == 143
        assert talk.process.stderr is not None
        assert talk.process.stderr.read() == b""


def test_a_client_that_no_longer_reads_ends_it(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        assert talk.process.stdout is not None
        talk.process.stdout.close()
        talk.send("ping")
        assert talk.process.wait(30) == 0


def test_a_message_without_end_ends_it_with_a_word(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        assert talk.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            for _ in range(65):
                talk.process.stdin.write(b"x" * 2**20)
                talk.process.stdin.flush()
        assert talk.process.wait(30) == 125
        assert talk.process.stderr is not None
        assert b"error: the client sent a message of more than 64 MiB" in talk.process.stderr.read()


def test_one_that_was_killed_is_tidied_up_by_the_next_after_a_week(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        name = talk.run("x = 1")["data"]["session"]["id"]
        talk.process.kill()
        talk.process.wait(30)
    assert sessions_of(settings) == [name]
    with talking(settings) as talk:
        talk.hello()
        assert talk.run("x", session_id=name)["data"]["results"] == "1"
        assert talk.end() == (0, "")
    assert sessions_of(settings) == [name]
    _let_a_week_pass(settings, name)
    with talking(settings) as talk:
        talk.hello()
        eventually(lambda: not sessions_of(settings), "it is deleted")
        eventually(lambda: f"{name}.lock" not in locks_of(settings), "and its lock")
        assert talk.end() == (0, "")


def _let_a_week_pass(settings: Settings, name: str) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(settings.data_dir / "workbench.db")) as records:
        tables = [row[0] for row in records.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert "sessions" in tables
        changed = records.execute("UPDATE sessions SET used_at = '2020-01-01T00:00:00.000000Z'").rowcount
        records.commit()
    assert changed == 1


def test_without_an_image_the_way_out_is_on_standard_error_and_in_the_answer(
    settings: Settings, short_dir: Path
) -> None:
    bare = replace(settings, data_dir=short_dir / "data", images_dir=short_dir / "images")
    with talking(bare) as talk:
        talk.hello()
        answer = talk.call("COMPOSIO_REMOTE_WORKBENCH", code_to_execute="1")
        assert answer["isError"]
        assert "workbench image build" in answer["structuredContent"]["error"]
        code, said = talk.end()
    assert code == 0
    assert "`workbench image build`" in said


def test_options_that_cannot_be_used_are_refused_before_anything_is_served(settings: Settings) -> None:
    for options, words in (
        (("--tools", "spoons"), "spoons"),
        (("--session", "A B"), "session"),
        (("--user", ""), "user"),
    ):
        code, out, err = output_of(workbench(settings, "mcp", *options))
        assert (code, out) == (125, "")
        assert words in err


def test_the_families_are_chosen_by_an_option_and_by_the_setting(settings: Settings) -> None:
    for served, options in ((settings, ("--tools", "kernel")), (replace(settings, mcp_tools="kernel"), ())):
        with talking(served, *options) as talk:
            talk.hello()
            listed = talk.hear(talk.send("tools/list"))["result"]["tools"]
            assert "COMPOSIO_REMOTE_WORKBENCH" not in [one["name"] for one in listed]
            assert talk.end()[0] == 0


def test_a_line_that_is_no_message_is_answered_and_does_not_end_it(settings: Settings) -> None:
    with talking(settings) as talk:
        talk.hello()
        assert talk.process.stdin is not None
        talk.process.stdin.write(b'not json\n\n{"half":\n')
        talk.process.stdin.flush()
        assert talk.hear(talk.send("ping"))["result"] == {}
        assert talk.end()[0] == 0


def test_the_other_commands_do_not_load_the_library_of_the_protocol() -> None:
    code = "import sys, workbench.cli.main; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
