"""What the watchdog charges a sandbox for, and the CPUs that it binds it to."""

from __future__ import annotations

import os
import subprocess

import pytest

from workbench.engines import proc
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


def _over_the_limit(monkeypatch: pytest.MonkeyPatch, ended: set[int], first: set[int]) -> tuple[RlimitGroup, list[int]]:
    """A tree of pid 1, a kernel and its snapshot, over the limit when it was counted; and who is killed in it."""
    killed: list[int] = []
    sizes = {1: MIB, 2: STANDARD.memory_bytes // 2, 3: STANDARD.memory_bytes}
    monkeypatch.setattr(proc, "tree", lambda _: list(sizes))
    monkeypatch.setattr(proc, "memory", lambda pid: Memory(sizes[pid], sizes[pid]))
    monkeypatch.setattr(proc, "resident_bytes", sizes.__getitem__)
    monkeypatch.setattr(proc, "threads", lambda _: 1)
    monkeypatch.setattr(proc, "goes_first", lambda pid: pid in first)
    monkeypatch.setattr(proc, "states", lambda pid: set() if pid in ended else {"S"})
    monkeypatch.setattr(os, "listdir", lambda _: [])
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    group = RlimitGroup("g", ZYGOTE, {0: 0})
    group.adopt(1)
    group._tier = STANDARD
    return group, killed


def test_a_snapshot_goes_before_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    group, killed = _over_the_limit(monkeypatch, ended=set(), first={2})
    group.watch()
    assert killed == [2]


def test_nobody_pays_for_what_ended_while_it_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    group, killed = _over_the_limit(monkeypatch, ended={3}, first=set())
    group.watch()
    assert killed == []


def test_a_guest_whose_processes_end_without_end_is_held_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    group, killed = _over_the_limit(monkeypatch, ended={2}, first=set())
    for _ in range(3):
        group.watch()
    assert killed == [3]
