"""Answers Jupyter's requests by one shell."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any, NoReturn

from workbench_guest.bash.printed import Printed
from workbench_guest.bash.shell import Shell
from workbench_guest.bash.wire import Request, Wire

_ASK_S = 5.0
_INCOMPLETE = ("unexpected end of file", "unexpected EOF", "here-document")
_COMPLETE = 'compgen -cf -- "$1" | sort -u | head -n 200'
_BREAKS = " \t\n;|&()<>\"'`=$"


def serve(connection_file: str) -> NoReturn:
    """Until told to end, or until the shell ends: then as it did."""
    with open(connection_file, encoding="utf-8") as file:
        connection = json.load(file)
    Kernel(Wire(connection)).run()


class Kernel:
    """One thing at a time; while a cell runs only control is heard."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        # Bash and what it runs get interrupts of the group by themselves.
        self._wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._shell = Shell()
        self._printed = Printed({self._shell.out: "stdout", self._shell.err: "stderr"}, self._publish_text)
        self._parent: dict[str, Any] = {}
        self._count = 0
        for descriptor in (self._wake, self._shell.out, self._shell.err, self._shell.ended):
            wire.watch(descriptor)

    def run(self) -> NoReturn:
        """Serve."""
        self._wire.publish("status", {"execution_state": "starting"}, {})
        while True:
            ready = self._wait()
            for channel in ("control", "shell"):
                if channel in ready and (request := self._wire.receive(channel)) is not None:
                    self._handle(channel, request)

    def _wait(self) -> set[str | int]:
        """For something; what is printed is taken in."""
        ready = self._wire.wait(self._printed.patience_ms)
        for reader in (self._shell.out, self._shell.err):
            if reader in ready and not self._printed.take(reader):
                # Nobody holds its other end.
                self._wire.forget(reader)
        self._printed.flush_if_due()
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if self._shell.ended in ready:
            self._end_like_the_shell()
        return ready

    def _end_like_the_shell(self) -> NoReturn:
        self._printed.take_all()
        self._wire.close()
        status = self._shell.wait()
        if status < 0:
            signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
            os.kill(os.getpid(), -status)
        sys.exit(status)

    def _publish_text(self, stream: str, text: str) -> None:
        self._wire.publish("stream", {"name": stream, "text": text}, self._parent)

    def _handle(self, channel: str, request: Request) -> None:
        answer = getattr(self, f"_on_{request.kind.removesuffix('_request')}", None)
        if answer is None or not request.kind.endswith("_request"):
            return
        self._wire.publish("status", {"execution_state": "busy"}, request.header)
        content, metadata = answer(request)
        if content is not None:
            self._wire.answer(channel, request, content, metadata)
        self._wire.publish("status", {"execution_state": "idle"}, request.header)
        if request.kind == "shutdown_request":
            self._shell.close()
            self._wire.close()
            sys.exit(0)

    # What is asked

    def _on_execute(self, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
        code, silent = str(request.content.get("code", "")), bool(request.content.get("silent"))
        self._printed.take_all()
        self._parent = request.header
        if not silent:
            self._count += bool(request.content.get("store_history", True))
            self._wire.publish("execute_input", {"code": code, "execution_count": self._count}, request.header)
        status = self._run(code)
        told = {"workbench": {"cwd": self._shell.folder}}
        if status == 0:
            return {"status": "ok", "execution_count": self._count, "payload": [], "user_expressions": {}}, told
        interrupted = status == 128 + signal.SIGINT
        error = {
            "ename": "KeyboardInterrupt" if interrupted else "ExitStatus",
            "evalue": "" if interrupted else str(status),
            "traceback": ["interrupted" if interrupted else f"exit status {status}"],
        }
        if not silent:
            self._wire.publish("error", error, request.header)
        return {"status": "error", "execution_count": self._count, **error}, told

    def _run(self, code: str) -> int:
        try:
            self._shell.run(code)
        except OSError as problem:
            self._publish_text("stderr", f"the cell cannot be handed to the shell: {problem.strerror}\n")
            return 1
        self._wire.watch(self._shell.status)
        try:
            while True:
                ready = self._wait()
                if self._wake in ready:
                    # The question may have gone with the cell.
                    self._shell.ask()
                if "control" in ready and (request := self._wire.receive("control")) is not None:
                    self._handle("control", request)
                if self._shell.status in ready and (status := self._shell.status_of_cell()) is not None:
                    self._printed.take_all(cut_short=status.cut_short)
                    return status.number
        finally:
            self._wire.forget(self._shell.status)

    def _on_interrupt(self, _request: Request) -> tuple[dict[str, Any], None]:
        os.killpg(0, signal.SIGINT)
        return {"status": "ok"}, None

    def _on_shutdown(self, request: Request) -> tuple[dict[str, Any], None]:
        return {"status": "ok", "restart": bool(request.content.get("restart"))}, None

    def _on_kernel_info(self, _request: Request) -> tuple[dict[str, Any], None]:
        version = _asked("echo $BASH_VERSION").strip()
        info = {
            "name": "bash",
            "version": version,
            "mimetype": "text/x-sh",
            "file_extension": ".sh",
            "codemirror_mode": "shell",
        }
        return {
            "status": "ok",
            "protocol_version": "5.4",
            "implementation": "workbench-bash",
            "implementation_version": "1.0",
            "banner": f"Bash {version}",
            "language_info": info,
            "help_links": [],
        }, None

    def _on_is_complete(self, request: Request) -> tuple[dict[str, Any], None]:
        said = _asked(str(request.content.get("code", "")), "-n")
        if not said:
            return {"status": "complete"}, None
        if any(words in said for words in _INCOMPLETE):
            return {"status": "incomplete", "indent": "  "}, None
        return {"status": "invalid"}, None

    def _on_complete(self, request: Request) -> tuple[dict[str, Any], None]:
        code = str(request.content.get("code", ""))
        end = int(request.content.get("cursor_pos", len(code)))
        start = max(code.rfind(one, 0, end) for one in _BREAKS) + 1
        found = _asked(_COMPLETE, cwd=self._shell.folder, word=code[start:end]).split("\n") if end > start else []
        matches = [one for one in found if one]
        return {"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": end, "metadata": {}}, None

    def _on_inspect(self, _request: Request) -> tuple[dict[str, Any], None]:
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}, None

    def _on_history(self, _request: Request) -> tuple[dict[str, Any], None]:
        return {"status": "ok", "history": []}, None

    def _on_comm_info(self, _request: Request) -> tuple[dict[str, Any], None]:
        return {"status": "ok", "comms": {}}, None


def _asked(code: str, *options: str, cwd: str = "", word: str = "") -> str:
    """Of a shell beside the one of the cells; what it said, of whatever kind."""
    command = ("bash", "--norc", *options, "-c", code, "bash", word)
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd or None,
            timeout=_ASK_S,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace")
    return ""
