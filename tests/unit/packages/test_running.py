"""Package managers are run within bounds, and leave nobody behind."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.host.support import eventually

from workbench.packages import running
from workbench.packages.running import environment, run

ENV = {"PATH": "/usr/bin:/bin"}


def _alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


async def test_what_a_program_says_and_how_it_ends_is_told(tmp_path: Path) -> None:
    ran = await run(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], env=ENV, cwd=tmp_path, timeout_s=20)
    assert (ran.code, ran.stdout, ran.stderr) == (3, f"out\n{tmp_path}\n", "err\n")


async def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await run(["sh", "-c", "sleep 300 & echo $! > pid; wait"], env=ENV, cwd=tmp_path, timeout_s=0.5)
    eventually(lambda: not _alive(int((tmp_path / "pid").read_text())), "it has ended")


async def test_who_is_cancelled_leaves_no_program_behind(tmp_path: Path) -> None:
    task = asyncio.create_task(
        run(["sh", "-c", "echo $$ > part && mv part pid; sleep 300"], env=ENV, cwd=tmp_path, timeout_s=60)
    )
    while not (tmp_path / "pid").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _alive(int((tmp_path / "pid").read_text()))


async def test_one_that_a_program_left_behind_holds_nobody_up(tmp_path: Path) -> None:
    ran = await run(["sh", "-c", "sleep 300 & echo $!"], env=ENV, cwd=tmp_path, timeout_s=20)
    assert ran.code == 0
    eventually(lambda: not _alive(int(ran.stdout)), "it has ended")


async def test_more_output_than_is_kept_is_dropped_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_OUTPUT_BYTES", 10)
    ran = await run(["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"], env=ENV, cwd=tmp_path, timeout_s=20)
    assert ran.stdout == "x" * 10


async def test_a_missing_program_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await run(["no-such-program"], env=ENV, cwd=tmp_path, timeout_s=20)


def test_of_the_servers_variables_a_package_manager_gets_only_what_leads_to_the_network() -> None:
    given = {
        "HOME": "/home/x",
        "https_proxy": "http://proxy",
        "OPENAI_API_KEY": "sk-1",
        "WORKBENCH_KEY": "wbk",
        "X": "",
    }
    assert environment(given, npm_config_cache="/c") == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/home/x",
        "https_proxy": "http://proxy",
        "npm_config_cache": "/c",
    }
