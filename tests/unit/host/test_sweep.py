"""Sweeping after a host: only what was its own, whoever has its numbers now."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

from workbench.data_folder import DataFolder, RunFolder
from workbench.engines.proc import start_time
from workbench.host.sweep import group_folders, sweep, sweep_all
from workbench.model.ids import HostId


def dead_host(tmp_path: Path, **made: object) -> tuple[DataFolder, RunFolder]:
    data = DataFolder(tmp_path)
    data.make()
    run = data.run_folder(HostId("h-dead"))
    run.path.mkdir()
    run.journal.write_text(json.dumps({"event": "made", "sandbox": "sb-1", **made}) + "\n")
    data.socket.symlink_to("hosts/h-dead/host.sock")
    return data, run


def test_a_process_that_is_still_the_recorded_one_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "100"]) as left_over:
        data, run = dead_host(tmp_path, pid=left_over.pid, started=start_time(left_over.pid))
        sweep(data, run)
        assert left_over.wait(10) == -9


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "100"]) as stranger:
        data, run = dead_host(tmp_path, pid=stranger.pid, started=12345)
        sweep(data, run)
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_without_a_root_is_found_by_its_mark(tmp_path: Path) -> None:
    mark = {"WORKBENCH_SANDBOX": "sb-1"}
    with (
        subprocess.Popen(["sleep", "100"], env=mark, start_new_session=True) as marked,
        subprocess.Popen(["sleep", "100"], env={"WORKBENCH_SANDBOX": "sb-2"}) as other,
    ):
        data, run = dead_host(tmp_path, pid=None, started=None)
        sweep(data, run)
        assert marked.wait(10) == -9
        assert other.poll() is None
        other.kill()


def test_folders_and_socket_go_mounts_stay_and_the_loss_is_written_down(tmp_path: Path) -> None:
    data, run = dead_host(tmp_path, pid=None, started=None)
    (data.files / f"{run.ephemeral_prefix}sb-1").mkdir()
    (data.files / "kept").mkdir()
    sweep_all(data)
    assert [path.name for path in data.files.iterdir()] == ["kept"]
    assert not run.path.exists()
    assert not data.socket.is_symlink()
    (line,) = data.losses.read_text().splitlines()
    assert {key: json.loads(line)[key] for key in ("sandbox", "host")} == {"sandbox": "sb-1", "host": "h-dead"}


def test_a_living_host_is_not_swept(tmp_path: Path) -> None:
    data, run = dead_host(tmp_path, pid=None, started=None)
    lock = run.lock()
    assert lock is not None
    sweep_all(data)
    assert run.path.exists()
    os.close(lock)


def test_a_socket_link_of_another_host_is_left_alone(tmp_path: Path) -> None:
    data, run = dead_host(tmp_path, pid=None, started=None)
    data.socket.unlink()
    data.socket.symlink_to("hosts/h-alive/host.sock")
    sweep(data, run)
    assert data.socket.is_symlink()


def test_groups_of_others_that_vanish_meanwhile_do_not_stop_the_search(tmp_path: Path) -> None:
    """A guardian once died of a group that another test had just removed, and left its own behind."""
    (tmp_path / "session" / "workbench-h-1").mkdir(parents=True)
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for n in range(20):
                (tmp_path / f"other{n}" / "inner").mkdir(parents=True)
            for n in range(20):
                (tmp_path / f"other{n}" / "inner").rmdir()
                (tmp_path / f"other{n}").rmdir()

    stirring = threading.Thread(target=come_and_go)
    stirring.start()
    try:
        for _ in range(300):
            assert group_folders("workbench-h-1", [str(tmp_path)]) == [tmp_path / "session" / "workbench-h-1"]
    finally:
        over.set()
        stirring.join()
