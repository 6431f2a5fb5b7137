"""Files of a session in the sessions API over HTTP: listed, sent, read and deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.composio.asking import SESSION, bad_request, refused, run_cell
from tests.server.running import Running


class Mount:
    """Files of one session, as an SDK asks for them."""

    def __init__(self, client: httpx2.Client, place: str) -> None:
        self.client = client
        self.place = place

    def ask(self, what: str, **body: object) -> httpx2.Response:
        return self.client.post(f"{self.place}/{what}", json=body)

    def told(self, what: str, status: int = 200, **body: object) -> dict[str, Any]:
        answer = self.ask(what, **body)
        assert answer.status_code == status, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def send(self, path: str, content: bytes) -> None:
        link = self.told("upload_url", 201, mount_relative_path=path, mimetype="text/csv")
        with httpx2.Client(trust_env=False) as anyone:
            put = anyone.put(link["upload_url"], content=content, headers={"content-type": "text/csv"})
        assert put.is_success, put.text

    def read(self, path: str) -> httpx2.Response:
        with httpx2.Client(trust_env=False) as anyone:
            return anyone.get(self.told("download_url", mount_relative_path=path)["download_url"])

    def listed(self, **query: str | int) -> dict[str, Any]:
        answer = self.client.get(f"{self.place}/items", params=query)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def paths(self, **query: str | int) -> list[str]:
        return [one["mount_relative_path"] for one in self.listed(**query)["items"]]


@pytest.fixture
def mount(client: httpx2.Client, session: str, prefix: str) -> Mount:
    return Mount(client, f"{prefix}{SESSION}/{session}/mounts/files")


def test_a_file_is_sent_by_a_link_and_read_by_another(server: Running, mount: Mount, session: str) -> None:
    link = mount.told("upload_url", 201, mount_relative_path="/data/in/sales.csv", mimetype="text/csv")
    assert set(link) == {"upload_url", "mount_relative_path", "sandbox_mount_prefix", "expires_at"}
    assert (link["mount_relative_path"], link["sandbox_mount_prefix"]) == ("data/in/sales.csv", "/mnt/files")
    assert link["upload_url"].startswith(f"{server.url}/files/{session}/")
    left = datetime.fromisoformat(link["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=58) < left <= timedelta(minutes=61)
    mount.send("/data/in/sales.csv", b"region,total\nwest,10\n")
    # As SDKs ask: with the path that they were told, and with the slash that they were given.
    for path in ("data/in/sales.csv", "/data/in/sales.csv", "/mnt/files/data/in/sales.csv"):
        read = mount.read(path)
        assert (read.status_code, read.content) == (200, b"region,total\nwest,10\n")
        assert read.headers["content-type"].startswith("text/csv")
    told = mount.told("download_url", mount_relative_path="/data/in/sales.csv")
    assert set(told) == {"download_url", "mount_relative_path", "sandbox_mount_prefix", "expires_at"}
    assert told["mount_relative_path"] == "data/in/sales.csv"


def test_what_was_sent_is_seen_inside_and_what_is_made_inside_is_listed(
    client: httpx2.Client, mount: Mount, session: str
) -> None:
    mount.send("sales.csv", b"west,10")
    assert run_cell(client, session, "open('/mnt/files/sales.csv').read()") == "'west,10'"
    run_cell(client, session, "import os; os.makedirs('/mnt/files/out'); open('/mnt/files/out/r.txt', 'w').write('ok')")
    items = {one["mount_relative_path"]: one for one in mount.listed()["items"]}
    assert set(items) == {"sales.csv", "out/r.txt"}
    assert set(items["out/r.txt"]) == {"mount_relative_path", "sandbox_mount_prefix", "size", "last_modified"}
    assert (items["out/r.txt"]["size"], items["out/r.txt"]["sandbox_mount_prefix"]) == (2, "/mnt/files")
    datetime.fromisoformat(items["out/r.txt"]["last_modified"])


def test_files_are_listed_through_folders_by_their_beginnings_and_in_pages(mount: Mount) -> None:
    for path in ("a.txt", "data/1.csv", "data/in/2.csv", "data.json"):
        mount.send(path, b"x")
    assert set(mount.paths()) == {"a.txt", "data/1.csv", "data/in/2.csv", "data.json"}
    assert set(mount.paths(mount_relative_prefix="data")) == {"data/1.csv", "data/in/2.csv", "data.json"}
    assert set(mount.paths(mount_relative_prefix="/data/")) == {"data/1.csv", "data/in/2.csv"}
    first = mount.listed(limit=3)
    rest = mount.listed(limit=3, cursor=first["next_cursor"])
    assert len({one["mount_relative_path"] for page in (first, rest) for one in page["items"]}) == 4
    # Some clients take no null.
    assert "next_cursor" not in rest
    for wrong in ({"limit": 0}, {"limit": 501}, {"cursor": "%%"}):
        bad_request(mount.client.get(f"{mount.place}/items", params=wrong), next(iter(wrong)))


def test_a_file_and_a_folder_are_deleted(mount: Mount) -> None:
    for path in ("a.txt", "data/1.csv", "data/in/2.csv"):
        mount.send(path, b"x")
    gone = mount.told("delete", mount_relative_path="/a.txt")
    assert gone == {"mount_relative_path": "a.txt", "sandbox_mount_prefix": "/mnt/files"}
    assert mount.told("delete", mount_relative_path="data")["mount_relative_path"] == "data"
    assert mount.paths() == []


@pytest.mark.parametrize("what", ["download_url", "delete"])
def test_a_file_that_is_not_there_is_named(mount: Mount, what: str) -> None:
    refused(mount.ask(what, mount_relative_path="/missing.pdf"), 404, "HTTP_NotFound", 10404, "missing.pdf")


@pytest.mark.parametrize("what", ["upload_url", "download_url", "delete"])
def test_paths_that_lead_elsewhere_and_bodies_without_one_are_refused(mount: Mount, what: str) -> None:
    bad_request(mount.ask(what, mount_relative_path="../etc/passwd"), "not a path in the mount")
    bad_request(mount.ask(what, mount_relative_path=""), "empty")
    bad_request(mount.ask(what), "mount_relative_path", "missing")


def test_another_mount_is_named_with_the_one_there_is(mount: Mount) -> None:
    other = mount.place.replace("/files", "/other")
    refused(mount.client.get(f"{other}/items"), 404, "HTTP_NotFound", 10404, "'other'", "'files'")
