"""What the host, a zygote and a sandbox's pid 1 say to each other: frozen values that cross as JSON.

The host imports this module too, so that both sides read one definition. How bytes and descriptors travel is left to
`channel`.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import json
import types
import typing

# Inside every sandbox the agent is this user, whatever its id is outside.
INSIDE_UID = 1000
# What pid 1 is called, and its forks while they wait to be told what to be.
OWN_NAME = "workbench"
# By which what runs inside asks the workbench for something; of an abstract socket in the sandbox's own network.
CALLS_VARIABLE, CALLS_NAME = "WORKBENCH_CALLS", "workbench-calls"
HOME, FILES, PACKAGES, SCRATCH, SHM = "/home/user", "/mnt/files", "/mnt/packages", "/tmp", "/dev/shm"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One read-only piece of the host's file system that a sandbox sees."""

    source: str
    target: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZygotePlan:
    """All that a zygote needs to become a warm copy of one image. Descriptor 0 is the user namespace, if any."""

    binds: tuple[Bind, ...]
    links: tuple[tuple[str, str], ...]
    """(what it points to, where it stands)"""
    texts: tuple[tuple[str, str], ...]
    """(path, content) of the small files that are written, not bound"""
    devices: tuple[str, ...]
    preload: tuple[str, ...]
    entry: str | None
    """the entry whose `preload()` builds what every fork of it will have"""
    guest_root: str
    """where the guest package is bound inside"""
    staging: str
    """an empty folder outside to build the new root on"""
    files_root: str
    """the folder outside whose children can become /mnt/files"""
    packages_root: str
    """the folder outside whose children can become /mnt/packages"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlotPlan:
    """One sandbox to prepare. Descriptors: 0 its control socket, then what it joins its control group by."""

    slot: str
    outside_uid: int | None
    """the uid it has on the host; None keeps the zygote's"""
    join: typing.Literal["none", "v1", "v2"]
    scratch_bytes: int
    scratch_inodes: int
    shm_bytes: int
    rlimits: dict[str, int]
    """of pid 1 and all that it starts, by their names in `resource`"""
    open_files: int
    """per process that pid 1 starts; its own limit is higher"""
    cpus: tuple[int, ...]
    """that pid 1 and all that it starts are bound to; empty where a control group caps the CPU"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Furnish:
    """Give a prepared slot its files. Descriptor 0 is its user namespace."""

    slot: str
    files: str
    """the name of a child of `ZygotePlan.files_root`"""
    map_owner: bool
    """show files that are owned by INSIDE_UID on disk as the slot's own"""
    packages: str | None = None
    """the name of a child of `ZygotePlan.packages_root`"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """New sizes for a live sandbox. Descriptors: 0 scratch, 1 shm."""

    scratch_bytes: int
    scratch_inodes: int
    shm_bytes: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """A slot is gone: unmount what the zygote still holds for it."""

    slot: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """To a zygote: a second one that has imported more, a copy of it and a child of the host. Descriptor 0 is its
    control socket, where it says that it is ready.
    """

    modules: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteReady:
    """Imports done, root built. `resident_bytes` is what a fork shares with it."""

    resident_bytes: int
    threads: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The last request worked; `pid` is set for a slot and for a grown zygote, as the host sees it."""

    pid: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A step failed; nothing of it is left to use."""

    step: str
    error: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlotReady:
    """From pid 1: walls are up, nothing runs yet. Descriptors: 0 its user namespace, 1 scratch, 2 shm, 3 a socket that
    listens for calls of those inside.
    """

    steps_ms: dict[str, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """To pid 1: the environment that every process started from now on gets."""

    env: dict[str, str]
    keep_prepared: str | None = None
    """the entry that will be started; processes prepared for others are ended"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """To pid 1: have a process ready that has done all of an entry's work that needs no order.

    With descriptors the entry begins before its order: 0 is what it is told, then its own.
    """

    entry: str
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    """for an entry that begins"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unprepared:
    """From pid 1: what was prepared for an entry has ended while it waited."""

    entry: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """To pid 1: start a process. Descriptors: 0 stdin, 1 stdout, 2 stderr; for an entry 3 its payload, then its own."""

    process: str
    argv: tuple[str, ...] = ()
    """a program to execute; or"""
    entry: str | None = None
    """a module of the guest whose `main(payload, passed)` runs in a fork of the warm interpreter"""
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    cwd: str = HOME
    line: bool = False
    """keep a line to pid 1, to offer snapshots of itself over"""
    snapshot: str | None = None
    """not a new process but this one, which lies dormant; its variables and folder are its own"""


# How gladly the kernel ends a process when memory runs out: of pid 1 0, of what the agent runs this much.
OOM_PREFERENCE_OF_CHILDREN = 300


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """To pid 1, from a process with a line: a dormant copy of itself. Descriptor 0 is the channel to it."""

    snapshot: str
    pid: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """From pid 1: it lies dormant and can be started."""

    snapshot: str
    pid: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """To pid 1: end a dormant process."""

    snapshot: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """From pid 1: a dormant process ended by itself, or was killed."""

    snapshot: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """To pid 1: a signal for a process and its whole group."""

    process: str
    number: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """From pid 1: it runs, under this pid inside."""

    process: str
    pid: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """From pid 1: it never began."""

    process: str
    error: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """From pid 1: it ended. Free space is told because a full disk leaves no other trace."""

    process: str
    status: int
    """as waitpid gives it"""
    cpu_s: float
    peak_bytes: int
    scratch_free_bytes: int
    scratch_free_inodes: int


Message = (
    ZygotePlan | SlotPlan | Furnish | Resize | Forget | Grow | ZygoteReady | Done | Failed | SlotReady
    | Configure | Prepare | Start | Signal | Started | NotStarted | Exited
    | Offer | Offered | Discard | Withdrawn | Unprepared
)  # fmt: skip
_KINDS: dict[str, type[typing.Any]] = {kind.__name__: kind for kind in typing.get_args(Message)}


_Reader = collections.abc.Callable[[typing.Any], typing.Any]


def warm_up() -> None:
    """Compile the reader of every kind, so that no clone of this process has to."""
    for name in _KINDS:
        _readers(name)


def encode(message: Message) -> bytes:
    """The bytes of one message."""
    fields = {name: getattr(message, name) for name in message.__slots__}
    return json.dumps({"kind": type(message).__name__, **fields}, default=_nested).encode()


def _nested(value: Bind) -> dict[str, str]:
    return {name: getattr(value, name) for name in value.__slots__}


def decode(data: bytes) -> Message:
    """The message in `data`.

    Raises:
        ValueError: not one of ours, or with wrong fields. The other side may be a hostile guest.
    """
    try:
        fields = json.loads(data)
        name = fields.pop("kind")
        message: Message = _object(_KINDS[name], _readers(name))(fields)
        return message
    except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        raise ValueError(f"not a message: {problem}") from problem


@functools.cache
def _readers(name: str) -> dict[str, _Reader]:
    """For each field of a kind, what makes its value from JSON's or raises TypeError.

    Looked up once per process: walking type hints for every message would touch, and so copy, many shared pages.
    """
    return {field: _reader(hint) for field, hint in typing.get_type_hints(_KINDS[name]).items()}


def _reader(hint: typing.Any) -> _Reader:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _many(_reader(args[0])) if args[-1] is Ellipsis else _row([_reader(arg) for arg in args])
    if origin is dict:
        return _table(_reader(args[1]))
    if origin is typing.Literal:
        return _one_of(args)
    if origin is types.UnionType:
        return _optional(_reader(args[0]))
    if dataclasses.is_dataclass(hint):
        nested = {field: _reader(inner) for field, inner in typing.get_type_hints(hint).items()}
        return _object(typing.cast("type[typing.Any]", hint), nested)
    return _real if hint is float else _exactly(hint)


def _exactly(kind: type[typing.Any]) -> _Reader:
    def read(value: typing.Any) -> typing.Any:
        # `type`, not `isinstance`: true is not a number here.
        if type(value) is not kind:
            raise TypeError(f"{value!r} is not {kind.__name__}")
        return value

    return read


def _real(value: typing.Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _many(item: _Reader) -> _Reader:
    as_list = _exactly(list)
    return lambda value: tuple([item(one) for one in as_list(value)])


def _row(items: list[_Reader]) -> _Reader:
    as_list = _exactly(list)

    def read(value: typing.Any) -> tuple[typing.Any, ...]:
        if len(as_list(value)) != len(items):
            raise TypeError(f"{value!r} does not have {len(items)} parts")
        return tuple([item(one) for item, one in zip(items, value, strict=True)])

    return read


def _table(item: _Reader) -> _Reader:
    as_dict = _exactly(dict)
    return lambda value: {key: item(one) for key, one in as_dict(value).items()}


def _one_of(allowed: tuple[typing.Any, ...]) -> _Reader:
    def read(value: typing.Any) -> typing.Any:
        if value not in allowed:
            raise TypeError(f"{value!r} is not one of {allowed}")
        return value

    return read


def _optional(item: _Reader) -> _Reader:
    return lambda value: None if value is None else item(value)


def _object(kind: type[typing.Any], readers: dict[str, _Reader]) -> _Reader:
    as_dict = _exactly(dict)
    return lambda value: kind(**{field: readers[field](one) for field, one in as_dict(value).items()})
