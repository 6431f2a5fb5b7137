"""Secrets never print themselves, whoever holds them."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from dataclasses import asdict, replace

import pytest

from workbench.errors import InvalidRequest
from workbench.model.connection import (
    Credential,
    Secret,
    checked_alias,
    hosts_for,
    new_account_id,
    new_auth_config_id,
)
from workbench.model.toolkit import AuthKind, AuthScheme, Toolkit

_CANARY = "CANARY-7f"
_SECRET = Secret(_CANARY)
_CREDENTIAL = Credential(
    kind=AuthKind.API_KEY, scheme=AuthScheme(kind=AuthKind.API_KEY), values={"api_key": _SECRET}, account="ca_1"
)


def test_a_secret_reveals_itself_to_who_asks_for_it_only() -> None:
    assert _SECRET.reveal() == _CANARY
    for shown in (repr(_SECRET), str(_SECRET), f"{_SECRET}", f"{_SECRET:>20}", "%s %r" % (_SECRET, _SECRET)):  # noqa: UP031
        assert _CANARY not in shown
    assert _CANARY not in repr(_CREDENTIAL)
    assert _CANARY not in repr({"x": [_SECRET]})
    assert _CANARY not in repr(replace(_CREDENTIAL, account="ca_2"))


def test_a_secret_is_not_written_down() -> None:
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(_SECRET)
    with pytest.raises(TypeError):
        json.dumps({"x": _SECRET})
    with pytest.raises(TypeError):
        copy.copy(_SECRET)
    with pytest.raises(TypeError):
        asdict(_CREDENTIAL)
    with pytest.raises(TypeError):
        hash(_SECRET)
    assert not hasattr(_SECRET, "__dict__")


def test_a_secret_in_a_log_or_a_traceback_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("sent %s with %r", _SECRET, _CREDENTIAL)
    try:
        raise ValueError(_SECRET, _CREDENTIAL)
    except ValueError as problem:
        told = "".join(traceback.TracebackException.from_exception(problem, capture_locals=True).format())
    assert _CANARY not in caplog.text
    assert "Secret(***)" in told
    assert f"'{_CANARY}'" not in told.replace(f"_CANARY = '{_CANARY}'", "")


def test_secrets_are_compared_by_what_they_are() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert Secret("a")
    assert not Secret("")


def test_ids_say_what_they_are_of_and_are_not_the_same_twice() -> None:
    assert new_account_id().startswith("ca_")
    assert new_auth_config_id().startswith("ac_")
    assert new_account_id() != new_account_id()


@pytest.mark.parametrize("alias", ["a\nb", "\0", "x" * 101, "\x7f"])
def test_an_alias_prints_in_one_line(alias: str) -> None:
    with pytest.raises(InvalidRequest, match="alias"):
        checked_alias(alias)
    assert checked_alias("") == ""
    assert checked_alias("für Ålice") == "für Ålice"


@pytest.mark.parametrize("alias", ["ca_1", "CA_other", "__none__", "*"])
def test_an_alias_is_not_taken_for_an_id_or_for_none(alias: str) -> None:
    with pytest.raises(InvalidRequest, match="choose another"):
        checked_alias(alias)


@pytest.mark.parametrize(
    ("told", "hosts"),
    [
        ("acme", ("acme.desk.test", "api.desk.test")),
        ("", ("api.desk.test",)),
        ("evil.example/", ("api.desk.test",)),
        (None, ("api.desk.test",)),
    ],
)
def test_a_credential_goes_to_the_name_of_its_account_and_not_to_others_beside_it(
    told: str | None, hosts: tuple[str, ...]
) -> None:
    kit = Toolkit(
        slug="desk", name="Desk", base_url="https://{sub}.desk.test/v1", hosts=("*.desk.test", "api.desk.test")
    )
    values = {} if told is None else {"sub": Secret(told)}
    assert hosts_for(kit, replace(_CREDENTIAL, values=values)) == hosts
    assert hosts_for(replace(kit, base_url="https://api.desk.test"), None) == kit.hosts
