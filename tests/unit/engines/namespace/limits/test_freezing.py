"""Which switch a group is frozen by, with folders that stand in for control groups."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workbench.engines import proc
from workbench.engines.namespace.limits.cgroup_v1 import CgroupV1Group
from workbench.engines.namespace.limits.cgroup_v2 import CgroupV2Group
from workbench.engines.namespace.limits.keeper import LimitGroup
from workbench.engines.namespace.limits.rlimits import RlimitGroup

BOUND_S = 20.0


@pytest.fixture
def root() -> Iterator[int]:
    """A process with a child."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 1000; true"]) as child:
        # Until the child has become another program the shell waits for it in a way that no signal reaches.
        eventually(lambda: [proc.name(pid) for pid in proc.tree(child.pid)] == ["sh", "sleep"])
        yield child.pid
        for pid in proc.tree(child.pid):
            subprocess.run(["/bin/kill", "-KILL", str(pid)], check=False)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def v1(folder: Path, *controllers: str) -> CgroupV1Group:
    return CgroupV1Group(dict.fromkeys(("memory", "cpu", "pids", *controllers), folder), 2)


def test_on_version_1_by_the_state_of_the_freezer(tmp_path: Path) -> None:
    state = tmp_path / "freezer.state"
    state.write_text("THAWED")
    group = v1(tmp_path, "freezer")
    assert group.freeze()
    assert state.read_text().startswith("FROZEN")
    group.thaw()
    assert state.read_text().startswith("THAWED")


def test_on_version_2_by_the_group_and_only_its_events_say_that_it_is(tmp_path: Path) -> None:
    switch, events = tmp_path / "cgroup.freeze", tmp_path / "cgroup.events"
    switch.write_text("0")
    events.write_text("populated 1\nfrozen 0\n")
    group = CgroupV2Group(tmp_path, 2)
    assert not group.freeze()
    assert switch.read_text() == "1"
    events.write_text("populated 1\nfrozen 1\n")
    assert group.freeze()
    group.thaw()
    assert switch.read_text() == "0"


def test_where_there_is_no_switch_every_process_is_stopped(tmp_path: Path, root: int) -> None:
    groups: list[LimitGroup] = [v1(tmp_path), CgroupV2Group(tmp_path, 2), RlimitGroup("one", 0, {0: 0})]
    for group in groups:
        group.adopt(root)
        eventually(group.freeze)
        assert [proc.states(pid) for pid in proc.tree(root)] == [{"T"}, {"T"}], type(group)
        group.thaw()
        eventually(lambda: not any("T" in proc.states(pid) for pid in proc.tree(root)))


def test_a_switch_that_is_gone_is_an_error_for_who_freezes(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="freezer"):
        v1(tmp_path, "freezer").freeze()
