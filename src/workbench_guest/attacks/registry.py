"""What an attack is, what it is given, and the list of all of them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from enum import StrEnum

_MODULES = ("system_calls", "namespaces", "sockets", "network", "proc", "files", "processes", "pid1", "ipc", "secrets",
            "host_facts", "limits", "memory")  # fmt: skip


class Judge(StrEnum):
    """How the host tells whether an attack got through."""

    REFUSED = "refused"
    """it must fail"""
    CANARY = "canary"
    """it may read something, but not what the host put there"""
    SEEN = "seen"
    """it may do something, but the host must not see it"""
    BOUNDED = "bounded"
    """it may take something, but not more than the tier has"""


class Outside(StrEnum):
    """Where a control runs."""

    PLAIN = "plain"
    """as the user who asks for the proof, on the host"""
    NAMESPACES = "namespaces"
    """as root of fresh namespaces, with every capability there and without a filter"""


BOTH = (Outside.PLAIN, Outside.NAMESPACES)


class Refused(Exception):
    """The attack did not work; the message says how. Any other exception but OSError is a fault of the attack's."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the host lays out for the attacks; the canary itself is never among it."""

    folder: str = "/tmp"
    shm: str = "/dev/shm"
    files: str = "/mnt/files"
    packages: str = "/mnt/packages"
    secret_file: str = ""
    """a file of the host's that holds the canary"""
    other_file: str = ""
    """the same in another session's files"""
    files_root: str = ""
    """the host's folder of all sessions' files"""
    marker: str = ""
    """a word in the arguments of a process of the host's, and a name for what an attack creates"""
    tcp_port: int = 0
    tcp6_port: int = 0
    abstract_name: str = ""
    socket_path: str = ""
    ipc_key: int = 0
    queue: str = ""
    shm_name: str = ""
    victim_pid: int = 0
    """a process of the host's that may be killed"""
    target_pid: int = 1
    """whom the attack on pid 1 aims at"""
    setuid_program: str = ""
    device_node: str = ""
    read_only: tuple[str, ...] = ()
    """files of the image"""
    image_roots: tuple[str, ...] = ()
    """folders that a sandbox is meant to see, wherever they lie"""
    canary_halves: tuple[str, str] = ("", "")
    """the canary in two pieces, so that looking for it does not put it where it is looked for"""
    other_layout: str = ""
    """what the row on shared layouts found in another sandbox; outside, in a fork of its own"""
    ceiling: float = 0.0
    """where an attack on a limit stops by itself"""
    hold_s: float = 0.0
    """how long it keeps what it took: long enough for a watchdog, where there is one"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How much an attack on a limit took, and whether something other than its own ceiling ended it."""

    amount: float
    detail: str
    ended: bool


Run = Callable[[Given], "str | Measured"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One row of the proof. `run` returns what it got, or raises Refused or OSError."""

    name: str
    description: str
    run: Run
    judge: Judge = Judge.REFUSED
    outside: tuple[Outside, ...] = BOTH
    alone: bool = False
    """wants a sandbox to itself, because it may end it or fill it"""
    time_limit_s: float = 5.0


_ATTACKS: dict[str, Attack] = {}


def register(attack: Attack) -> None:
    """Add a row."""
    if attack.name in _ATTACKS:
        raise ValueError(f"two attacks are named {attack.name}")
    _ATTACKS[attack.name] = attack


def attack(
    name: str,
    description: str,
    *,
    judge: Judge = Judge.REFUSED,
    outside: tuple[Outside, ...] = BOTH,
    alone: bool = False,
    time_limit_s: float = 5.0,
) -> Callable[[Run], Run]:
    """Make the decorated function a row."""

    def add(run: Run) -> Run:
        register(
            Attack(
                name=name,
                description=description,
                run=run,
                judge=judge,
                outside=outside,
                alone=alone,
                time_limit_s=time_limit_s,
            )
        )
        return run

    return add


def all_attacks() -> dict[str, Attack]:
    """Every row by name, in the order of the modules."""
    for module in _MODULES:
        importlib.import_module(f"workbench_guest.attacks.{module}")
    return dict(_ATTACKS)
