"""The life of a kernel in two halves: built once in the zygote, given sockets and threads in every fork.

The second half is lived again by a snapshot that is woken: the same objects, other sockets.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import json
import logging
import mmap
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import ipykernel.ipkernel
import zmq
from ipykernel.control import ControlThread
from ipykernel.kernelapp import IPKernelApp
from IPython.core.profiledir import ProfileDir
from jupyter_client.session import Session
from tornado.ioloop import IOLoop
from traitlets.config import Config
from zmq.eventloop.zmqstream import ZMQStream

from workbench_guest import afterfork, font_cache, working_folder
from workbench_guest.confine import forking
from workbench_guest.corrections.cell import cells
from workbench_guest.kernel import carrying, left_behind, rehearsal
from workbench_guest.kernel import shell as shell_module
from workbench_guest.kernel.copying import Copier, Kernel
from workbench_guest.kernel.flight_recorder import TOTAL_BYTES, FlightRecorder
from workbench_guest.kernel.kernel import NoSubshells, WorkbenchKernel
from workbench_guest.kernel.streams import HIGH_WATER_MARK, Printed, Publisher
from workbench_guest.rich import display as rich

# The host subscribes as soon as it has connected, which it does while we start.
_SUBSCRIBED_TIMEOUT_MS = 20_000
_ASIAN_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei",
    "Droid Sans Fallback", "IPAGothic", "UnDotum",
)  # fmt: skip
# By which the debugger sends itself cells.
_OWN_SHELL = "inproc://shell"


class _Folder(ProfileDir):
    """A profile folder that is not made before someone writes into it."""

    def check_dirs(self) -> None:
        """Nothing: stock makes six folders here."""

    def move(self, location: str) -> None:
        """To the home of a fork; stock refuses to be moved."""
        parts = ("security", "log", "startup", "pid", "static")
        # Not by assignment, which makes the folders.
        self._trait_values.update({f"{part}_dir": os.path.join(location, part) for part in parts}, location=location)


class App(IPKernelApp):
    """Never launched: extensions and magics ask the singleton what kernel they are in."""

    def init_crash_handler(self) -> None:
        """Nothing: the zygote's own errors are the host's to hear of."""


def build() -> WorkbenchKernel:
    """In the zygote, once, with one thread: everything that needs no socket."""
    home = os.environ.get("HOME", "/home/user")
    config = Config()
    # For whoever asks for past cells: no file, and no thread that writes it.
    config.HistoryManager.hist_file = ":memory:"
    config.ProfileDir.location = f"{home}/.ipython/profile_default"
    # A debugger's warning about the interpreter that we chose.
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    app = App.instance(config=config, log=logging.getLogger("ipykernel"))
    app.log.setLevel(logging.CRITICAL)
    app.session = Session(parent=app, key=b"rehearsal")
    profile = _Folder(parent=app)
    with _few_modules():
        kernel = WorkbenchKernel.instance(
            parent=app,
            session=app.session,
            iopub_socket=rehearsal.Nowhere(),
            profile_dir=profile,
            shell_channel_thread=NoSubshells(),
            log=app.log,
            user_ns={},
        )
    app.kernel, app.profile_dir = kernel, profile
    app.init_shell()
    app.init_extensions()
    app.init_pdb()
    rich.prepare(kernel.shell)
    _attach_pyplot()
    shell_module.keep_quiet_about_leaving()
    cells.prepare(kernel.shell)
    rehearsal.rehearse(kernel)
    forking.prepare()
    return kernel


@contextlib.contextmanager
def _few_modules() -> Any:
    """Stock's constructor walks over all modules, for a debugger, and would copy a page of each into every fork."""

    class _Sys:
        modules: ClassVar[dict[str, Any]] = {}

        def __getattr__(self, name: str) -> Any:
            return getattr(sys, name)

    module: Any = ipykernel.ipkernel
    module.sys = _Sys()
    try:
        yield
    finally:
        module.sys = sys


def _attach_pyplot() -> None:
    """pyplot was imported before there was a shell; what it does on import in a notebook is done now."""
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is None:
        return
    pyplot.switch_backend("module://matplotlib_inline.backend_inline")
    from matplotlib_inline import backend_inline

    backend_inline._enable_matplotlib_integration()  # noqa: SLF001  what its own import would have called
    # Where the machine has fonts for Chinese, Japanese and Korean, text in them falls back to those.
    matplotlib: Any = sys.modules["matplotlib"]
    families = {font.name for font in sys.modules["matplotlib.font_manager"].fontManager.ttflist}
    asian = [name for name in _ASIAN_FONTS if name in families][:1]
    matplotlib.rcParams["font.family"] = [*matplotlib.rcParams["font.family"], *asian]


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What the host passes: listening sockets, pipes for descriptors 1 and 2, memory for what is printed last."""

    shell: int
    stdin: int
    control: int
    iopub: int
    stdout_read: int
    stdout_write: int
    stderr_read: int
    stderr_write: int
    recorder: int


class Life:
    """One kernel in one fork. `prepare` costs most of the time and needs nothing of the host's."""

    def __init__(self, kernel: WorkbenchKernel) -> None:
        self.kernel = kernel
        self._session: Any = kernel.session
        self._copier = Copier()
        self._buried: list[Any] = []

    def prepare(self) -> None:
        """Sockets that are not bound yet, and their loops."""
        kernel: Any = self.kernel
        context: zmq.Context[Any] = zmq.Context()
        kernel.session.pid = os.getpid()
        kernel.session.session = str(uuid.uuid4())
        kernel.ident = str(uuid.uuid4())
        self._sockets = {name: context.socket(zmq.ROUTER) for name in ("shell", "stdin", "control")}
        self._sockets["iopub"] = context.socket(zmq.XPUB)
        for name, made in self._sockets.items():
            made.linger = 1000
            if name != "iopub":
                made.router_handover = 1
        # BARRIER: stock drops output when its reader is slow; held by tests/kernel/test_floods.py.
        self._sockets["iopub"].setsockopt(zmq.XPUB_NODROP, 1)
        self._sockets["iopub"].sndhwm = HIGH_WATER_MARK
        self._loop = IOLoop()
        self._publisher = Publisher(self._sockets["iopub"], kernel.session)
        self._context = context
        self._give_sockets()

    def warm_up(self) -> None:
        """After `prepare`, if there is time before the order."""
        rehearsal.warm_up(self.kernel, self._loop)

    def begin(self, payload: bytes, passed: Sequence[int]) -> None:
        """Take the host's descriptors and be ready for cells."""
        order = json.loads(payload)
        descriptors = Descriptors(*passed)
        self._session.key = order["key"].encode()
        note = self._move_into(order["working_folder"])
        self._bind(descriptors)
        self._take_over_streams(descriptors)
        afterfork.refresh()
        readers = {"stdout": descriptors.stdout_read, "stderr": descriptors.stderr_read}
        assert self.kernel.memory is not None
        out, err = (
            Printed(self._session, self._publisher, name, reader, FlightRecorder(self.kernel.memory, name))
            for name, reader in readers.items()
        )
        sys.stdout, sys.stderr = out, err
        self.kernel._stdout, self.kernel._stderr = out, err  # noqa: SLF001  as stock's constructor has it
        self._open(out, err)
        if note:
            err.write(note)

    def begin_again(self, payload: bytes, passed: Sequence[int]) -> None:
        """As `begin`, for a snapshot that was woken: whatever the agent's memory holds on to stays the same object."""
        descriptors = Descriptors(*passed)
        self._copier.before(set(passed))
        self.prepare()
        self._session.key = json.loads(payload)["key"].encode()
        self._bind(descriptors)
        self._take_over_streams(descriptors)
        out, err = self._printed()
        assert self.kernel.memory is not None
        out.move(self._publisher, descriptors.stdout_read, FlightRecorder(self.kernel.memory, "stdout"))
        err.move(self._publisher, descriptors.stderr_read, FlightRecorder(self.kernel.memory, "stderr"))
        left_behind.revive_pools()
        self._open(out, err)

    def _printed(self) -> tuple[Printed, Printed]:
        kernel: Any = self.kernel
        return kernel._stdout, kernel._stderr  # noqa: SLF001

    def _bind(self, descriptors: Descriptors) -> None:
        for name, bound in self._sockets.items():
            number = getattr(descriptors, name)
            self._copier.listens(number)
            bound.setsockopt(zmq.USE_FD, number)
            # The name is only what the socket is called; it listens already.
            bound.bind(f"ipc://@{name}")
            bound.setsockopt(zmq.USE_FD, -1)
        self._sockets["shell"].bind(_OWN_SHELL)

    def _open(self, out: Printed, err: Printed) -> None:
        """Last of all: from here on cells come in."""
        self._publisher.watch(out)
        self._publisher.watch(err)
        self._until_subscribed()
        self._publisher.on_first_message(self._sockets["control"], self._open_control)
        self._publisher.start()
        self._copier.began()

    def _move_into(self, folder: str) -> str:
        """What is to be said about it: one that cannot be used is no reason to have no kernel."""
        note = working_folder.enter(folder)
        sys.path[0:0] = [""] if "" not in sys.path else []
        sys.argv = [""]
        home = os.environ.get("HOME", "/home/user")
        shell = self.kernel.shell
        assert shell is not None
        # Not by assignment, which makes the folder.
        shell._trait_values["ipython_dir"] = f"{home}/.ipython"  # noqa: SLF001
        profile: Any = self.kernel.profile_dir
        profile.move(f"{home}/.ipython/profile_default")
        shell.init_environment()
        shell.offer_helpers(os.environ)
        # The backend that was attached before the fork, for every library that looks for it.
        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        font_cache.begin()
        return note

    def _take_over_streams(self, descriptors: Descriptors) -> None:
        # Where the interpreter's own last words go: read by the host, also after we are gone.
        last_words = os.dup(2)
        os.set_inheritable(last_words, False)
        os.dup2(descriptors.stdout_write, 1)
        os.dup2(descriptors.stderr_write, 2)
        os.close(descriptors.stdout_write)
        os.close(descriptors.stderr_write)
        faulthandler.enable(os.fdopen(last_words, "w", buffering=1, closefd=False), all_threads=False)
        self.kernel.memory = self._publisher.memory = mmap.mmap(descriptors.recorder, TOTAL_BYTES)
        os.close(descriptors.recorder)

    def _give_sockets(self) -> None:
        kernel: Any = self.kernel
        publisher = self._publisher
        shell = kernel.shell
        assert shell is not None
        iopub = publisher.background_socket
        kernel.iopub_thread, kernel.iopub_socket = publisher, iopub
        kernel.stdin_socket = self._sockets["stdin"]
        kernel.shell_stream = ZMQStream(self._sockets["shell"], self._loop)
        for part in (shell.displayhook, shell.display_pub):
            part.session, part.pub_socket = kernel.session, iopub
        shell.displayhook.topic = kernel._topic("execute_result")  # noqa: SLF001
        app = kernel.parent
        app.iopub_thread, app.iopub_socket, app.session = publisher, iopub, kernel.session

    def _open_control(self) -> None:
        """Only attached notebooks use it, and most sessions never have one: its thread begins with its first message.

        With it what a debugger needs: a stream to debugpy, a way to our own shell, which modules are not the user's.
        """
        kernel: Any = self.kernel
        before = left_behind.open_descriptors()
        thread = kernel.control_thread = ControlThread(daemon=True)
        kernel.control_stream = ZMQStream(self._sockets["control"], thread.io_loop)
        kernel.debugpy_stream = ZMQStream(self._context.socket(zmq.STREAM), thread.io_loop)
        kernel.debug_shell_socket = self._context.socket(zmq.DEALER)
        kernel.debug_shell_socket.connect(_OWN_SHELL)
        if (debugger := getattr(kernel, "debugger", None)) is not None:
            debugger.debugpy_client.debugpy_stream = kernel.debugpy_stream
            debugger.shell_socket = kernel.debug_shell_socket
            files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
            debugger.kernel_modules[:] = [file for file in files if file]
            kernel.debugpy_stream.on_recv(kernel.dispatch_debugpy, copy=False)
            thread.io_loop.add_callback(kernel.poll_stopped_queue)
        kernel.control_stream.on_recv(kernel.dispatch_control, copy=False)
        thread.start()
        self._copier.opened_since(before)

    def _until_subscribed(self) -> None:
        """Not one message may leave before the host listens: it would go nowhere."""
        iopub = self._sockets["iopub"]
        if not iopub.poll(_SUBSCRIBED_TIMEOUT_MS):
            raise SystemExit("the host does not listen")
        iopub.recv()

    def run(self) -> int:
        """Serve until told to shut down; in a snapshot that was woken, the same again from the start."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            self._loop.make_current()
            self.kernel.start()
            order = self._serve()
            if order is None:
                return 0
            payload, passed = order
            if (path := json.loads(payload).get("pack")) is not None:
                # Not to be a kernel again, but to write its variables down.
                carrying.pack(self.kernel.agents_names(), path)
                # Exit handlers clean up what the original still uses.
                os._exit(0)
            self.begin_again(payload, passed)

    def _serve(self) -> tuple[bytes, list[int]] | None:
        """None at the end; in a snapshot, once it is woken, the order that woke it.

        Forks are made here and not where they are asked for: nothing of a loop lies on the stack of the copy.
        """
        while True:
            self._loop.start()
            wish, self.kernel.wish = self.kernel.wish, None
            if wish is None:
                return None
            try:
                order = self._copier.copy(self._copied(), wish)
            except Exception as problem:  # noqa: BLE001  the kernel itself goes on as if nobody had asked
                wish.answer({"status": "declined", "reason": f"{type(problem).__name__}: {problem}"})
                continue
            if order is not None:
                return order

    def _copied(self) -> Kernel:
        return Kernel(
            publisher=self._publisher,
            loop=self._loop.asyncio_loop,
            streams=self._printed(),
            threads=(self._publisher.thread, self._control_thread()),
            bury=self._bury,
        )

    def _control_thread(self) -> Any:
        return getattr(self.kernel, "control_thread", None)

    def _bury(self) -> None:
        """In a copy, while numbers of descriptors are still what their owners think: those must never act again."""
        kernel: Any = self.kernel
        atexit.unregister(self._publisher.stop)
        loops = [self._loop, self._publisher.io_loop]
        if (thread := self._control_thread()) is not None:
            loops.append(thread.io_loop)
        for loop in loops:
            _end_loop(loop)
        self._buried.append((self._context, self._sockets, self._publisher, kernel.shell_stream, thread, loops))
        # It has a descriptor of its own, by a number that will soon mean something else.
        if kernel.memory is not None:
            kernel.memory.close()
        kernel.control_thread = kernel.control_stream = kernel.debugpy_stream = None
        kernel.debug_shell_socket = None


def _end_loop(loop: Any) -> None:
    """Without telling the kernel's tables of what it waited for: those are the original's, and it lives on them."""
    inner = loop.asyncio_loop
    with contextlib.suppress(Exception):
        vars(inner)["_selector"].__dict__["_selector"].close()
        for end in ("_ssock", "_csock"):
            os.close(vars(inner)[end].detach())
    # Or it would close itself, as it thinks, when it is collected.
    vars(inner)["_closed"] = True
