"""What the watchdog charges a sandbox for, and the CPUs that it binds it to."""

from __future__ import annotations

import os
import subprocess

from workbench.engines.namespace.limits.rlimits import RlimitGroup
from workbench.engines.proc import Memory
from workbench.model.tier import STANDARD

MIB = 2**20
ZYGOTE = 100 * MIB


def _charged(*tree: Memory) -> int:
    return RlimitGroup("g", ZYGOTE, {0: 0})._charged(list(tree))


def _warm(private: int) -> Memory:
    """A fork of the zygote: a quarter of what is shared among four, and pages of its own."""
    return Memory(ZYGOTE // 4 + private, private)


def test_pages_of_the_zygote_are_not_charged() -> None:
    assert _charged(_warm(MIB), _warm(50 * MIB)) == 51 * MIB


def test_a_process_that_was_executed_is_charged_for_all_that_is_its_own() -> None:
    assert _charged(_warm(MIB), Memory(100 * MIB, 100 * MIB)) == 101 * MIB


def test_pages_shared_among_its_own_processes_are_charged_once() -> None:
    shared = Memory(ZYGOTE // 4 + 450 * MIB, 0)
    assert _charged(_warm(MIB), shared, shared) == 901 * MIB


def test_many_small_processes_hide_no_more_than_the_size_of_the_zygote() -> None:
    executed = [Memory(10 * MIB, 10 * MIB)] * 100
    assert _charged(_warm(MIB), *executed) >= 1000 * MIB - ZYGOTE


def test_a_sandbox_that_is_gone_is_charged_nothing() -> None:
    assert _charged() == 0
    assert _charged(Memory(), Memory()) == 0


def test_a_process_that_kept_an_older_mask_is_bound_by_the_next_look() -> None:
    group = RlimitGroup("g", ZYGOTE, dict.fromkeys(sorted(os.sched_getaffinity(0)), 0))
    with subprocess.Popen(["sleep", "30"]) as child:
        try:
            group.adopt(child.pid)
            group.apply(STANDARD)
            os.sched_setaffinity(child.pid, os.sched_getaffinity(0))
            group.watch()
            assert tuple(os.sched_getaffinity(child.pid)) == group.cpus
        finally:
            child.kill()


def test_cpus_are_taken_before_the_first_process_and_given_back() -> None:
    load = {0: 0, 1: 0}
    group, other = RlimitGroup("g", ZYGOTE, load), RlimitGroup("h", ZYGOTE, load)
    assert (group.cpus, other.cpus) == ((0,), (1,))
    group.remove()
    other.remove()
    assert load == {0: 0, 1: 0}
