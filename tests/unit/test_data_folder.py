"""Where things lie, who holds a lock, and sockets in deep folders."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from workbench.data_folder import DataFolder, reach, release
from workbench.model.ids import HostId, MountId


def test_a_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    data.make()
    data.make()
    for folder in (data.path, data.hosts, data.files):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_only_one_host_is_active_until_it_lets_go(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    first = data.become_active()
    assert first is not None
    assert data.become_active() is None
    os.close(first)
    second = data.become_active()
    assert second is not None
    os.close(second)


def test_run_folders_are_listed_with_their_hosts(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    assert list(data.run_folders()) == []
    data.make()
    for name in ("h-2", "h-1"):
        data.run_folder(HostId(name)).path.mkdir()
    assert [run.host for run in data.run_folders()] == ["h-1", "h-2"]
    assert data.run_folder(HostId("h-1")).group_name == "workbench-h-1"


def test_a_socket_in_a_deep_folder_can_be_bound_and_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 100) / ("b" * 100)
    folder.mkdir(parents=True)
    name = reach(folder / "s.sock")
    assert len(name) < 100
    before = set(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(name)
        server.listen()
        client.connect(name)
    release(name)
    assert len(set(os.listdir("/proc/self/fd"))) < len(before)


def test_a_lock_that_was_removed_while_someone_waited_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = DataFolder(tmp_path)
    data.make()
    mount, real = MountId("mine"), fcntl.flock
    removed: list[int] = []

    def remove_first(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(descriptor)
            data.mount_lock(mount).unlink()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    lock = data.use_mount(mount)
    assert lock is not None
    assert data.use_mount(mount) is None
    os.close(lock)
