"""Secrets of the data folder: made when they are first needed, and the same for every process from then on."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import stat
from pathlib import Path

from workbench.errors import StoreUnavailable

_BYTES = 32


@functools.lru_cache(maxsize=16)
def kept_secret(path: Path) -> bytes:
    """What the file has, which only its owner can read; made if it is missing.

    Raises:
        StoreUnavailable: it cannot be read or made, others can read it, or it is no secret of ours.
    """
    try:
        try:
            secret, mode = _read(path)
        except FileNotFoundError:
            _make(path)
            secret, mode = _read(path)
    except OSError as problem:
        raise StoreUnavailable(f"the secret in {path} cannot be read or made: {problem.strerror}") from problem
    # BARRIER: who reads it can make links to any file; held by tests/unit/storage/test_secret.py.
    if mode & 0o077:
        raise StoreUnavailable(
            f"the secret in {path} can be read by others: remove the file, as links may have been made with it, or "
            "close it by chmod 600 if nobody has seen it"
        )
    if len(secret) != _BYTES:
        raise StoreUnavailable(f"the secret in {path} is damaged: remove the file, and ask for new links")
    return secret


def _read(path: Path) -> tuple[bytes, int]:
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(held, _BYTES + 1), stat.S_IMODE(os.fstat(held).st_mode)
    finally:
        os.close(held)


def _make(path: Path) -> None:
    """Whole or not at all, and once among several processes."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(made, 0o600)
        os.write(made, secrets.token_bytes(_BYTES))
        os.fsync(made)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(made)
        draft.unlink()
