"""The process that a session's R is: `python kernel.py CONNECTION_FILE`. Requests in, what R says out."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    # Started with -I, which knows no folders but those of the interpreter.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

import zmq

from workbench_guest.r import forks
from workbench_guest.r.asked import Asked
from workbench_guest.r.begin import begin
from workbench_guest.r.embedded import Embedded
from workbench_guest.r.names import changes
from workbench_guest.r.printed import Printed
from workbench_guest.r.wire import Message, Wire, without_interrupts

_HERE = os.path.dirname(os.path.realpath(__file__))
_FILES = ("values.R", "pictures.R", "helpers.R")
# Names of ours; notebooks are not told of what is asked by these.
_QUESTION = "workbench_"
_MOST_VARIABLES = 500
# What was sent together with a cell may still be on its way when that has failed.
_BEHIND_MS = 20
INTERRUPTED = ["interrupt", "the cell was interrupted", "Interrupted"]
_LEFT_BY_A_JUMP = ["error", "the cell was ended by R itself, without an error", "Error: R went back to its prompt"]


class Kernel:
    """One R, and who asks it."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self._wire = Wire(connection)
        self._parent: dict[str, Any] = {}
        self._count = 0
        self._busy = False
        self._leaving: int | None = None
        self._printed = Printed(lambda stream, text: self._publish("stream", {"name": stream, "text": text}))
        self._asked = Asked(self._printed, self._publish)
        self._r = Embedded(self._printed.write, self._asked.for_input, self._asked)
        self._asked.r = self._r
        self._place = self._r.load(os.path.join(_HERE, "kernel.R"))
        self._say("start", *(os.path.join(_HERE, name) for name in _FILES))
        self._requests: dict[str, Callable[[Message], dict[str, Any]]] = {
            "kernel_info_request": self._info,
            "is_complete_request": self._is_complete,
            "complete_request": self._complete,
            "inspect_request": lambda _: {"status": "ok", "found": False, "data": {}, "metadata": {}},
            "history_request": lambda _: {"status": "ok", "history": []},
            "comm_info_request": lambda _: {"status": "ok", "comms": {}},
            "workbench_variables_request": self._variables,
        }

    def _say(self, function: str, *texts: str) -> list[str] | None:
        return self._r.call(self._r.function(function, self._place), texts)

    def _publish(self, kind: str, content: dict[str, Any]) -> None:
        self._wire.publish(kind, content, self._parent)

    def run(self) -> int:
        """Until somebody ends it: the exit code."""
        without_interrupts(threading.Thread(target=self._control, name="control", daemon=True).start)
        self._publish("status", {"execution_state": "starting"})
        while self._leaving is None:
            if not self._wire.wait():
                self._leaving = 0
                break
            message = self._wire.receive(self._wire.shell)
            # One that came late is about no cell any more.
            self._r.interrupted = False
            if message is not None:
                if begin():
                    self._say("find_packages")
                self._busy = True
                self._serve(message)
                self._busy = False
        self._wire.close()
        return self._leaving

    def _serve(self, message: Message) -> None:
        if message.kind.startswith(_QUESTION):
            self._answer(message)
            return
        self._parent = message.header
        self._publish("status", {"execution_state": "busy"})
        behind: list[Message] = []
        if message.kind == "execute_request":
            behind = self._execute(message)
        else:
            self._answer(message)
        self._printed.flush()
        if self._leaving is not None:
            # Who waits for idle hears of the end instead, and sends nothing that would be lost with it.
            return
        self._publish("status", {"execution_state": "idle"})
        for one in behind:
            self._abort(one)

    def _answer(self, message: Message) -> None:
        request = self._requests.get(message.kind)
        if request is not None:
            self._wire.reply(self._wire.shell, message, request(message))

    # Cells

    def _execute(self, message: Message) -> list[Message]:
        """Those that wait behind it and are not to run."""
        code, silent = str(message.content.get("code", "")), bool(message.content.get("silent"))
        if not silent:
            self._count += bool(message.content.get("store_history", True))
            self._publish("execute_input", {"code": code, "execution_count": self._count})
        self._asked.count = self._count
        before = self._r.places()
        problem = self._run(code)
        self._r.interrupted = False
        self._say("finish")
        self._printed.flush()
        content: dict[str, Any] = {"status": "ok", "execution_count": self._count, "payload": []}
        if problem is None:
            content["user_expressions"] = {}
        else:
            error = {"ename": problem[0], "evalue": problem[1], "traceback": problem[2:]}
            content |= {"status": "error", **error}
            self._publish("error", error)
        if self._leaving is not None:
            content["payload"] = [{"source": "ask_exit", "keepkernel": False}]
        # An interrupt was for this one.
        failed = problem is not None and problem is not INTERRUPTED
        behind = self._sent_together() if failed and message.content.get("stop_on_error", True) else []
        told = {**changes(before, self._r.places()), "cwd": _working_folder()}
        self._wire.reply(self._wire.shell, message, content, {"workbench": told})
        return behind

    def _run(self, code: str) -> list[str] | None:
        """Why it failed: name, message, lines; None if it did not."""
        began = self._say("begin", code)
        if began is None:
            return INTERRUPTED
        if began[0] == "error":
            return began[1:]
        for index in range(int(began[1])):
            told = self._say("step", str(index + 1))
            kept = self._printed.release()
            if kept:
                self._printed.say("stdout", kept)
            self._r.tell_warnings()
            if told is None:
                return INTERRUPTED if self._r.interrupted else _LEFT_BY_A_JUMP
            if told[0] == "quit":
                self._leaving = int(told[1]) % 256
                return None
            if told[0] == "interrupt":
                return INTERRUPTED
            if told[0] == "error":
                return told[1:]
        return None

    def _sent_together(self) -> list[Message]:
        """What was sent before anybody could know that this cell has failed."""
        found: list[Message] = []
        while self._wire.shell.poll(0 if found else _BEHIND_MS, zmq.POLLIN):
            if (message := self._wire.receive(self._wire.shell, wait=False)) is not None:
                found.append(message)
        return found

    def _abort(self, message: Message) -> None:
        """As notebooks expect it that send many at once; the host sends one at a time, and asks for none of this."""
        if message.kind != "execute_request":
            self._serve(message)
            return
        self._parent = message.header
        self._publish("status", {"execution_state": "busy"})
        self._wire.reply(self._wire.shell, message, {"status": "aborted", "execution_count": self._count})
        self._publish("status", {"execution_state": "idle"})

    # Questions

    def _info(self, _: Message) -> dict[str, Any]:
        version = self._asked.version
        return {
            "status": "ok",
            "protocol_version": "5.4",
            "implementation": "workbench-r",
            "implementation_version": "1",
            "banner": f"R version {version}",
            "help_links": [],
            "language_info": {
                "name": "R",
                "version": version,
                "mimetype": "text/x-r-source",
                "file_extension": ".r",
                "codemirror_mode": "r",
                "pygments_lexer": "r",
            },
        }

    def _is_complete(self, message: Message) -> dict[str, Any]:
        told = self._say("is_complete", str(message.content.get("code", ""))) or ["unknown"]
        return {"status": told[0], **({"indent": ""} if told[0] == "incomplete" else {})}

    def _complete(self, message: Message) -> dict[str, Any]:
        cursor = int(message.content.get("cursor_pos", 0))
        before = str(message.content.get("code", ""))[:cursor]
        line = before.rpartition("\n")[2]
        start, *found = self._say("complete", line) or [str(len(line))]
        begin = cursor - len(line) + int(start)
        return {"status": "ok", "matches": found, "cursor_start": begin, "cursor_end": cursor, "metadata": {}}

    def _variables(self, message: Message) -> dict[str, Any]:
        most = int(message.content.get("most", _MOST_VARIABLES))
        names = [name for name in sorted(self._r.places()) if not self._r.is_promise(name)]
        told = self._say("described", *names[:most]) or []
        columns = ("name", "type", "size", "preview")
        rows = [dict(zip(columns, told[at : at + 4], strict=False)) for at in range(0, len(told), len(columns))]
        return {"status": "ok", "variables": rows}

    def _control(self) -> None:
        """Beside a cell that runs; an interrupt is the whole group's, as the host's is."""
        while True:
            try:
                message = self._wire.receive(self._wire.control)
            except zmq.ZMQError:
                self._wire.control.close()
                return
            if message is None:
                continue
            if message.kind == "interrupt_request":
                self._wire.reply(self._wire.control, message, {"status": "ok"})
                self._asked.interrupt()
            elif message.kind == "shutdown_request":
                self._wire.reply(self._wire.control, message, {"status": "ok", **message.content})
                self._end()
            elif message.kind == "kernel_info_request":
                self._wire.reply(self._wire.control, message, self._info(message))

    def _end(self) -> None:
        """By the thread of control."""
        if not self._busy:
            self._wire.end()
            return
        self._printed.flush()
        self._wire.leave_a_cell()
        os._exit(0)


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def main(arguments: list[str]) -> int:
    """The exit code of the process."""
    with open(arguments[0], encoding="utf-8") as file:
        connection = json.load(file)
    # What a program would wait for here, nobody types.
    with contextlib.suppress(OSError), open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.environ.setdefault("LANG", "C.UTF-8")
    forks.guard()
    return Kernel(connection).run()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # R has threads and exits of its own; everything that was said has left.
    os._exit(code)
