"""The OpenAPI document is taken at its word: thousands of requests that it allows, and that it does not, with all
checks of schemathesis, to a real server with real sandboxes. No route, check or phase is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.running import ROOT, Running

_EXAMPLES = os.environ.get("WB_FUZZ_EXAMPLES", "8")
# What one run meets, the next meets again; somebody who looks for more gives another.
_SEED = os.environ.get("WB_FUZZ_SEED", "1")
# The run takes some minutes; a slow machine has more time.
_TIMEOUT_S = 600.0


@pytest.fixture
def fuzzed(client: httpx2.Client) -> Iterator[dict[str, str]]:
    """What the requests are about; whatever they made goes at the end."""
    names = {"session": "fuzzed", "user": "fuzzed-user"}
    made = client.post("/v1/sessions", json={"id": names["session"], "user_id": names["user"]})
    assert made.status_code == 201, made.text
    names["switched_off"] = client.post(
        "/api/v3.1/tool_router/session", json={"user_id": names["user"], "sandbox": {"enable": False}}
    ).json()["session_id"]
    files = {"command": "cd /mnt/files && echo 1 > kept.txt && mkdir doomed && cd doomed && touch $(seq 3000)"}
    assert client.post(f"/v1/sessions/{names['session']}/commands", json=files).json()["result"]["exit_code"] == 0
    # One to be looked at and begun anew, and some to be removed.
    for context in ("fuzzed-context", *(f"fuzzed-doomed-{number}" for number in range(1, 7))):
        made = client.post(f"/v1/sessions/{names['session']}/contexts", json={"id": context})
        assert made.status_code == 201, made.text
    for kind, body in (("cells", {"code": "print(1)"}), ("commands", {"command": "echo 1"})):
        names[kind] = client.post(f"/v1/sessions/{names['session']}/{kind}", json=body).json()["id"]
    kit = {"slug": "fuzzed", "url": "http://127.0.0.1:9/mcp", "test": False}
    assert client.post("/v1/toolkits", json=kit).status_code == 201
    client_of = {"toolkit": "github", "client_id": "a-client"}
    names["auth_config"] = client.post("/v1/auth-configs", json=client_of).json()["id"]
    # One to be looked at and changed, and some to be removed; nobody finishes them.
    begun = {"toolkit": "github", "user_id": names["user"]}
    made_accounts = [client.post("/v1/connections", json=begun).json()["connection"]["id"] for _ in range(9)]
    names["account"], names["doomed"] = made_accounts[0], " ".join(made_accounts[1:])
    yield names
    for one in client.get("/v1/toolkits").json()["items"]:
        assert client.delete(f"/v1/toolkits/{one['slug']}").status_code == 204
    while items := client.get("/v1/sessions", params={"limit": "1000"}).json()["items"]:
        for one in items:
            assert client.delete(f"/v1/sessions/{one['id']}").status_code in {204, 404}


@pytest.mark.timeout(_TIMEOUT_S + 60)
def test_the_server_does_what_its_document_says(server: Running, fuzzed: dict[str, str], tmp_path: Path) -> None:
    before = len(server.events())
    own_key = server.key.split("_")[1]
    kinds = ("session", "switched_off", "user", "cells", "commands", "auth_config", "account", "doomed")
    told = ",".join([own_key, *(fuzzed[kind] for kind in kinds)])
    run = subprocess.run(
        [str(Path(sys.executable).parent / "schemathesis"), "run", f"{server.url}/openapi.json", "--checks", "all",
         "--header", f"Authorization: Bearer {server.key}", "--max-examples", _EXAMPLES, "--request-timeout", "60",
         "--generation-database", "none", "--seed", _SEED, "--no-color"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "SCHEMATHESIS_HOOKS": "tests.server.schema_hooks",
             "FUZZED_WITH": told},
        capture_output=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    output = run.stdout.decode() + run.stderr.decode()
    assert run.returncode == 0, output
    requests = [line for line in server.events()[before:] if line["event"] == "request"]
    assert not [line for line in requests if line["status"] >= 500]
    _check_that_it_reached_everything(server, requests)


def _check_that_it_reached_everything(server: Running, requests: list[dict[str, Any]]) -> None:
    """A run that is refused everywhere finds nothing either."""
    reached = {(line["method"], line["route"].replace(":path", "")) for line in requests if line["status"] < 300}
    with server.client("") as client:
        document = client.get("/openapi.json").json()
    wanted = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    # Whether there is something to undo depends on what ran before: generated requests may only ever hear a 409. And
    # what they could fetch from is on this machine, which is refused. Nobody has an account to call a service with, or
    # one that could be renewed or taken back.
    hopeless = {
        ("POST", "/api/v3.1/tool_router/session/{session_id}/proxy_execute"),
        ("POST", "/api/v3.1/connected_accounts/{account_id}/refresh"),
        ("POST", "/api/v3.1/connected_accounts/{account_id}/revoke"),
        ("POST", "/v1/connections/{connection_id}/refresh"),
        ("POST", "/v1/sessions/{session_id}/undo"),
        ("POST", "/v1/toolkits/{slug}/test"),
        ("POST", "/v1/sessions/{session_id}/mounts/{mount_id}/fetch"),
    }
    missed = sorted(wanted - reached - hopeless)
    assert not missed, missed
