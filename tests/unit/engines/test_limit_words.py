"""Which limit a failed process speaks of in its last words."""

from __future__ import annotations

import pytest

from workbench.engines.limit_words import limits_named
from workbench.model.process import Limit

_FORK = b"""\
Traceback (most recent call last):
  File "<code>", line 2, in <module>
    os.fork()
BlockingIOError: [Errno 11] Resource temporarily unavailable
"""
_SPAWN = b"""\
    self.pid = _fork_exec(
               ^^^^^^^^^^^
BlockingIOError: [Errno 11] Resource temporarily unavailable
"""


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (b"OSError: [Errno 24] Too many open files: '/dev/null'", Limit.OPEN_FILES),
        (b"cat: x: Too many open files\n", Limit.OPEN_FILES),
        (b"OSError: [Errno 28] No space left on device", Limit.DISK),
        (b"head: error writing 'standard output': No space left on device", Limit.DISK),
        (b"MemoryError\n", Limit.MEMORY),
        (b"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB", Limit.MEMORY),
        (b"OSError: [Errno 12] Cannot allocate memory", Limit.MEMORY),
        (b"terminate called after throwing an instance of 'std::bad_alloc'", Limit.MEMORY),
        (_FORK, Limit.PROCESSES),
        (_SPAWN, Limit.PROCESSES),
        (b"bash: fork: retry: Resource temporarily unavailable", Limit.PROCESSES),
        (b"sh: 0: Cannot fork", Limit.PROCESSES),
        (b"RuntimeError: can't start new thread", Limit.PROCESSES),
    ],
)
def test_the_words_of_the_c_library_name_the_limit(words: bytes, limit: Limit) -> None:
    assert limits_named(words) == (limit,)


@pytest.mark.parametrize(
    "words",
    [b"", b"ValueError: no", b"BlockingIOError: [Errno 11] Resource temporarily unavailable", b"\xff\xfe\0"],
)
def test_other_words_name_none(words: bytes) -> None:
    assert limits_named(words) == ()


def test_several_can_be_met_at_once() -> None:
    assert set(limits_named(b"No space left on device\nToo many open files")) == {Limit.DISK, Limit.OPEN_FILES}
