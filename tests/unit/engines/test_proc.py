"""What /proc tells, about processes of the test's own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.engines import proc
from workbench.engines.namespace.limits import cgroup_v2

# A name that is no text and that looks like the end of the field it stands in.
_STRANGE = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff) R 1 (\\xfe'); print(flush=True); sys.stdin.read()"


@pytest.fixture
def strange() -> Iterator[int]:
    """A process with a strange name and a variable of ours."""
    with subprocess.Popen(
        [sys.executable, "-c", _STRANGE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"A": "b", "MARK": f"test-{os.getpid()}"},
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        yield child.pid
        child.stdin.close()


def test_a_strange_name_does_not_hide_the_numbers(strange: int) -> None:
    assert proc.threads(strange) == 1
    assert proc.cpu_seconds(strange) >= 0
    held = proc.memory(strange)
    assert proc.resident_bytes(strange) > held.proportional_bytes > held.private_bytes > 0


def test_a_process_is_found_by_the_whole_of_a_variable(strange: int) -> None:
    assert proc.with_variable(f"MARK=test-{os.getpid()}".encode()) == [strange]
    assert proc.with_variable(f"MARK=test-{os.getpid()}"[:-1].encode()) == []
    assert not proc.has_variable(strange, b"A=b", os.geteuid() + 1)


def test_a_tree_has_its_root_and_all_below(strange: int) -> None:
    assert strange in proc.tree(os.getpid())
    assert proc.tree(strange) == [strange]
    assert proc.tree(0) == []


def test_a_strange_name_hides_neither_the_parent_nor_the_start(strange: int) -> None:
    assert proc.parent(strange) == os.getpid()
    started = proc.start_time(strange)
    assert started is not None
    assert started >= (proc.start_time(os.getpid()) or 0) > 0
    assert cgroup_v2._descends(strange, os.getpid())
    assert not cgroup_v2._descends(os.getpid(), strange)


def test_marked_processes_are_killed_and_nobody_else(strange: int) -> None:
    mark = f"MARK=test-{os.getpid()}"
    assert proc.kill_marked(mark[:-1].encode()) == 0
    assert proc.kill_marked(mark.encode()) == 1
    assert os.waitid(os.P_PID, strange, os.WEXITED | os.WNOWAIT) is not None
    assert proc.kill_marked(mark.encode()) == 0


def test_a_file_without_a_name_is_seen_open_once_and_only_on_its_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1_000_000))
    device = tmp_path.stat().st_dev
    before = proc.unlinked_files([os.getpid()], device, most=10**6).bytes
    with path.open("rb"), path.open("rb"):
        path.unlink()
        found = proc.unlinked_files([os.getpid()], device, most=10**6)
        assert found.complete
        assert 1_000_000 <= found.bytes - before < 1_100_000
        assert proc.unlinked_files([os.getpid()], device + 1, most=10**6).bytes == 0
        assert not proc.unlinked_files([os.getpid()], device, most=1).complete
    assert proc.unlinked_files([os.getpid()], device, most=10**6).bytes == before


def test_a_file_that_is_only_mapped_is_seen_by_root(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1_000_000))
    # By hand: Python's own mmap keeps a descriptor.
    maps = (
        "import ctypes, os, sys\n"
        f"fd = os.open({str(path)!r}, os.O_RDONLY); os.unlink({str(path)!r})\n"
        "libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p\n"
        "libc.mmap(None, ctypes.c_size_t(1000000), 1, 1, fd, ctypes.c_size_t(0)); os.close(fd)\n"
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", maps], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = proc.unlinked_files([child.pid], tmp_path.stat().st_dev, most=10**6)
        assert (found.bytes >= 1_000_000) == (os.geteuid() == 0)


def test_a_process_that_is_gone_counts_as_nothing() -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    gone = child.pid
    assert (proc.threads(gone), proc.cpu_seconds(gone), proc.resident_bytes(gone)) == (0, 0.0, 0)
    assert proc.memory(gone) == proc.Memory()
    assert (proc.parent(gone), proc.start_time(gone)) == (None, None)
    assert proc.unlinked_files([gone], 0, most=1) == proc.Unlinked(0, complete=True)


_LEADERLESS = """
import ctypes, os, sys, threading, time
kept = bytearray(64 << 20)
file = open(sys.argv[1], "wb")
os.unlink(sys.argv[1])
os.posix_fallocate(file.fileno(), 0, 8 << 20)
def stay():
    time.sleep(0.3)
    os.write(1, b"ready")
    time.sleep(1000)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({exit}, 0)
"""


def test_a_process_whose_first_thread_is_gone_still_shows_what_it_holds(tmp_path: Path) -> None:
    """The leader's own entries in /proc are empty then: memory and files could be hidden behind it."""
    number = {"x86_64": 60, "aarch64": 93}[platform.machine()]
    code = _LEADERLESS.replace("{exit}", str(number))
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "f")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"ready"
        try:
            assert proc.resident_bytes(process.pid) > 64 << 20
            assert proc.memory(process.pid).private_bytes > 60 << 20
            unlinked = proc.unlinked_files([process.pid], os.stat(tmp_path).st_dev, most=10_000)
            assert unlinked.bytes >= 8 << 20
        finally:
            process.kill()
