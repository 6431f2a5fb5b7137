"""A server of ours, a model and Google in a network of their own, and a user who has connected their accounts."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from tests.composio_sdks.own_network import PUBLIC_LOOKING, OwnNetwork, own_network
from tests.composio_sdks.world import World, listening
from tests.connections.authorisation import CLIENT_ID
from tests.product_documents.triage.google import HOSTS, SHEETS, Google, certificate, google_in
from tests.product_documents.triage.model import MOST
from tests.restart.server import own_settings
from tests.server.running import ROOT, Running, running

USER = "ann"
_PERSON_S = 60.0
# The names of Google, and who can prove to be it, are what a machine's administrator says they are.
_FURNISH = 'mount --bind "$1" /etc/hosts && mount --bind "$2" "$3" && shift 3 && exec "$@"'


@dataclass(frozen=True)
class Place:
    """All of it."""

    network: OwnNetwork
    server: Running
    google: Google
    models: str
    inside: tuple[str, ...]
    """puts a command where Google's names lead to the test's own"""
    typed_in: str = field(repr=False)
    """a token that the user has typed in"""

    @property
    def sdks(self) -> World:
        """For programs with an official SDK."""
        return World(self.network, self.server, self.server, "")

    def get(self, path: str) -> Any:
        """What the server tells."""

        def asked() -> Any:
            with self.server.client() as client:
                return client.get(path).raise_for_status().json()

        return self.network.run(asked)

    def new_session(self) -> str:
        """Of the user, by the sessions API."""
        made: str = _post(self, "/api/v3.1/tool_router/session", {"user_id": USER})["session_id"]
        return made

    def most_at_once(self) -> int:
        """How many asked the model at the same time."""
        answer = self.network.run(lambda: httpx2.get(f"{self.models}{MOST}", trust_env=False))
        return int(answer.json())

    def secrets(self) -> dict[str, bytes]:
        """Whatever gives access, by its name; all begin with the mark."""
        found = {"the typed in token": self.typed_in, "the client's secret": self.google.world.client_secret}
        for number, token in enumerate(self.google.world.tokens):
            found |= {f"access token {number}": token.access_token, f"refresh token {number}": token.refresh_token}
        return {name: secret.encode() for name, secret in found.items()}


@contextlib.contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Everything of it ends with it."""
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(own_network())
        files = certificate(folder)
        google = stack.enter_context(google_in(network, files))
        models = stack.enter_context(listening(network, "tests.product_documents.triage.model"))
        settings = stack.enter_context(
            own_settings(llm_provider="openai", llm_url=f"{models}/v1", llm_key="sk-test", llm_model="small")
        )
        inside = (*network.within(), *_furnished(folder, files[0]))
        server = stack.enter_context(running(settings, inside=inside))
        made = Place(network, server, google, models, inside, f"{google.world.mark}-typed-in")
        _connect(made)
        yield made


def _furnished(folder: Path, authority: Path) -> tuple[str, ...]:
    hosts = folder / "hosts"
    names = "\n".join(f"{PUBLIC_LOOKING} {host}" for host in HOSTS)
    hosts.write_text(f"127.0.0.1 localhost\n{names}\n", encoding="ascii")
    trusted = ssl.get_default_verify_paths().openssl_cafile
    assert Path(trusted).is_file(), f"this machine has no certificates of authorities at {trusted}"
    return ("unshare", "--mount", "--", "sh", "-c", _FURNISH, "sh", str(hosts), str(authority), trusted)


def _connect(made: Place) -> None:
    """Gmail by going to Google and coming back, and Sheets with a token that was made there by hand."""
    made.google.world.redirect_uris.add(f"{made.server.url}/connect/callback")
    made.google.handed_out[made.typed_in] = SHEETS
    client = {"toolkit": "gmail", "client_id": CLIENT_ID, "client_secret": made.google.world.client_secret}
    _post(made, "/v1/auth-configs", client)
    for toolkit, by in (("gmail", ""), ("googlesheets", "token")):
        begun = _post(made, "/v1/connections", {"toolkit": toolkit, "user_id": USER})
        said = subprocess.run(
            [*made.inside, sys.executable, "-m", "tests.product_documents.triage.person", begun["url"], by],
            cwd=ROOT,
            input=made.typed_in,
            capture_output=True,
            text=True,
            timeout=_PERSON_S,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        assert "is connected" in said.stdout, said.stdout
        assert made.get(f"/v1/connections/{begun['connection']['id']}")["status"] == "ACTIVE"


def _post(made: Place, path: str, sent: dict[str, str]) -> Any:
    def asked() -> Any:
        with made.server.client() as client:
            answer = client.post(path, json=sent)
            assert answer.status_code == 201, answer.text
            return answer.json()

    return made.network.run(asked)
