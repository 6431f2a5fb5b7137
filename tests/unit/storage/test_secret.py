"""The secret that links are signed with: made once, the same for all, and read by nobody else."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.errors import StoreUnavailable
from workbench.storage.secret import kept_secret


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    kept_secret.cache_clear()
    yield
    kept_secret.cache_clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "links.key"


def test_it_is_made_for_its_owner_alone_and_stays(path: Path) -> None:
    before = os.umask(0)
    try:
        secret = kept_secret(path)
    finally:
        os.umask(before)
    assert len(secret) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["links.key"]
    kept_secret.cache_clear()
    assert kept_secret(path) == secret


def test_processes_that_make_it_at_once_have_the_same(path: Path) -> None:
    code = "import pathlib, sys; from workbench.storage.secret import kept_secret as k; sys.stdin.read(1); "
    code += "print(k(pathlib.Path(sys.argv[1])).hex())"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(6)
    ]
    told = {one.communicate(b"x", timeout=30)[0] for one in running}
    assert told == {f"{kept_secret(path).hex()}\n".encode()}
    assert os.listdir(path.parent) == ["links.key"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_one_is_told_and_not_used(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StoreUnavailable, match="is damaged: remove the file"):
        kept_secret(path)
    path.unlink()
    assert len(kept_secret(path)) == 32


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_one_that_others_can_read_is_not_used(path: Path, mode: int) -> None:
    secret = kept_secret(path)
    path.chmod(mode)
    kept_secret.cache_clear()
    with pytest.raises(StoreUnavailable, match="can be read by others"):
        kept_secret(path)
    path.chmod(0o600)
    assert kept_secret(path) == secret


def test_nothing_else_is_read_in_its_place(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    (tmp_path / "other").write_bytes(b"x" * 32)
    path.symlink_to(tmp_path / "other")
    with pytest.raises(StoreUnavailable, match="cannot be read or made"):
        kept_secret(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreUnavailable, match="cannot be read or made"):
        kept_secret(path)
