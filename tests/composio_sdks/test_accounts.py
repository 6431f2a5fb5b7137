"""Auth configs and connected accounts, as the official Python SDK makes and changes them, against a real server."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.connections.authorisation import CLIENT_SECRET, authorisation_server
from tests.connections.serving import serving
from tests.mcp.http.talking import own_settings
from tests.server.running import ROOT

pytestmark = pytest.mark.long

_KEY = "CANARY-key-by-the-sdk"


@pytest.mark.parametrize("line", ["0.19", "0.30"])
def test_accounts_are_connected_and_changed_by_the_official_sdk(line: str) -> None:
    with (
        authorisation_server() as authorisation,
        own_settings(toolkits_allow="127.0.0.1") as settings,
        serving(settings, authorisation.url) as server,
    ):
        done = subprocess.run(
            [str(ROOT / f".venv-composio-{line}/bin/python"), "-m", "tests.composio_sdks.python.accounts"],
            cwd=ROOT,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(settings.data_dir),
                "COMPOSIO_API_KEY": server.key,
                "COMPOSIO_BASE_URL": server.url,
                "CLIENT_SECRET": CLIENT_SECRET,
                "ACCOUNT_KEY": _KEY,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert _KEY not in server.log.read_text(encoding="utf-8")
    told = json.loads(done.stdout.splitlines()[-1])
    kind, words = told.pop("managed")
    assert (kind, "use_custom_auth" in words) == ("BadRequestError", True)
    for name in ("link", "initiated", "authorized"):
        assert told.pop(name).startswith(f"{server.url}/connect/")
    assert told == {
        "kinds": ["API_KEY", "OAUTH2"],
        "listed": True,
        "got": True,
        "imported": "ACTIVE",
        "renamed": True,
        "off": "INACTIVE",
        "active": [["mine", True]],
        "deleted": True,
        "forgotten": True,
    }
