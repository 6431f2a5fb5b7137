"""What a client and a host say to each other over the host's socket.

Frames are a length and a msgpack value. Nothing here is a path, a descriptor or an object: a host on another machine
could be spoken to in the same words. `Hello` and its answers never change; everything else may, with PROTOCOL.
"""

from __future__ import annotations

import struct

import msgspec

from workbench.errors import HostIncompatible
from workbench.model.process import Limit, Stream
from workbench.model.runtime import PYTHON
from workbench.wire.calls import AnyCallAnswer, AnyCallRequest
from workbench.wire.kernels import AnyKernelAnswer, AnyKernelRequest
from workbench.wire.values import Request, Value

PROTOCOL = 7
_LENGTH = struct.Struct(">I")
# The payload of a process is the largest thing that is sent.
MAX_FRAME = 32 * 1024 * 1024


class Hello(Request, frozen=True, kw_only=True):
    """First on every connection."""

    protocol: int
    version: str


class HelloAnswer(Value, frozen=True, kw_only=True, tag=True):
    """Who answers."""

    protocol: int
    version: str
    host: str
    draining: bool


class Status(Request, frozen=True, kw_only=True):
    """What the host is and does."""


class CapabilityReport(Value, frozen=True, kw_only=True):
    """One promise of the engine."""

    barrier: str
    grade: str
    by: str


class LostSandbox(Value, frozen=True, kw_only=True):
    """A sandbox that ended with an earlier host."""

    sandbox: str
    host: str
    when: str


class StatusAnswer(Value, frozen=True, kw_only=True, tag=True):
    """A host's own account of itself."""

    host: str
    version: str
    protocol: int
    pid: int
    engine: str
    level: str
    limits_by: str
    uptime_s: float
    sandboxes: int
    pooled: int
    draining: bool
    warning: str
    capabilities: tuple[CapabilityReport, ...]
    lost: tuple[LostSandbox, ...]
    ahead: int = 0
    """sandboxes that wait, besides those of the pool, with a runtime's kernel started"""


class CreateSandbox(Request, frozen=True, kw_only=True):
    """A new sandbox. The caller chooses the id, and so can ask again after a lost answer."""

    sandbox: str
    tier: str = "standard"
    files: str | None = None
    """the id of a mount that outlives the sandbox; without one /mnt/files goes when it goes"""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    kernel: bool = False
    """a kernel will be started in it first: one that is prepared ahead is kept for that"""
    warm: str = ""
    """the warm set of the image that code in it imports soon, if the caller knows; a wish"""
    runtime: str = PYTHON
    """of the kernel that will be started first, by its name"""


class SandboxReport(Value, frozen=True, kw_only=True, tag=True):
    """What is known of a sandbox."""

    sandbox: str
    engine: str
    tier: str
    isolated: bool
    limits_by: str
    files: str | None
    warning: str
    age_s: float
    gone: str = ""
    """why it ended, if it has"""
    frozen: bool = False
    """nothing in it runs until something is asked of it"""
    attached_idle_s: float | None = None
    """since an attached Jupyter client last asked for something, or its door was opened; None if it never was"""


class DescribeSandbox(Request, frozen=True, kw_only=True):
    """One sandbox."""

    sandbox: str


class ListSandboxes(Request, frozen=True, kw_only=True):
    """All that live."""


class SandboxList(Value, frozen=True, kw_only=True, tag=True):
    """In order of age."""

    sandboxes: tuple[SandboxReport, ...]


class CloseSandbox(Request, frozen=True, kw_only=True):
    """End it; nothing happens if it has ended.

    Raises `conflict` if it is to be ended only if it is frozen, and is not; nothing happened.
    """

    sandbox: str
    if_frozen: bool = False


class FreezeSandbox(Request, frozen=True, kw_only=True):
    """Let nothing in it run until a request needs it, which thaws it first."""

    sandbox: str


class FreezeReport(Value, frozen=True, kw_only=True, tag=True):
    """Whether it is frozen now; if not, somebody uses it, or the machine cannot do this."""

    sandbox: str
    frozen: bool


class ThawSandbox(Request, frozen=True, kw_only=True):
    """Let it run again; nothing happens if it does."""

    sandbox: str


class ChangeTier(Request, frozen=True, kw_only=True):
    """Other limits for a live sandbox."""

    sandbox: str
    tier: str


class MeasureSandbox(Request, frozen=True, kw_only=True):
    """What it uses."""

    sandbox: str


class UsageReport(Value, frozen=True, kw_only=True, tag=True):
    """Now, and at most."""

    memory_bytes: int
    peak_memory_bytes: int
    cpu_s: float
    processes: int


class StartProcess(Request, frozen=True, kw_only=True):
    """Start one; the answer comes when it runs. The caller chooses its id."""

    sandbox: str
    process: str
    argv: tuple[str, ...] = ()
    entry: str | None = None
    payload: bytes = b""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str = "/home/user"
    stdin: bool = False


class WriteStdin(Request, frozen=True, kw_only=True):
    """Input for it; `end` closes the stream."""

    sandbox: str
    process: str
    data: bytes = b""
    end: bool = False


class SignalProcess(Request, frozen=True, kw_only=True):
    """A signal for it and its group."""

    sandbox: str
    process: str
    signal: int


class ReadOutput(Request, frozen=True, kw_only=True):
    """What it has printed from `offset` on; waits up to `wait_s` for something new."""

    sandbox: str
    process: str
    stream: Stream
    offset: int = 0
    limit: int = 1024 * 1024
    wait_s: float = 0.0


class OutputReport(Value, frozen=True, kw_only=True, tag=True):
    """A piece of a stream."""

    data: bytes
    offset: int
    """where it begins"""
    ended: bool
    """nothing more will come after this piece"""
    dropped_bytes: int
    """printed beyond what the spool keeps"""


class WaitProcess(Request, frozen=True, kw_only=True):
    """Its end, or, after `wait_s`, that it still runs."""

    sandbox: str
    process: str
    wait_s: float


class ProcessReport(Value, frozen=True, kw_only=True, tag=True):
    """How it is, or how it ended."""

    process: str
    running: bool
    code: int | None = None
    signal: int | None = None
    lost: bool = False
    reason: str = ""
    limits: tuple[Limit, ...] = ()
    cpu_s: float = 0.0
    peak_bytes: int = 0


class ForgetProcess(Request, frozen=True, kw_only=True):
    """End it if it runs, and drop its spool."""

    sandbox: str
    process: str


class RefreshImage(Request, frozen=True, kw_only=True):
    """Look for the image again: one was built. Sandboxes made from now on use it, those that live keep theirs."""


class Drain(Request, frozen=True, kw_only=True):
    """Take no new sandboxes, make room for another host, and leave with the last sandbox."""


class Stop(Request, frozen=True, kw_only=True):
    """End all sandboxes and leave."""


class Done(Value, frozen=True, kw_only=True, tag=True):
    """It is done."""


class Problem(Value, frozen=True, kw_only=True, tag=True):
    """An error of the tree in errors.py."""

    code: str
    message: str
    context: dict[str, str]


AnyRequest = (
    Hello | Status | CreateSandbox | DescribeSandbox | ListSandboxes | CloseSandbox | FreezeSandbox | ThawSandbox
    | ChangeTier | MeasureSandbox | StartProcess | WriteStdin | SignalProcess | ReadOutput | WaitProcess | ForgetProcess
    | RefreshImage | Drain | Stop | AnyCallRequest | AnyKernelRequest
)  # fmt: skip
AnyAnswer = (
    HelloAnswer | StatusAnswer | SandboxReport | SandboxList | FreezeReport | UsageReport | OutputReport | ProcessReport
    | Done | Problem | AnyCallAnswer | AnyKernelAnswer
)  # fmt: skip


class Asked(Value, frozen=True, kw_only=True):
    """A request with the number that its answer will carry: answers may overtake each other."""

    number: int
    request: AnyRequest


class Answered(Value, frozen=True, kw_only=True):
    """The answer to one request."""

    number: int
    answer: AnyAnswer


class _Numbered(msgspec.Struct):
    number: int = 0


_numbered = msgspec.msgpack.Decoder(_Numbered)
_encoder = msgspec.msgpack.Encoder()
_asked = msgspec.msgpack.Decoder(Asked)
_answered = msgspec.msgpack.Decoder(Answered)


def frame(message: Asked | Answered) -> bytes:
    """The bytes to send."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def frame_length(header: bytes) -> int:
    """How many bytes follow the four of `header`.

    Raises:
        HostIncompatible: more than anyone of us would send.
    """
    (length,) = _LENGTH.unpack(header)
    if length > MAX_FRAME:
        raise HostIncompatible(f"a frame of {length} bytes; the other side does not speak our protocol")
    return int(length)


def number_of(body: bytes) -> int:
    """Under which number an answer must go out, also to a request that cannot be understood; 0 if there is none."""
    try:
        return _numbered.decode(body).number
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return 0


def read_asked(body: bytes) -> Asked:
    """Raises: HostIncompatible if it is not a request that we know."""
    try:
        return _asked.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise HostIncompatible(f"not a request of protocol {PROTOCOL}: {problem}") from problem


def read_answered(body: bytes) -> Answered:
    """Raises: HostIncompatible if it is not an answer that we know."""
    try:
        return _answered.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise HostIncompatible(f"not an answer of protocol {PROTOCOL}: {problem}") from problem
