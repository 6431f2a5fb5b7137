"""What the host, a zygote and a sandbox's pid 1 say to each other: frozen values that cross as JSON.

The host imports this module too, so that both sides read one definition. How bytes and descriptors travel is left to
`channel`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing

# Inside every sandbox the agent is this user, whatever its id is outside.
INSIDE_UID = 1000
HOME, FILES, SCRATCH, SHM = "/home/user", "/mnt/files", "/tmp", "/dev/shm"


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
    guest_root: str
    """where the guest package is bound inside"""
    staging: str
    """an empty folder outside to build the new root on"""
    files_root: str
    """the folder outside whose children can become /mnt/files"""


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
    pin_cpus: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Furnish:
    """Give a prepared slot its files and its sizes. Descriptors: 0 its user namespace, 1 scratch, 2 shm."""

    slot: str
    files: str
    """the name of a child of `ZygotePlan.files_root`"""
    map_owner: bool
    """show files that are owned by INSIDE_UID on disk as the slot's own"""
    scratch_bytes: int
    scratch_inodes: int
    shm_bytes: int


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
class ZygoteReady:
    """Imports done, root built. `resident_bytes` is what a fork shares with it."""

    resident_bytes: int
    threads: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The last request worked; `pid` is set for a slot, as the host sees it."""

    pid: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A step failed; nothing of it is left to use."""

    step: str
    error: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlotReady:
    """From pid 1: walls are up, nothing runs yet. Descriptors: 0 its user namespace, 1 scratch, 2 shm."""

    steps_ms: dict[str, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """To pid 1: the environment that every process started from now on gets."""

    env: dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """To pid 1: start a process. Descriptors: 0 stdin, 1 stdout, 2 stderr, then 3 the payload of an entry."""

    process: str
    argv: tuple[str, ...] = ()
    """a program to execute; or"""
    entry: str | None = None
    """a module of the guest whose `main(payload)` runs in a fork of the warm interpreter"""
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    cwd: str = HOME


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
    ZygotePlan | SlotPlan | Furnish | Resize | Forget | ZygoteReady | Done | Failed | SlotReady
    | Configure | Start | Signal | Started | NotStarted | Exited
)  # fmt: skip
_KINDS: dict[str, type[typing.Any]] = {kind.__name__: kind for kind in typing.get_args(Message)}


def warm_up() -> None:
    """Look at every kind once, so that no clone of this process has to."""
    for name in _KINDS:
        _hints(name)


def encode(message: Message) -> bytes:
    """The bytes of one message."""
    return json.dumps({"kind": type(message).__name__, **dataclasses.asdict(message)}).encode()


def decode(data: bytes) -> Message:
    """The message in `data`.

    Raises:
        ValueError: not one of ours, or with wrong fields. The other side may be a hostile guest.
    """
    try:
        fields = json.loads(data)
        name = fields.pop("kind")
        kind, hints = _KINDS[name], _hints(name)
        if unknown := fields.keys() - hints.keys():
            raise ValueError(f"unknown fields {sorted(unknown)}")
        message: Message = kind(**{field: _shaped(value, hints[field]) for field, value in fields.items()})
        return message
    except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        raise ValueError(f"not a message: {problem}") from problem


@functools.cache
def _hints(name: str) -> dict[str, typing.Any]:
    return typing.get_type_hints(_KINDS[name])


def _shaped(value: typing.Any, hint: typing.Any) -> typing.Any:
    """`value` as `hint` wants it: tuples for lists, values for objects; anything else must already be it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and isinstance(value, list):
        inner = (args[0],) * len(value) if args[-1] is Ellipsis else args
        return tuple(_shaped(item, kind) for item, kind in zip(value, inner, strict=True))
    if origin is dict and isinstance(value, dict):
        return {str(key): _shaped(item, args[1]) for key, item in value.items()}
    if origin is typing.Literal and value in args:
        return value
    if origin is types.UnionType:
        return None if value is None else _shaped(value, args[0])
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
        fields = typing.get_type_hints(hint)
        return hint(**{name: _shaped(item, fields[name]) for name, item in value.items()})
    if hint is float and isinstance(value, int | float):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is not {hint}")
