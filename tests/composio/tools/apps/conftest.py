"""A server with two toolkits of its own: functions of a file, and a service with accounts that is described."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.composio.tools.apps.post_office import PostOffice, document, open_post_office
from tests.composio.tools.calling import Calling
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running

_SHOP = '''
import pathlib

from workbench.toolkits.functions import Toolkit

toolkit = Toolkit(description="A shop that sells things.")
BOOK = pathlib.Path({book!r})


@toolkit.tool(read_only=True)
def look(number: int) -> dict:
    """Look at an order of the shop."""
    return {{"number": number, "state": "open", "lines": [{{"name": "tea", "price": 2.5}}]}}


@toolkit.tool(destructive=True)
def refund(number: int, reason: str = "") -> dict:
    """Refund an order of the shop to the customer."""
    with BOOK.open("a") as book:
        book.write(f"{{number}}\\n")
    return {{"refunded": number}}
'''


class Shop:
    """What was done in it."""

    def __init__(self, book: Path) -> None:
        self._book = book

    def refunds(self) -> list[int]:
        """Since the last look."""
        done = [int(line) for line in self._book.read_text().split()]
        self._book.write_text("")
        return done


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """One for all tests."""
    book = tmp_path_factory.mktemp("shop") / "book"
    book.write_text("")
    return Shop(book)


@pytest.fixture(scope="session")
def office() -> Iterator[PostOffice]:
    """One for all tests."""
    with open_post_office() as office:
        yield office


@pytest.fixture(scope="session")
def server(shop: Shop, office: PostOffice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The one that all share."""
    folder = tmp_path_factory.mktemp("toolkits")
    (folder / "shop.py").write_text(_SHOP.format(book=str(shop._book)))
    (folder / "post.json").write_text(json.dumps(document(office.url)))
    (folder / "toolkits.toml").write_text(
        f'[toolkits.shop]\nfunctions = "{folder}/shop.py"\n\n[toolkits.post]\nopenapi = "{folder}/post.json"\n'
    )
    with (
        own_settings(
            max_body_mib=1, toolkits_file=str(folder / "toolkits.toml"), toolkits_allow="127.0.0.1"
        ) as settings,
        running(settings) as server,
    ):
        yield server


@pytest.fixture(autouse=True)
def _nothing_yet(shop: Shop, office: PostOffice) -> None:
    shop.refunds()
    office.letters.clear()
    office.asked.clear()


@pytest.fixture
def key(office: PostOffice) -> str:
    """One that the service takes."""
    made = f"canary-{secrets.token_hex(16)}"
    office.keys.add(made)
    return made


def connect(client: httpx2.Client, url: str, key: str) -> None:
    """As a person does it in a browser: open the link, fill in the key, and send the form."""
    path = httpx2.URL(url).path
    page = client.get(path)
    assert page.status_code == 200, page.text
    done = client.post(path, data={"kind": "API_KEY", "api_key": key}, headers={"origin": str(client.base_url)})
    assert done.status_code in {200, 303}, done.text


def slugs(calling: Calling, toolkit: str) -> list[str]:
    """The tools of a toolkit that the session may use."""
    told = calling.data("COMPOSIO_SEARCH_TOOLS", {"queries": [{"use_case": f"{toolkit} send list look refund"}]})
    return [slug for slug in told["tool_schemas"] if slug.startswith(toolkit.upper())]
