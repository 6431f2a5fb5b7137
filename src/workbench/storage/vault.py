"""FernetVault: secrets of connections sealed by a key that is in a file of the data folder, or in a setting.

Several keys may be named, the newest first: that one seals, and all unseal. So a key is replaced without a moment in
which nothing can be read: put a new one first, seal everything anew, take the old one away.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import StoreUnavailable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

SETTING = "WORKBENCH_CONNECTIONS_KEY"
_DIGEST_BYTES = 32
# Of some keys at most; more is no file of ours.
_MOST_BYTES = 4096


class FernetVault:
    """A Vault. The keys are read when they are first needed, so that who connects nothing needs none."""

    def __init__(self, keys: Callable[[], tuple[str, ...]]) -> None:
        self._keys = keys
        self._opened: MultiFernet | None = None

    def seal(self, context: str, secret: bytes) -> bytes:
        """As the contract has it."""
        return self._fernet().encrypt(_of(context) + secret)

    def unseal(self, context: str, sealed: bytes) -> bytes:
        """As the contract has it."""
        from cryptography.fernet import InvalidToken

        try:
            opened = self._fernet().decrypt(sealed)
        except InvalidToken:
            raise _other_key() from None
        # BARRIER: who can write to the database would put one user's secret beside another's account, and have it sent
        # there; held by tests/unit/storage/test_vault.py.
        if not secrets.compare_digest(opened[:_DIGEST_BYTES], _of(context)):
            raise StoreUnavailable(
                "a sealed secret belongs to something else than it is kept with: the records were changed by hand; "
                "remove that connection and connect it again"
            )
        return opened[_DIGEST_BYTES:]

    def resealed(self, sealed: bytes) -> bytes:
        """As the contract has it."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet().rotate(sealed)
        except InvalidToken:
            raise _other_key() from None

    def forget_keys(self) -> None:
        """Read them again the next time."""
        self._opened = None

    def _fernet(self) -> MultiFernet:
        if self._opened is None:
            # Here, so that who connects nothing does not wait for it to load.
            from cryptography.fernet import Fernet, MultiFernet

            self._opened = MultiFernet([Fernet(key) for key in self._keys()])
        return self._opened


def vault_of(path: Path, setting: str) -> FernetVault:
    """With the keys of the setting, by commas; those of the file without it, which is made if there is none."""
    return FernetVault(lambda: _checked(tuple(setting.split(",")), SETTING) if setting else kept_keys(path))


def kept_keys(path: Path) -> tuple[str, ...]:
    """What the file has, one a line, the newest first; made if it is missing.

    Raises:
        StoreUnavailable: it cannot be read or made, others can read it, or it has no keys.
    """
    try:
        try:
            content, mode = _read(path)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                _write(path, _new_key(), os.link)
            content, mode = _read(path)
    except OSError as problem:
        raise StoreUnavailable(
            f"the key of connections in {path} cannot be read or made: {problem.strerror}"
        ) from problem
    # BARRIER: who reads it and the database has every user's credentials; held by tests/unit/storage/test_vault.py.
    if mode & 0o077:
        raise StoreUnavailable(
            f"the key of connections in {path} can be read by others: close it by chmod 600, and if somebody may have "
            "seen it, `workbench connections rotate-key`, and connect the accounts again"
        )
    return _checked(tuple(content.split()), str(path))


def add_key(path: Path) -> None:
    """One more, before the others: from now on it seals.

    Raises:
        StoreUnavailable: as for `kept_keys`.
    """
    keys = (_new_key(), *kept_keys(path))
    _write(path, "\n".join(keys), os.replace)


def drop_old_keys(path: Path) -> None:
    """All but the newest; once nothing is sealed by them."""
    _write(path, kept_keys(path)[0], os.replace)


def _new_key() -> str:
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()


def _checked(keys: tuple[str, ...], where: str) -> tuple[str, ...]:
    from cryptography.fernet import Fernet

    keys = tuple(key.strip() for key in keys if key.strip())
    try:
        for key in keys:
            Fernet(key)
    except ValueError:
        keys = ()
    if not keys:
        # Never the key itself.
        raise StoreUnavailable(
            f"{where} has no key that connections can be sealed with: each is 32 random bytes in URL-safe base64; if "
            "it was damaged bring back a copy, as accounts cannot be read without it"
        )
    return keys


def _other_key() -> StoreUnavailable:
    return StoreUnavailable(
        f"a secret of a connection cannot be read with the key that is here: it was sealed by another one; bring that "
        f"back as {SETTING} or as connections.key of the data folder, or remove the connection and connect it again"
    )


@functools.lru_cache(maxsize=1024)
def _of(context: str) -> bytes:
    return hashlib.sha256(context.encode()).digest()


def _read(path: Path) -> tuple[str, int]:
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(held, _MOST_BYTES).decode("ascii", "replace"), stat.S_IMODE(os.fstat(held).st_mode)
    finally:
        os.close(held)


def _write(path: Path, text: str, put: Callable[[Path, Path], None]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(made, 0o600)
        os.write(made, f"{text}\n".encode())
        os.fsync(made)
        put(draft, path)
    finally:
        os.close(made)
        draft.unlink(missing_ok=True)
