"""Which way of holding limits this host has: tried in order, with the reason for each that did not work."""

from __future__ import annotations

import os
from dataclasses import dataclass

from workbench.engines.namespace.limits.cgroup_v1 import CgroupV1
from workbench.engines.namespace.limits.cgroup_v2 import CgroupV2
from workbench.engines.namespace.limits.keeper import LimitKeeper
from workbench.engines.namespace.limits.rlimits import Rlimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The keeper to use, and why the better ones were passed over."""

    keeper: LimitKeeper
    passed_over: tuple[tuple[str, str], ...]


def choose(name: str, shared_bytes: int) -> Choice:
    """The first that works, by making and removing a group."""
    cpus = len(os.sched_getaffinity(0))
    passed: list[tuple[str, str]] = []
    for kind in (CgroupV2, CgroupV1):
        try:
            return Choice(keeper=kind(name, cpus), passed_over=tuple(passed))
        except OSError as problem:
            passed.append((kind.kind, problem.strerror or str(problem)))
    return Choice(keeper=Rlimits(shared_bytes), passed_over=tuple(passed))
