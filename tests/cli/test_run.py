"""`scripts/run`, which `make run` calls: what it prints is pasted into another terminal, and works."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.host.conftest import settings
from tests.host.support import WAIT_S, host_pids, output_of, run_folders, workbench

from workbench.settings import Settings

__all__ = ["settings"]

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def started(settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """It, and what it said until it was ready."""
    process = subprocess.Popen(
        [ROOT / "scripts/run", Path(sys.executable).parent / "workbench"],
        env={**os.environ, **replace(settings, listen_port=0).to_env()},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        yield process, said
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


def pasted(line: str, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_it_prints_runs_a_first_cell_and_ctrl_c_ends_everything(settings: Settings) -> None:
    assert shutil.which("curl"), "the first command uses curl: apt-get install -y curl"
    with started(settings) as (process, said):
        assert re.search(r"^    key  wbk_\w+", said, re.MULTILINE)
        make, run = re.findall(r"^    (curl .*)$", said, re.MULTILINE)
        assert '"state":"cold"' in pasted(make)
        assert '"text":"42"' in pasted(run)
        (python,) = re.findall(r"^    (OPEN_WORKBENCH_URL=.*)$", said, re.MULTILINE)
        assert pasted(python) == "42\n"
        assert "Ctrl-C ends the server, the host" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert run_folders(settings) == []
    with started(settings) as (process, said):
        assert "wbk_" not in said
        (make_key,) = re.findall(r"^    KEY=\$\((.*)\)$", said, re.MULTILINE)
        key = pasted(make_key, settings.to_env()).strip()
        run = re.findall(r"^    (curl .*)$", said, re.MULTILINE)[1]
        assert '"text":"42"' in pasted(run, {"KEY": key})


def test_a_host_that_ran_before_is_left_alone(settings: Settings) -> None:
    assert output_of(workbench(settings, "exec", "-s", "mine", "x = 5"))[0] == 0
    before = host_pids(settings)
    with started(settings) as (process, said):
        assert "Ctrl-C ends the server only" in said
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    assert set(host_pids(settings)) == set(before)
    assert output_of(workbench(settings, "exec", "-s", "mine", "x")) == (0, "5\n", "")
