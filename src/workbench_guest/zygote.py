"""The zygote: a warm interpreter with an image's libraries imported, which clones itself into sandboxes.

Started by the host with a clean environment and one inherited socket. It never runs an agent's code, holds no secret,
and its death costs nothing: the sandboxes it made are the host's children, not its own.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from typing import NoReturn

import workbench_guest
from workbench_guest import messages
from workbench_guest.channel import Channel, close_all
from workbench_guest.confine import identity, root, seccomp
from workbench_guest.confine import syscalls as sys_
from workbench_guest.init import Init
from workbench_guest.messages import (
    CALLS_NAME,
    Done,
    Failed,
    Forget,
    Furnish,
    Grow,
    Message,
    Resize,
    SlotPlan,
    SlotReady,
    ZygotePlan,
    ZygoteReady,
)

# Calls that wait for the host to accept them; who comes after that waits to connect.
_CALLS_BACKLOG = 128
# Imported before the first clone because a sandbox uses them before it may open a file, or at every start.
_ALWAYS = ("encodings.idna", "encodings.utf_8", "subprocess", "threading", "linecache", "traceback",
           "workbench_guest.entries.run_code", "workbench_guest.entries.program_kernel")  # fmt: skip


def enter_user_namespace(userns: int) -> NoReturn:
    """First stage of an ordinary user's zygote: join the host's user namespace, then start again inside it.

    The second start matters: the memory of a process belongs to the namespace it was executed in, and only if that is
    ours may the host look at what its sandboxes use.
    """
    sys_.setns(userns, sys_.CLONE_NEWUSER)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.close(userns)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1]])


def main() -> None:
    """Entry point of the process: the folder of this package, the control socket, and perhaps a user namespace."""
    _, outside_root, control_fd, *userns = sys.argv
    if userns:
        enter_user_namespace(int(userns[0]))
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    # A shell starts background jobs with these ignored, and so perhaps the host; programs inside would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    control = Channel(socket.socket(fileno=int(control_fd)))
    received = control.receive()
    if received is None or not isinstance(received[0], ZygotePlan):
        sys.exit("a zygote is started by the workbench host, with a plan")
    plan = received[0]
    step = "start"
    try:
        step = "import the image's libraries"
        _preload(plan)
        step = "make a mount namespace"
        sys_.unshare(sys_.CLONE_NEWNS)
        step = "build the root"
        root.build(plan)
        _look_inside(outside_root, plan.guest_root)
    except Exception as problem:  # noqa: BLE001  the host must learn which step failed, whatever it raised
        control.send(Failed(step=step, error=f"{type(problem).__name__}: {problem}"))
        sys.exit(1)
    _lie_still()
    _say_ready(control)
    Zygote(control).serve()


def _lie_still() -> None:
    """Everything that was imported is about to be forked many times."""
    gc.collect()
    # Without this the first collection in a child touches, and so copies, every page.
    gc.freeze()
    _forget_lookups()
    _join_heap_pages()


def _say_ready(control: Channel) -> None:
    threads = len(os.listdir(f"{root.BACKSTAGE_PROC}/{os.getpid()}/task"))
    control.send(ZygoteReady(resident_bytes=_resident_bytes(), threads=threads))


def _preload(plan: ZygotePlan) -> None:
    for name in (*_ALWAYS, *plan.preload):
        importlib.import_module(name)
    if plan.entry is not None:
        importlib.import_module(f"workbench_guest.entries.{plan.entry}").preload()
    messages.warm_up()
    # Built once here, found ready by every clone.
    seccomp.build_filter(pin_cpus=False)
    seccomp.build_filter(pin_cpus=True)


def _look_inside(outside: str, inside: str) -> None:
    """What is imported from now on comes from where the guest package is bound in the new root."""
    sys.path[sys.path.index(outside)] = inside
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == workbench_guest.__name__ and hasattr(module, "__path__"):
            module.__path__ = [f"{inside}/{name.replace('.', '/')}"]


def _forget_lookups() -> None:
    """The interpreter's cache of attributes is full of what the libraries looked up while they were imported.

    Every other lookup in a child would replace one of those, and copy the page of the name that it replaces: 0.8 MB.
    """
    clear = getattr(sys, "_clear_internal_caches", None) or getattr(sys, "_clear_type_cache", None)
    if clear is not None:
        clear()


def _join_heap_pages() -> None:
    """Everything that was imported lies still from now on, and is about to be forked many times."""
    with open(f"{root.BACKSTAGE_PROC}/self/maps", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        span, rights, _, _, _, *name = line.split(None, 5)
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in span.split("-"))
            sys_.join_pages(start, end)


def _resident_bytes() -> int:
    with open(f"{root.BACKSTAGE_PROC}/self/statm", encoding="ascii") as file:
        _, resident, shared, *_ = (int(field) for field in file.read().split())
    return (resident - shared) * resource.getpagesize()


class Zygote:
    """Serves one host, one request at a time, until the host is gone."""

    def __init__(self, control: Channel) -> None:
        self._control = control

    def serve(self) -> None:
        """Return when the host closes the socket."""
        while (received := self._control.receive()) is not None:
            request, descriptors = received
            try:
                answer: Message = self._answer(request, descriptors)
            except OSError as problem:
                answer = Failed(step=type(request).__name__, error=str(problem))
            close_all(descriptors)
            self._control.send(answer)

    def _answer(self, request: Message, descriptors: list[int]) -> Done:
        match request:
            case SlotPlan():
                return Done(pid=self._clone(request, descriptors))
            case Furnish():
                root.attach_files(request.slot, request.files, descriptors[0] if request.map_owner else None)
                if request.packages is not None:
                    root.attach_packages(request.slot, request.packages)
            case Resize():
                root.resize(descriptors[0], request.scratch_bytes, request.scratch_inodes)
                root.resize(descriptors[1], request.shm_bytes, request.scratch_inodes)
            case Forget():
                root.forget_slot(request.slot)
            case Grow():
                return Done(pid=self._grow(request, descriptors[0]))
            case _:
                raise OSError(f"a zygote does not know {type(request).__name__}")
        return Done()

    def _grow(self, request: Grow, control: int) -> int:
        """In our mount namespace, which slots of both get their files by, and with all that we have imported."""
        pid = sys_.clone_as_sibling(0)
        if pid == 0:
            _become_grown(request, control)
        return pid

    def _clone(self, plan: SlotPlan, descriptors: list[int]) -> int:
        root.add_slot(plan.slot)
        spaces = sys_.CLONE_NEWPID | sys_.CLONE_NEWNS | sys_.CLONE_NEWNET | sys_.CLONE_NEWIPC | sys_.CLONE_NEWUTS
        pid = sys_.clone_as_sibling(spaces, descriptors[1] if plan.join == "v2" else None)
        if pid == 0:
            become_sandbox(plan, descriptors)
        return pid


def _become_grown(request: Grow, control_fd: int) -> NoReturn:
    """In the copy: what is asked for, imported; then serve like the first. Never returns."""
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    (moved,) = _keep_only([control_fd])
    control = Channel(socket.socket(fileno=moved))
    try:
        for name in request.modules:
            importlib.import_module(name)
        _lie_still()
        _say_ready(control)
        Zygote(control).serve()
    except BaseException as problem:  # noqa: BLE001  nothing may unwind into the first one's loop
        _report_and_exit(control, "import what is to be warm", problem)
    os._exit(0)


def become_sandbox(plan: SlotPlan, descriptors: list[int]) -> NoReturn:
    """In the child: build the walls around ourselves, then be pid 1 of what is inside. Never returns."""
    control = Channel(socket.socket(fileno=descriptors[0]))
    steps = _Steps()
    try:
        if plan.join == "v1":
            for group in descriptors[1:]:
                # One thread writing 0 to `tasks` skips the grace period that `cgroup.procs` waits for.
                os.write(group, b"0")
        steps.begin("cgroup namespace")
        sys_.unshare(sys_.CLONE_NEWCGROUP)
        os.setsid()
        steps.begin("loopback")
        _raise_loopback()
        steps.begin("mounts")
        proc, scratch, shm = root.complete(plan)
        socket.sethostname("sandbox")
        steps.begin("user namespace")
        last_capability = identity.last_capability(proc)
        identity.become_nobody_else(plan, proc)
        userns = os.open("self/ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
        oom_preference = identity.open_oom_preference(proc)
        steps.begin("rights")
        identity.give_up_rights(plan, last_capability)
        steps.begin("descriptors")
        calls = _listen_for_calls()
        kept = _keep_only([control.detach(), oom_preference, userns, scratch, shm, calls])
        control = Channel(socket.socket(fileno=kept[0]))
        steps.end()
        init = Init(control, oom_preference=kept[1], open_files=plan.open_files)
        control.send(SlotReady(steps_ms=steps.spent_ms), tuple(kept[2:]))
        close_all(kept[2:])
        # Only now: whoever waits for this slot need not wait for a fork as well.
        init.fork_spare()
        init.serve()
    except BaseException as problem:  # noqa: BLE001  nothing may unwind into the zygote's own loop
        _report_and_exit(control, steps.current, problem)
    os._exit(0)


def _report_and_exit(control: Channel, step: str, problem: BaseException) -> NoReturn:
    try:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        error = f"{type(problem).__name__}: {problem} ({os.path.basename(where.filename)}:{where.lineno})"
        control.send(Failed(step=step, error=error))
    finally:
        os._exit(1)


def _keep_only(descriptors: list[int]) -> list[int]:
    """Move these to 3, 4, ... and close all others; 0, 1 and 2 become /dev/null.

    BARRIER: a descriptor left over from the host is a way out; held by the proof's `descriptors` row.
    """
    high = [_duplicate_above(descriptor, 100) for descriptor in descriptors]
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    low = [os.dup2(descriptor, 3 + index, inheritable=False) for index, descriptor in enumerate(high)]
    sys_.close_above(3 + len(low))
    return low


def _duplicate_above(descriptor: int, minimum: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, minimum)


def _listen_for_calls() -> int:
    """For the host, which accepts: whoever connects from inside is known to it by the kernel's word."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(f"\0{CALLS_NAME}")
        listening.listen(_CALLS_BACKLOG)
        return listening.detach()


def _raise_loopback() -> None:
    up_and_running, set_flags = 0x1 | 0x40, 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh22x", b"lo", up_and_running))


class _Steps:
    """How long each step took, and which one is under way if it fails."""

    def __init__(self) -> None:
        self.spent_ms: dict[str, float] = {}
        self.current = "control group"
        self._since = time.perf_counter()

    def begin(self, name: str) -> None:
        self.end()
        self.current = name

    def end(self) -> None:
        now = time.perf_counter()
        self.spent_ms[self.current] = round((now - self._since) * 1000, 3)
        self._since = now


if __name__ == "__main__":
    main()
