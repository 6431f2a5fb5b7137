"""ipykernel's kernel, where it differs for an agent: interrupts that reach an await, refused input, receipts."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from IPython.core.error import StdinNotImplementedError
from traitlets import Any as AnyTrait
from traitlets import Type

from workbench_guest import afterfork
from workbench_guest.corrections.cell import cells
from workbench_guest.corrections.returns import EndOfCell
from workbench_guest.kernel import carrying, flight_recorder, names, variables
from workbench_guest.kernel.copying import SnapshotWish
from workbench_guest.kernel.shell import WorkbenchShell, be_deaf_to_interrupts

NO_INPUT = "input() is not available: nobody can type into this session. Put the value into the code instead."
EXIT_NOTE = "[sandbox] exit() ended this cell; the session and its variables live on.\n"
# Under which a reply's metadata has what the host makes a receipt of.
METADATA = "workbench"
# How our own messages are called.
_QUESTION = "workbench_"


class NoSubshells:
    """Stands where stock has a thread for cells beside the running one: false, but it knows the main thread."""

    def __init__(self) -> None:
        self.parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


class WorkbenchKernel(IPythonKernel):
    """Built in the zygote, without sockets; `life` gives it those of its fork."""

    shell_class = Type(WorkbenchShell)
    # Stock insists on a ZMQStream; a rehearsal has none.
    shell_stream = AnyTrait(allow_none=True)
    # Stock sleeps here so that readers see output before the reply; ours waits for both.
    _execute_sleep = 0.0

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shell_handlers["workbench_variables_request"] = self.variables_request
        self.shell_handlers["workbench_threads_request"] = self.threads_request
        self.shell_handlers["workbench_snapshot_request"] = self.snapshot_request
        self.shell_handlers["workbench_unpack_request"] = self.unpack_request
        self.wish: SnapshotWish | None = None
        self._changes: dict[str, Any] = {}
        self._is_asked = False
        """what is being handled is one of our own messages"""
        self.memory: mmap.mmap | None = None
        """shared with the host"""

    @property
    def _supports_kernel_subshells(self) -> bool:
        return False

    def start(self) -> None:
        """As stock. A snapshot was taken in the middle of a question, and nobody waits for its answer any more."""
        self._is_asked = False
        super().start()

    def set_parent(self, ident: Any, parent: dict[str, Any], channel: str = "shell") -> None:
        """As stock, but for a question of the host's: what threads print meanwhile still belongs to the last cell."""
        kind = parent.get("header", {}).get("msg_type", "")
        self._is_asked = channel == "shell" and kind.startswith(_QUESTION)
        if not self._is_asked:
            super().set_parent(ident, parent, channel)

    def _publish_status(self, status: str, channel: str, parent: Any = None) -> None:
        """As stock, but not for a question: attached notebooks would see a kernel busy with nothing of theirs."""
        if channel != "shell" or not self._is_asked:
            super()._publish_status(status, channel, parent)

    async def execute_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """As stock; noted first where no crash can undo it."""
        if self.memory is not None:
            flight_recorder.note_request(self.memory, parent["header"]["msg_id"])
        await super().execute_request(stream, ident, parent)

    async def do_execute(self, code: str, silent: bool, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As stock, for code that may be corrected, and look at the names before and after."""
        assert self.shell is not None
        before = names.Before(self.agents_names())
        self.shell.exit_code = self.shell.raised = None
        # A notebook has no place where corrections are told: what it sends is run as it is.
        meta = dict(kwargs.get("cell_meta") or {})
        served = not silent and METADATA in meta
        meta.pop(METADATA, None)
        if served:
            # IPython shows it to hooks of the agent's.
            kwargs["cell_meta"] = meta
        code = cells.begin(code, served=served)
        reply: dict[str, Any] = await super().do_execute(code, silent, *args, **kwargs)
        be_deaf_to_interrupts()
        if reply.get("ename") == "SystemExit":
            reply = self._left(reply)
        elif isinstance(self.shell.raised, EndOfCell):
            cells.ended_early(self.shell.raised)
            reply = _succeeded(reply)
        report = cells.end(self._problem(reply), self.agents_names())
        try:
            self._changes = before.changes(self.agents_names(), code)
        except Exception:  # noqa: BLE001  the agent's objects may raise at anything; the cell's own result stands
            self._changes = {}
        self._changes |= report
        return reply

    def _problem(self, reply: dict[str, Any]) -> BaseException | None:
        """What ended the cell that this is the reply to."""
        assert self.shell is not None
        raised, self.shell.raised = self.shell.raised, None
        return raised if reply.get("status") == "error" else None

    def _left(self, reply: dict[str, Any]) -> dict[str, Any]:
        """exit() and sys.exit(): the cell is over, successfully unless it said otherwise."""
        assert self.shell is not None
        if not cells.left(self.shell.raised):
            sys.stderr.write(EXIT_NOTE)
        code = self.shell.exit_code
        if code is None or code == 0:
            return _succeeded(reply)
        text = f"SystemExit: {code}"
        self.shell._showtraceback(SystemExit, SystemExit(code), [text])  # noqa: SLF001  stock's own way to send it
        return {**reply, "traceback": [text], "evalue": str(code)}

    def agents_names(self) -> dict[str, Any]:
        """What the agent's names mean now."""
        assert self.shell is not None
        return names.visible(self.shell.user_ns, self.shell.user_ns_hidden)

    def finish_metadata(self, parent: Any, metadata: dict[str, Any], reply_content: dict[str, Any]) -> dict[str, Any]:
        """As stock, with what a receipt needs."""
        done: dict[str, Any] = super().finish_metadata(parent, metadata, reply_content)
        done[METADATA] = {**self._changes, "cwd": _working_folder()}
        self._changes = {}
        return done

    async def variables_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Our own message: the names of the memory as a table."""
        most = int(parent["content"].get("most", 500))
        content = {"status": "ok", "variables": variables.described(self.agents_names(), most)}
        assert self.session is not None
        self.session.send(stream, "workbench_variables_reply", content, parent, ident=ident)

    async def threads_request(self, _stream: Any, _ident: Any, parent: Any) -> None:
        """Our own message: the sandbox has another tier, and pools of threads follow it."""
        afterfork.use_threads(int(parent["content"]["threads"]))

    async def snapshot_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Our own message: leave a copy of this memory behind. Done outside of the loop, by who runs it."""
        content = parent["content"]

        def answer(told: dict[str, Any]) -> None:
            assert self.session is not None
            self.session.send(stream, "workbench_snapshot_reply", told, parent, ident=ident)

        self.wish = SnapshotWish(str(content["snapshot"]), int(content["most_bytes"]), answer)
        self.io_loop.stop()

    async def unpack_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Our own message: take up the variables that another kernel packed."""
        assert self.session is not None
        assert self.shell is not None
        told = carrying.unpack(parent["content"], self.shell.user_ns)
        self.session.send(stream, "workbench_unpack_reply", told, parent, ident=ident)

    def raw_input(self, prompt: str = "") -> str:
        """As stock for a notebook that allows it; else a message that says what to do."""
        if not self._allow_stdin:
            raise StdinNotImplementedError(NO_INPUT)
        return str(super().raw_input(prompt))

    def getpass(self, prompt: str = "", stream: Any = None, **kwargs: Any) -> str:
        """The same."""
        if not self._allow_stdin:
            raise StdinNotImplementedError(NO_INPUT.replace("input()", "getpass()"))
        return str(super().getpass(prompt, stream, **kwargs))

    @contextlib.contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Stock's handler does not wake the loop, so an awaiting cell never hears of it."""
        loop = asyncio.get_running_loop()

        def cancel(_number: int, _frame: object) -> None:
            loop.call_soon_threadsafe(future.cancel)

        before = signal.signal(signal.SIGINT, cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _succeeded(reply: dict[str, Any]) -> dict[str, Any]:
    kept = {name: reply[name] for name in ("execution_count", "payload")}
    return {"status": "ok", "user_expressions": {}, **kept}


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
