from __future__ import annotations

import errno
import os

import pytest

from workbench_guest.memory_file import memory_file


def _no_memfd(_name: str) -> int:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.mark.parametrize("refused", [False, True])
def test_what_is_written_is_read_by_another_descriptor(monkeypatch: pytest.MonkeyPatch, *, refused: bool) -> None:
    if refused:
        monkeypatch.setattr(os, "memfd_create", _no_memfd)
    descriptor = memory_file("one")
    try:
        os.pwrite(descriptor, b"kept", 0)
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            assert file.read() == b"kept"
        assert os.fstat(descriptor).st_nlink == 0, "it has no name"
    finally:
        os.close(descriptor)
