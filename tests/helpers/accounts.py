"""Accounts of a user, by a key and by OAuth2, with a service that tells everybody what it was sent."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from tests.connections.authorisation import CLIENT_ID, SCOPES, Authorisation, Handler
from tests.restart.server import Server

KEYED, NOTES = "keyed", "notes"
_TOOLS = ("echo", "teapot", "broken")


class Telltale(Handler):
    """The authorisation server, and beside it two services that are described at /keyed.json and /notes.json."""

    # Of every request to a service.
    credentials: list[str] = []  # noqa: RUF012 - of one test process

    def do_GET(self) -> None:  # noqa: N802 - the library's own name
        path = urlsplit(self.path).path
        if path in (f"/{KEYED}.json", f"/{NOTES}.json"):
            self._answer(200, _document(path[1:-5], f"http://{self.headers['host']}"), {})
        elif path.lstrip("/") in _TOOLS:
            self._tell(path)
        else:
            super().do_GET()

    def _tell(self, path: str) -> None:
        given = dict(self.headers.items())
        self.credentials.append(self.headers.get("x-key") or self.headers.get("authorization") or "")
        if path == "/broken":
            self.close_connection = True
            return
        text = json.dumps(given)
        told = {"headers": given, "text": text, "packed": base64.b64encode(text.encode()).decode()}
        self._answer(418 if path == "/teapot" else 200, told, {"x-told": text})


def _document(slug: str, url: str) -> dict[str, Any]:
    flow = {
        "authorizationUrl": f"{url}/authorize",
        "tokenUrl": f"{url}/token",
        "refreshUrl": f"{url}/token",
        "scopes": {name: name for name in SCOPES.split()},
    }
    key = {"type": "apiKey", "in": "header", "name": "x-key"}
    scheme = key if slug == KEYED else {"type": "oauth2", "flows": {"authorizationCode": flow}}
    paths = {
        f"/{name}": {"get": {"operationId": name, "summary": name, "responses": {"200": {"description": "It."}}}}
        for name in _TOOLS
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": slug, "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {"securitySchemes": {"it": scheme}},
        "security": [{"it": []}],
    }


def connect(server: Server, service: Authorisation, user: str, key: str) -> dict[str, str]:
    """Both, as a person does; what was to be seen meanwhile, by its place."""
    service.world.redirect_uris.add(f"{server.url}/connect/callback")
    seen: dict[str, str] = {}
    with server.client() as client, httpx2.Client(timeout=30.0, trust_env=False) as browser:
        for slug in (KEYED, NOTES):
            added = client.post("/v1/toolkits", json={"slug": slug, "openapi": f"{service.url}/{slug}.json"})
            assert added.status_code == 201, added.text
        sent = {"toolkit": NOTES, "client_id": CLIENT_ID, "client_secret": service.world.client_secret}
        config = client.post("/v1/auth-configs", json=sent)
        assert config.status_code == 201, config.text
        seen["the auth config"] = config.text
        for slug in (KEYED, NOTES):
            begun = client.post("/v1/connections", json={"toolkit": slug, "user_id": user}).raise_for_status().json()
            seen[f"the page of {slug}"] = browser.get(begun["url"]).raise_for_status().text
            last = _filled_in(browser, begun["url"], key) if slug == KEYED else _agreed(browser, begun["url"])
            seen[f"the end of {slug}"] = last.text
            assert "is connected" in last.text, last.text
            told = client.get(f"/v1/connections/{begun['connection']['id']}")
            assert told.json()["status"] == "ACTIVE"
            seen[f"the account of {slug}"] = told.text
    return seen


def _filled_in(browser: httpx2.Client, page: str, key: str) -> httpx2.Response:
    answer = browser.post(page, data={"kind": "API_KEY", "field.api_key": key})
    assert answer.status_code == 303, answer.text
    return browser.get(page)


def _agreed(browser: httpx2.Client, page: str) -> httpx2.Response:
    there = browser.get(f"{page}/authorize").headers["location"]
    asked = dict(parse_qsl(urlsplit(there).query))
    back = browser.post(there.partition("?")[0], data={**asked, "agreed": "yes"}).headers["location"]
    return browser.get(back)
