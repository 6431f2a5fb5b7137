"""The OpenAPI document is complete and true, and the docs for people need nothing from elsewhere."""

from __future__ import annotations

import html.parser
import re
from typing import Any

import httpx2
import pytest
from tests.server.running import Running


@pytest.fixture
def document(server: Running) -> dict[str, Any]:
    with server.client("") as client:
        told: dict[str, Any] = client.get("/openapi.json").json()
    return told


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, told) for path, item in document["paths"].items() for method, told in item.items()]


def test_every_operation_says_everything_about_itself(document: dict[str, Any]) -> None:
    for method, path, told in operations(document):
        assert re.fullmatch("[a-z_]+", told["operationId"]), path
        assert told["summary"], path
        assert told["description"], path
        assert len(told["tags"]) == 1, path
        for status, response in told["responses"].items():
            assert "x-request-id" in response["headers"], path
            if int(status) >= 400 and path != "/readyz":
                shape = response["content"]["application/json"]["schema"]["$ref"]
                own = "ApiProblemAnswer" if path.startswith("/api/") else "ProblemAnswer"
                assert shape == f"#/components/schemas/{own}", (path, status)
        if path.startswith("/v1/"):
            assert told["security"] == [{"bearer": []}, {"api_key": []}]
            assert {"401", "403", "422", "500", "503"} <= set(told["responses"])
        if path.startswith("/api/"):
            assert told["security"] == [{"bearer": []}, {"api_key": []}]
            assert {"400", "401", "403", "500", "503"} <= set(told["responses"])
            assert "422" not in told["responses"]
        if "requestBody" in told:
            assert {"400", "413", "415"} <= set(told["responses"]), (method, path)
    ids = [told["operationId"] for _, _, told in operations(document)]
    assert len(ids) == len(set(ids))


def test_streams_headers_schemes_and_the_server_are_declared(server: Running, document: dict[str, Any]) -> None:
    assert document["servers"] == [{"url": server.url}]
    assert set(document["components"]["securitySchemes"]) == {"bearer", "api_key"}
    run = document["paths"]["/v1/sessions/{session_id}/cells"]["post"]
    assert set(run["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert "202" in run["responses"]
    headers = {one["name"]: one for one in run["parameters"] if one["in"] == "header"}
    assert headers["Idempotency-Key"]["required"] is False
    follow = document["paths"]["/v1/sessions/{session_id}/cells/{cell_id}/events"]["get"]
    assert set(follow["responses"]["200"]["content"]) == {"text/event-stream"}
    assert "Last-Event-ID" in [one["name"] for one in follow["parameters"]]
    assert document["components"]["schemas"]["RunCell"]["properties"]["limit_s"]["maximum"] == 3600
    assert {"Piece", "Dropped", "Cell"} <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in document["components"]["schemas"]
    assert {"Session", "ApiSession"} <= set(document["components"]["schemas"])
    assert not [name for name in document["components"]["schemas"] if "__" in name]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/([^"]+)"', str(document).replace("'", '"')):
        assert name in schemas


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in {"href", "src"}:
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")


def test_the_docs_show_every_route_and_fetch_and_run_nothing(server: Running, document: dict[str, Any]) -> None:
    with server.client("") as client:
        answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = _Page()
    page.feed(answer.text)
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    for link in page.links:
        assert link == "/openapi.json" or link.removeprefix("#") in page.ids, link
    for _, path, told in operations(document):
        assert told["operationId"] in page.ids
        assert path in answer.text
    assert "url(" not in answer.text
    assert "@import" not in answer.text


def test_the_documents_are_the_same_for_everybody(client: httpx2.Client, document: dict[str, Any]) -> None:
    assert client.get("/openapi.json").json() == document
