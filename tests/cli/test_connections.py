"""`workbench connect`, `connections` and `auth-configs` as the owner of a data folder meets them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.host.support import eventually
from tests.mcp.http.talking import own_settings

from workbench.settings import Settings

_KEY = "CANARY-typed-in-1f"


@pytest.fixture
def authorisation() -> Iterator[Authorisation]:
    with authorisation_server() as server:
        yield server


@pytest.fixture
def settings(authorisation: Authorisation, tmp_path: Path) -> Iterator[Settings]:
    """With toolkits of documents: connected by a key, by OAuth2 in a browser, and by OAuth2 with a code as well."""
    with own_settings(toolkits_allow="127.0.0.1", listen_port=0) as settings:
        _add_toolkits(settings, authorisation.url, tmp_path)
        yield settings


def _add_toolkits(settings: Settings, url: str, folder: Path) -> None:
    flows = {
        "authorizationCode": {
            "authorizationUrl": f"{url}/authorize",
            "tokenUrl": f"{url}/token",
            "scopes": {"notes.read": "Read."},
        }
    }
    device = {**flows["authorizationCode"], "deviceAuthorizationUrl": f"{url}/device"}
    schemes: dict[str, dict[str, Any]] = {
        "coded": {"type": "oauth2", "flows": {**flows, "deviceAuthorization": device}},
        "keyed": {"type": "apiKey", "in": "header", "name": "x-key"},
        "notes": {"type": "oauth2", "flows": flows},
    }
    for slug, scheme in schemes.items():
        path = folder / f"{slug}.json"
        path.write_text(json.dumps(_document(url, scheme)), encoding="utf-8")
        code, _, err = run(settings, "toolkits", "add", slug, "--openapi", str(path))
        assert code == 0, err


def _document(url: str, scheme: dict[str, Any]) -> dict[str, Any]:
    get = {"operationId": "list_notes", "summary": "List notes", "responses": {"200": {"description": "Notes."}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Notes", "version": "1"},
        "servers": [{"url": url}],
        "paths": {"/notes": {"get": get}},
        "components": {"securitySchemes": {"it": scheme}},
        "security": [{"it": []}],
    }


def _started(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    """With a standard input of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "workbench", *arguments],
        env={**os.environ, **settings.to_env()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(settings: Settings, *arguments: str, said: str = "") -> tuple[int, str, str]:
    process = _started(settings, *arguments)
    out, err = process.communicate(said.encode(), timeout=60)
    return process.returncode, out.decode(), err.decode()


def told(settings: Settings, *arguments: str) -> Any:
    code, out, err = run(settings, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_key_is_read_from_standard_input_and_the_account_is_listed_shown_and_removed(settings: Settings) -> None:
    code, out, err = run(settings, "connect", "keyed", "--user", "ann", "--alias", "work", said=f"{_KEY}\n")
    assert (code, "is connected for user ann" in err) == (0, True), err
    account = out.strip()
    assert account.startswith("ca_")
    listed = run(settings, "connections", "list", "--user", "ann")[1]
    assert account in listed
    assert "ACTIVE" in listed
    shown = run(settings, "connections", "show", account)[1]
    assert re.search(r"alias +work", shown)
    assert told(settings, "connections", "show", account)["kind"] == "API_KEY"
    for text in (out, err, listed, shown):
        assert _KEY not in text
    assert run(settings, "connections", "refresh", account)[0] == 125
    assert run(settings, "connections", "remove", account) == (0, f"{account} is removed\n", "")
    assert told(settings, "connections", "list") == []
    assert "workbench connections list" in run(settings, "connections", "show", account)[2]
    assert [one["action"] for one in told(settings, "audit")][:2] == ["connection.remove", "connection.finish"]


def test_an_account_that_was_not_finished_is_not_left_behind(settings: Settings) -> None:
    code, out, err = run(settings, "connect", "keyed", said="\n")
    assert (code, out, "is missing" in err) == (125, "", True)
    assert told(settings, "connections", "list") == []


def test_oauth2_by_a_page_of_its_own_until_the_person_is_back(settings: Settings, authorisation: Authorisation) -> None:
    assert "workbench auth-configs add notes --client-id" in run(settings, "connect", "notes")[2]
    added = ("auth-configs", "add", "notes", "--client-id", CLIENT_ID)
    code, out, err = run(settings, *added, "--secret-stdin", said=f"{CLIENT_SECRET}\n")
    assert (code, "/connect/callback" in err) == (0, True), err
    assert [one["id"] for one in told(settings, "auth-configs", "list")] == [out.strip()]
    assert CLIENT_SECRET not in out + err + run(settings, "auth-configs", "list")[1]
    process = _started(settings, "connect", "notes")
    try:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        page = re.search(r"http://127\.0\.0\.1:\d+/connect/\S+", line)
        assert page, line
        _gone_through(page[0], authorisation)
        out, err = (part.decode() for part in process.communicate(timeout=30))
        assert (process.returncode, "is connected" in err) == (0, True), err
    finally:
        process.kill()
        process.wait(10)
    account = out.strip()
    assert told(settings, "connections", "show", account)["status"] == "ACTIVE"
    assert "is renewed" in run(settings, "connections", "refresh", account)[1]
    config = told(settings, "auth-configs", "list")[0]["id"]
    assert run(settings, "auth-configs", "remove", config)[0] == 0
    assert run(settings, "auth-configs", "remove", config)[0] == 125
    assert run(settings, "connections", "refresh", account)[0] == 125
    assert told(settings, "connections", "show", account)["status"] == "EXPIRED"


def _gone_through(page: str, authorisation: Authorisation) -> None:
    parts = urlsplit(page)
    authorisation.world.redirect_uris.add(f"{parts.scheme}://{parts.netloc}/connect/callback")
    with httpx2.Client(trust_env=False, timeout=30.0) as browser:
        assert browser.get(page).status_code == 200
        there = browser.get(f"{page}/authorize").headers["location"]
        asked = dict(parse_qsl(urlsplit(there).query))
        back = browser.post(there.partition("?")[0], data={**asked, "agreed": "yes"}).headers["location"]
        assert browser.get(back).status_code == 200


@pytest.fixture
def coded(settings: Settings) -> str:
    """An auth config by which accounts are connected with a code."""
    added = ("auth-configs", "add", "coded", "--client-id", CLIENT_ID, "--secret-stdin")
    code, out, err = run(settings, *added, said=f"{CLIENT_SECRET}\n")
    assert code == 0, err
    return out.strip()


@contextlib.contextmanager
def _waiting(settings: Settings, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`workbench connect coded --by code`, which has told its code and waits; and the code."""
    process = _started(settings, "connect", "coded", "--by", "code", *arguments)
    try:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        shown = re.search(r"open (http://127\.0\.0\.1:\d+)/activate and enter the code (\S+)$", line.strip())
        assert shown, line
        yield process, shown[2]
    finally:
        process.kill()
        process.communicate(timeout=10)


def test_a_code_that_is_typed_in_elsewhere_connects(
    settings: Settings, authorisation: Authorisation, coded: str
) -> None:
    with _waiting(settings, "--user", "ann") as (process, code):
        # It has asked whether it was done, and goes on asking.
        eventually(lambda: [path for path, _ in authorisation.world.seen].count("/token") >= 1, "it asks")
        assert process.poll() is None
        (waiting,) = told(settings, "connections", "list")
        assert (waiting["status"], waiting["user"]) == ("INITIATED", "ann")
        authorisation.world.granted[code] = True
        out, err = (part.decode() for part in process.communicate(timeout=30))
        assert (process.returncode, "coded is connected for user ann" in err) == (0, True), err
    account = out.strip()
    shown = told(settings, "connections", "show", account)
    assert (shown["status"], shown["kind"], shown["auth_config"]) == ("ACTIVE", "OAUTH2", coded)
    (token,) = authorisation.world.tokens
    assert token.access_token not in out + err
    assert "is renewed" in run(settings, "connections", "refresh", account)[1]
    assert len(authorisation.world.tokens) == 2


def test_a_code_that_is_refused_elsewhere_leaves_no_account_behind(
    settings: Settings, authorisation: Authorisation, coded: str
) -> None:
    with _waiting(settings) as (process, code):
        authorisation.world.granted[code] = False
        out, err = (part.decode() for part in process.communicate(timeout=30))
    assert (process.returncode, out, "access_denied" in err) == (125, "", True), err
    assert told(settings, "connections", "list") == []
    assert authorisation.world.tokens == []


def test_who_does_not_want_to_wait_any_longer_leaves_no_account_behind(
    settings: Settings, authorisation: Authorisation, coded: str
) -> None:
    with _waiting(settings) as (process, _):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert told(settings, "connections", "list") == []


def test_a_service_that_gives_no_code_is_told_as_that_with_the_other_way(
    settings: Settings, authorisation: Authorisation, coded: str
) -> None:
    authorisation.world.broken = True
    code, out, err = run(settings, "connect", "coded", "--by", "code")
    assert (code, out, "status 500" in err) == (125, "", True), err
    authorisation.world.broken = False
    assert run(settings, "auth-configs", "add", "coded", "--client-id", "nobody", "--public")[0] == 0
    code, out, err = run(settings, "connect", "coded", "--by", "code")
    assert (code, out, "invalid_client" in err, "--by page" in err) == (125, "", True, True), err
    assert told(settings, "connections", "list") == []


def test_credentials_are_sealed_by_a_new_key_and_still_good(settings: Settings) -> None:
    account = run(settings, "connect", "keyed", said=f"{_KEY}\n")[1].strip()
    key = settings.data_dir / "connections.key"
    before = key.read_bytes()
    assert run(settings, "connections", "rotate-key", "--drop-old")[1].startswith("1 sealed with a new key")
    assert key.read_bytes() != before
    assert len(key.read_bytes()) == len(before)
    assert run(settings, "connections", "reseal") == (0, "1 sealed with the first key\n", "")
    assert told(settings, "connections", "show", account)["status"] == "ACTIVE"
    set_by_hand = replace(settings, connections_key=key.read_text(encoding="ascii").strip())
    assert run(set_by_hand, "connections", "reseal")[0] == 0
    code, _, err = run(set_by_hand, "connections", "rotate-key")
    assert (code, "WORKBENCH_CONNECTIONS_KEY" in err) == (125, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("connect", "nothing"), 125, "is not configured"),
        (("connect", "keyed", "--by", "code"), 125, "leave --by out"),
        (("connect", "keyed", "--by", "magic"), 2, "form"),
        (("auth-configs", "add", "keyed", "--client-id", "x", "--public"), 125, "not connected by OAuth2"),
        (("auth-configs", "remove", "ac_none"), 125, "workbench auth-configs list"),
        (("connections", "remove", "ca_none"), 125, "workbench connections list"),
    ],
)
def test_what_cannot_be_is_refused_with_the_next_step(
    settings: Settings, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found, out, err = run(settings, *arguments)
    assert (found, out, words in err) == (code, "", True), err
