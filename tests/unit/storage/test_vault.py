"""Secrets of connections are sealed: nobody reads, changes or moves them without the key, which can be replaced."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from workbench.errors import StoreUnavailable
from workbench.storage.vault import FernetVault, add_key, drop_old_keys, kept_keys, vault_of

_SECRET = b"CANARY"


def test_what_is_sealed_is_opened_for_its_own_record_only(tmp_path: Path) -> None:
    vault = vault_of(tmp_path / "data" / "connections.key", "")
    sealed = vault.seal("account/a", _SECRET)
    assert _SECRET not in sealed
    assert _SECRET not in base64.urlsafe_b64decode(sealed)
    assert vault.unseal("account/a", sealed) == _SECRET
    with pytest.raises(StoreUnavailable, match="belongs to something else"):
        vault.unseal("account/b", sealed)


def test_the_same_secret_is_sealed_differently_each_time(tmp_path: Path) -> None:
    vault = vault_of(tmp_path / "connections.key", "")
    assert vault.seal("a", _SECRET) != vault.seal("a", _SECRET)


def test_what_was_changed_or_is_of_another_key_is_refused_with_the_next_step(tmp_path: Path) -> None:
    vault, other = vault_of(tmp_path / "one.key", ""), vault_of(tmp_path / "other.key", "")
    sealed = vault.seal("a", _SECRET)
    broken = sealed[:-10] + bytes([sealed[-10] ^ 1]) + sealed[-9:]
    for who, what in ((other, sealed), (vault, broken), (vault, b"nothing")):
        with pytest.raises(StoreUnavailable, match="WORKBENCH_CONNECTIONS_KEY"):
            who.unseal("a", what)
        with pytest.raises(StoreUnavailable, match="WORKBENCH_CONNECTIONS_KEY"):
            who.resealed(what)


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "connections.key"
    keys = kept_keys(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept_keys(path) == keys
    assert os.listdir(path.parent) == ["connections.key"]


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "connections.key"
    kept_keys(path)
    path.chmod(0o640)
    with pytest.raises(StoreUnavailable, match="chmod 600"):
        kept_keys(path)


@pytest.mark.parametrize("content", ["", "short", "x" * 44, "\0" * 44])
def test_what_is_no_key_is_refused_without_being_shown(tmp_path: Path, content: str) -> None:
    path = tmp_path / "connections.key"
    path.write_text(content, encoding="ascii")
    path.chmod(0o600)
    with pytest.raises(StoreUnavailable, match="32 random bytes") as problem:
        vault_of(path, "").seal("a", _SECRET)
    assert not content or content not in str(problem.value)


def test_a_link_in_place_of_the_key_is_not_followed(tmp_path: Path) -> None:
    kept_keys(tmp_path / "elsewhere.key")
    (tmp_path / "connections.key").symlink_to(tmp_path / "elsewhere.key")
    with pytest.raises(StoreUnavailable, match="cannot be read or made"):
        kept_keys(tmp_path / "connections.key")


def test_a_setting_comes_before_the_file_and_makes_none(tmp_path: Path) -> None:
    key = kept_keys(tmp_path / "other.key")[0]
    vault = vault_of(tmp_path / "connections.key", f"{key},")
    assert vault.unseal("a", vault.seal("a", _SECRET)) == _SECRET
    assert not (tmp_path / "connections.key").exists()
    with pytest.raises(StoreUnavailable, match="WORKBENCH_CONNECTIONS_KEY has no key"):
        vault_of(tmp_path / "none", "CANARY").seal("a", _SECRET)


def test_a_key_is_replaced_without_a_moment_in_which_nothing_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "connections.key"
    before = vault_of(path, "")
    sealed = before.seal("a", _SECRET)
    add_key(path)
    assert len(kept_keys(path)) == 2
    after = vault_of(path, "")
    assert after.unseal("a", sealed) == _SECRET
    anew = after.resealed(sealed)
    drop_old_keys(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert vault_of(path, "").unseal("a", anew) == _SECRET
    with pytest.raises(StoreUnavailable):
        vault_of(path, "").unseal("a", sealed)
    assert os.listdir(tmp_path) == ["connections.key"]


def test_keys_are_read_again_once_they_were_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "connections.key"
    vault = FernetVault(lambda: kept_keys(path))
    vault.seal("a", _SECRET)
    add_key(path)
    sealed = vault_of(path, "").seal("a", _SECRET)
    vault.forget_keys()
    assert vault.unseal("a", sealed) == _SECRET
