"""Every address of the sessions API that the SDKs use was asked by one of them, or by a helper of a local sandbox."""

from __future__ import annotations

import pytest
from tests.composio_sdks.told import Told

pytestmark = pytest.mark.long

SESSION = "/tool_router/session/{session_id}"
MOUNT = f"{SESSION}/mounts/{{mount_id}}"
ASKED = {
    ("POST", "/tool_router/session"),
    ("GET", SESSION),
    ("POST", f"{SESSION}/attach"),
    ("PATCH", SESSION),
    ("DELETE", SESSION),
    ("GET", f"{SESSION}/tools"),
    ("POST", f"{SESSION}/search"),
    ("POST", f"{SESSION}/execute"),
    ("GET", f"{SESSION}/toolkits"),
    ("POST", f"{SESSION}/link"),
    ("GET", "/connected_accounts/{account_id}"),
    ("POST", f"{SESSION}/proxy_execute"),
    ("GET", f"{MOUNT}/items"),
    ("POST", f"{MOUNT}/upload_url"),
    ("POST", f"{MOUNT}/download_url"),
    ("POST", f"{MOUNT}/delete"),
    ("POST", "/tools/execute/{tool_slug}"),
}
NEWEST = {("POST", f"{SESSION}/execute_meta"), ("GET", f"{SESSION}/config_history")}
TYPESCRIPT = {("GET", "/tools/{tool_slug}")}


def test_every_address_is_known_and_asked_by_the_sdk(told: Told) -> None:
    prefix = "/api/v3.1"
    asked = {
        (one["method"], one["route"].removeprefix(prefix)) for one in told.requests if one["route"].startswith(prefix)
    }
    assert asked >= ASKED
    if told.line == "python 0.30":
        assert asked >= NEWEST
    if told.line.startswith("typescript"):
        assert asked >= TYPESCRIPT


def test_nothing_that_an_sdk_asked_was_beside_every_address_or_a_defect(told: Told) -> None:
    # Who is not known is not told which addresses there are.
    assert [one for one in told.requests if one["route"] == "unmatched" and one["status"] != 401] == []
    assert [one for one in told.requests if one["status"] >= 500] == []
