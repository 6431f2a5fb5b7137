"""What /proc tells, about processes of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from workbench.engines import proc

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


def test_a_process_that_is_gone_counts_as_nothing() -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    gone = child.pid
    assert (proc.threads(gone), proc.cpu_seconds(gone), proc.resident_bytes(gone)) == (0, 0.0, 0)
    assert proc.memory(gone) == proc.Memory()
