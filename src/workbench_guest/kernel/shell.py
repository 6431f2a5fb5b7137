"""IPython's shell, where it differs for an agent: `!cmd` without a terminal, exit() that ends the cell, tracebacks."""

from __future__ import annotations

import codecs
import contextlib
import inspect
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import types
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.autocall import IPyAutocall
from traitlets import Type

import workbench_guest
from workbench_guest import helpers
from workbench_guest.corrections.cell import cells
from workbench_guest.corrections.returns import EndOfCell
from workbench_guest.corrections.suggestions import suggestion
from workbench_guest.rich.display import FOR_PROGRAMS, RichFormatter, RichPublisher

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_CHUNK = 64 * 1024
# What a command's last words may take to arrive after it has ended.
_LINGER_S = 0.02
# An interrupted command has had its signal already; what ignores it is killed.
_INTERRUPT_GRACE_S = 1.0
# What `%notebook` can write of displays: so many of each of so many cells. Stock keeps all there ever were.
_CELLS_REMEMBERED, _DISPLAYS_REMEMBERED = 20, 20


class EndCell(IPyAutocall):
    """`exit` and `quit`: with or without parentheses they end the cell they stand in, and nothing else."""

    rewrite = False

    def __call__(self, code: object = None, keep_kernel: object = None) -> None:  # noqa: ARG002  stock has the choice
        """As sys.exit; an attached console leaves as well, and the kernel stays."""
        shell: Any = self._ip
        shell.payload_manager.write_payload({"source": "ask_exit", "keepkernel": True})
        raise SystemExit(code)


class RecentDisplays(dict[int, deque[Any]]):
    """By cell; the oldest make room."""

    def __missing__(self, execution_count: int) -> deque[Any]:
        """A cell's first one."""
        for oldest in list(self)[: max(0, len(self) - _CELLS_REMEMBERED + 1)]:
            del self[oldest]
        self[execution_count] = FewFormats(maxlen=_DISPLAYS_REMEMBERED)
        return self[execution_count]


class FewFormats(deque[Any]):
    """Without what programs read: it is as large as what people see, and no notebook shows it."""

    def append(self, output: Any) -> None:
        """The next output of a cell."""
        output.bundle = {mime: value for mime, value in output.bundle.items() if mime not in FOR_PROGRAMS}
        super().append(output)


class WorkbenchShell(ZMQInteractiveShell):
    """One per memory."""

    display_pub_class = Type(RichPublisher)
    exit_code: object = None
    """what the cell gave to exit() or sys.exit(), while its reply is made"""
    raised: BaseException | None = None
    """what ended the cell, while its reply is made"""
    _helpers: Mapping[str, Any] = helpers.offered({})
    _depth = 0
    """code that runs code by `run_cell` is 2"""

    def init_ipython_dir(self, ipython_dir: Any) -> None:  # noqa: ARG002
        """Where the agent's home will be; stock looks for it now, and makes another one if it is not there yet."""
        self.ipython_dir = os.path.join(os.environ.get("HOME", "/home/user"), ".ipython")

    def init_display_formatter(self) -> None:
        """As stock, with what programs read."""
        formatter: Any = RichFormatter(parent=self)
        self.display_formatter = formatter
        self.configurables.append(formatter)

    def init_history(self) -> None:
        """As stock, within bounds."""
        super().init_history()
        history: Any = self.history_manager
        history.outputs = RecentDisplays()

    def _tee(self, channel: str) -> Any:  # noqa: ARG002
        """Nothing: stock keeps whatever is printed in the kernel's memory as long as that lives."""
        return contextlib.nullcontext()

    def init_user_ns(self) -> None:
        """As stock, with our exit and the helpers."""
        super().init_user_ns()
        self._add_helpers()
        leave = EndCell(self)
        for name in ("exit", "quit"):
            self.user_ns[name] = self.user_ns_hidden[name] = leave

    def offer_helpers(self, environment: Mapping[str, str]) -> None:
        """Once the environment of this memory is known: it says which helpers there are."""
        for name in self._helpers:
            del self.user_ns[name], self.user_ns_hidden[name]
        self._helpers = helpers.offered(environment)
        self._add_helpers()
        cells.install(self, environment)

    def _add_helpers(self) -> None:
        # Hidden as long as a name means ours: one that the agent defines itself is the agent's.
        self.user_ns.update(self._helpers)
        self.user_ns_hidden.update(self._helpers)

    def system_piped(self, cmd: str) -> None:
        """`!cmd`: its output as it comes, both streams in one; in our group, so that an interrupt reaches it."""
        command = self.var_expand(cmd, depth=1)
        sys.stdout.flush()
        sys.stderr.flush()
        process = subprocess.Popen(
            [os.environ.get("SHELL", "/bin/sh"), "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        with process.stdout as pipe:
            try:
                _copy_until_ended(pipe, process)
            except BaseException:
                _end(process)
                raise
        self.user_ns["_exit_code"] = process.returncode
        if self.system_raise_on_error and process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, cmd)

    system = system_piped

    async def run_code(self, *args: Any, **kwargs: Any) -> bool:
        """As stock."""
        self._depth += 1
        try:
            return bool(await super().run_code(*args, **kwargs))
        finally:
            self._depth -= 1

    def should_run_async(self, raw_cell: str, **kwargs: Any) -> bool:
        """As stock, also for a cell with a `return` in it, which stock cannot compile."""
        told = cells.needs_loop(raw_cell)
        return bool(super().should_run_async(raw_cell, **kwargs)) if told is None else told

    def showtraceback(self, exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        """As stock, except that leaving is no error to be shown, and that a group is one."""
        # First of all, and also outside of the code's own frames, where a second interrupt may have ended up.
        if self._depth <= 1 and kwargs.get("running_compiled_code") and sys.exc_info()[0] is KeyboardInterrupt:
            be_deaf_to_interrupts()
        etype, value, tb = self._get_exc_info(exc_tuple)
        if self._depth <= 1:
            self.raised = value
            if isinstance(value, EndOfCell):
                self._last_traceback = []
                return
        if isinstance(value, SystemExit) and etype is SystemExit:
            self.exit_code = value.code
            self._last_traceback = []
            return
        if _has_group(value):
            # Stock prints it, frames of IPython's included, and tells nobody of an error.
            self._showtraceback(etype, value, self._group_lines(value, tb))
            return
        with _each_file_looked_up_once():
            super().showtraceback(exc_tuple, *args, **kwargs)

    def _group_lines(self, value: BaseException, tb: types.TracebackType | None) -> list[str]:
        """By Python's own means, from the agent's first line on, with cells called as everywhere else."""
        first = tb
        while first is not None and self.compile.format_code_name(first.tb_frame.f_code.co_filename) is None:
            first = first.tb_next

        def named(found: re.Match[str]) -> str:
            cell = self.compile.format_code_name(found["file"])
            return found[0] if cell is None else f"{' '.join(cell)}, line"

        text = "".join(traceback.format_exception(type(value), value, first or tb))
        return re.sub(r'File "(?P<file>[^"]*)", line', named, text).splitlines()

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple[Any, Any, Any]:
        etype, value, tb = super()._get_exc_info(exc_tuple)
        return etype, value, without_our_frames(tb)

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        hint = suggestion(evalue)
        if hint and stb and hint not in stb[-1]:
            stb = [*stb[:-1], f"{stb[-1]}{hint}"]
        super()._showtraceback(etype, f"{evalue}{hint}", stb)


# Libraries ask for it by this name to learn that they are in a notebook, and people in %config.
WorkbenchShell.__name__ = ZMQInteractiveShell.__name__


def _copy_until_ended(pipe: IO[bytes], process: subprocess.Popen[bytes]) -> None:
    """Until the command has ended and its output with it; one left in the background may keep the pipe open."""
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    ended = False
    while True:
        if ready.poll(_LINGER_S * 1000):
            data = os.read(pipe.fileno(), _CHUNK)
            if not data:
                process.wait()
                break
            sys.stdout.write(decode(data))
        elif ended:
            break
        ended = ended or process.poll() is not None
    if rest := decode(b"", True):
        sys.stdout.write(rest)


def _end(process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _INTERRUPT_GRACE_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            process.wait(0.05)
    if process.poll() is None:
        process.kill()
        process.wait()


def without_our_frames(tb: types.TracebackType | None) -> types.TracebackType | None:
    """The same traceback without the frames of this package: the agent did not write them and cannot change them.

    Nor did it write what they call, down to the next line of its own.
    """
    # As it was called where the zygote imported it, and as what is imported later is.
    ours = (_OURS, *(f"{folder}/" for folder in workbench_guest.__path__))
    frames = []
    below_ours = False
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        below_ours = file.startswith(ours) or (below_ours and not _is_agents(file))
        if not below_ours:
            frames.append(tb)
        tb = tb.tb_next
    kept: types.TracebackType | None = None
    for frame in reversed(frames):
        kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _is_agents(file: str) -> bool:
    return os.path.isabs(file) and not file.startswith((sys.prefix, sys.base_prefix))


@contextlib.contextmanager
def _each_file_looked_up_once() -> Iterator[None]:
    """Python goes through all modules for each frame of a traceback: that is seconds after a recursion without end."""
    module: Any = inspect
    look, found = module.getmodule, {}

    def look_once(thing: Any, _filename: str | None = None) -> types.ModuleType | None:
        if not isinstance(thing, types.FrameType):
            return look(thing, _filename)
        file = _filename or thing.f_code.co_filename
        if file not in found:
            found[file] = look(thing, _filename)
        return found[file]

    module.getmodule = look_once
    try:
        yield
    finally:
        module.getmodule = look


def be_deaf_to_interrupts() -> None:
    """What was asked to stop has stopped: another interrupt would only cost what is told of it, or the reply.

    Stock's kernel listens again from the next request on.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _has_group(value: BaseException | None) -> bool:
    while value is not None and not isinstance(value, BaseExceptionGroup):
        value = value.__context__
    return value is not None


def keep_quiet_about_leaving() -> None:
    """IPython warns that exit() is the way to leave; here it is not, and sys.exit() is as good."""
    warnings.filterwarnings("ignore", message="To exit: use 'exit', 'quit', or Ctrl-D")
