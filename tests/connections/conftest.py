"""The core of connections on real parts: a database file, a vault with its key, a real authorisation server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.connections.authorisation import CLIENT_ID, CLIENT_SECRET, Authorisation, authorisation_server
from tests.connections.kits import KitSource

from workbench.contracts.storage import Records
from workbench.core.connection_links import ConnectionLinks
from workbench.core.connection_requests import AddAuthConfig, Authorize, BeginConnection, BegunConnection, Returned
from workbench.core.connections import Connections
from workbench.core.router.catalogue import Catalogue
from workbench.egress.policy import AddressPolicy
from workbench.model.configuration import SessionConfig
from workbench.model.connection import ConnectedAccount, Secret
from workbench.model.ids import DEFAULT_PROJECT
from workbench.model.session import Session
from workbench.model.toolkit import Toolkit
from workbench.storage.opening import open_records
from workbench.storage.vault import vault_of
from workbench.testing.storage_contract import a_session
from workbench.toolkits.sending import ServiceCaller
from workbench.toolkits.token_endpoints import GuardedTokenEndpoints
from workbench.wiring import SystemClock

REDIRECT = "http://127.0.0.1:1/connect/callback"
BROWSER = "b" * 43


@pytest.fixture
def authorisation() -> Iterator[Authorisation]:
    """A server of the test's own."""
    with authorisation_server() as server:
        server.world.redirect_uris.add(REDIRECT)
        yield server


class ShiftedClock(SystemClock):
    """The machine's, set forward by who wants it to be later."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_iso(self) -> str:
        return self.after(0.0)

    def after(self, seconds: float) -> str:
        return super().after(seconds + self.seconds)


@dataclass
class Place:
    """All of it."""

    authorisation: Authorisation
    records: Records
    clock: ShiftedClock
    connections: Connections
    links: ConnectionLinks
    catalogue: Catalogue
    data: Path
    endpoints: GuardedTokenEndpoints
    services: ServiceCaller

    async def close(self) -> None:
        await self.services.aclose()
        await self.endpoints.aclose()
        await self.records.aclose()

    async def toolkit(self, slug: str) -> Toolkit:
        return await self.catalogue.toolkit(slug)

    async def begin(self, toolkit: str, **more: object) -> BegunConnection:
        asked = BeginConnection(project=DEFAULT_PROJECT, user="alice", toolkit=toolkit)
        return await self.links.begin(replace(asked, **more))  # type: ignore[arg-type]

    async def add_config(self, toolkit: str = "notes") -> str:
        config = await self.connections.add_config(
            AddAuthConfig(
                project=DEFAULT_PROJECT, toolkit=toolkit, client_id=CLIENT_ID, client_secret=Secret(CLIENT_SECRET)
            )
        )
        return config.id

    async def sent_away(self, begun: BegunConnection) -> str:
        return await self.links.authorize(Authorize(token=begun.token, redirect_uri=REDIRECT, browser=BROWSER))

    async def connected(self, toolkit: str = "notes", **more: object) -> ConnectedAccount:
        """By OAuth2, all the way."""
        begun = await self.begin(toolkit, **more)
        back = agreed(await self.sent_away(begun))
        view = await self.links.returned(Returned(state=back["state"], browser=BROWSER, code=back["code"]))
        assert view.account.is_active, view.account
        return view.account


def agreed(url: str, *, yes: bool = True) -> dict[str, str]:
    """What the service sends the person back with, who agreed."""
    with httpx2.Client(trust_env=False) as client:
        assert client.get(url).status_code == 200
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query))
        answer = client.post(
            f"{parts.scheme}://{parts.netloc}/authorize", data={**asked, "agreed": "yes" if yes else "no"}
        )
    location = answer.headers["location"]
    assert location.startswith(REDIRECT), location
    return dict(parse_qsl(urlsplit(location).query))


def session_of(user: str = "alice", config: SessionConfig | None = None) -> Session:
    """Of a user."""
    made = a_session(user=user)
    return replace(made, spec=replace(made.spec, config=config or SessionConfig()))


def opened(authorisation: Authorisation, folder: Path, clock: ShiftedClock) -> Place:
    """As a process of its own opens it; `close` it."""
    records = open_records(folder / "workbench.db")
    endpoints = GuardedTokenEndpoints(AddressPolicy.parse("127.0.0.1", "WORKBENCH_TOOLKITS_ALLOW"))
    services = ServiceCaller(AddressPolicy.parse("127.0.0.1", "WORKBENCH_TOOLKITS_ALLOW"))
    vault = vault_of(folder / "connections.key", "")
    catalogue = Catalogue([KitSource(authorisation.url)])
    connections = Connections(
        store=records.connections,
        vault=vault,
        endpoints=endpoints,
        clock=clock,
        find_toolkit=lambda _project, slug: catalogue.toolkit(slug),
        services=services,
    )
    links = ConnectionLinks(
        store=records.connections,
        vault=vault,
        endpoints=endpoints,
        clock=clock,
        find_toolkit=lambda _project, slug: catalogue.toolkit(slug),
        connections=connections,
    )
    return Place(authorisation, records, clock, connections, links, catalogue, folder, endpoints, services)


@pytest.fixture
async def place(tmp_path: Path, authorisation: Authorisation) -> AsyncIterator[Place]:
    """Opened, and closed at the end."""
    place = opened(authorisation, tmp_path, ShiftedClock())
    yield place
    await place.close()
