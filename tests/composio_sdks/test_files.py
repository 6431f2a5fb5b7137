"""Files of a session, up and down, as each SDK sends and fetches them."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from tests.composio_sdks.own_network import PUBLIC_LOOKING
from tests.composio_sdks.told import Told
from tests.composio_sdks.world import FOLLOWS_EVERY_LINK, World

pytestmark = pytest.mark.long

SALES = "region,total\nwest,10\n"


def paths(page: dict[str, Any]) -> list[str]:
    return [one["mount_relative_path"] for one in page["items"]]


def test_what_is_uploaded_is_there_under_the_mount(told: Told) -> None:
    sent = {
        "upload of a path": ("sales.csv", SALES),
        "upload to a folder": ("data/in/sales.csv", SALES),
        "upload of bytes": ("data.json", '{"a":1}'),
    }
    if told.line.startswith("typescript"):
        sent["upload of a file"] = ("f.csv", "x,y")
    for name, (path, text) in sent.items():
        file = told.gave(name)
        assert (file["sandbox_mount_prefix"], file["mount_relative_path"]) == ("/mnt/files", path)
        assert (file["text"], file["filename"]) == (text, path.rpartition("/")[2])
    assert re.fullmatch(r"upload-[0-9a-f]{8}\.json", told.gave("upload without a name")["mount_relative_path"])


def test_links_lead_where_the_sdk_follows_them_and_end(told: Told) -> None:
    file = told.gave("upload of a path")
    base = told.server.url if told.line in FOLLOWS_EVERY_LINK else f"http://{PUBLIC_LOOKING}:8788"
    assert file["download_url"].startswith(f"{base}/files/")
    ends = datetime.datetime.fromisoformat(file["expires_at"])
    assert ends > datetime.datetime.now(datetime.UTC)


def test_the_sandbox_sees_what_was_uploaded(told: Told) -> None:
    seen = told.done("the sandbox sees them")["stdout"]
    assert "./data/in/sales.csv\n" in seen
    assert "./sales.csv\n" in seen
    assert seen.endswith(SALES)


def test_a_list_has_all_files_in_pages(told: Told) -> None:
    assert told.gave("list of nothing")["items"] == []
    listed = told.gave("list")
    assert {"sales.csv", "data/in/sales.csv", "data.json"} <= set(paths(listed))
    sales = next(one for one in listed["items"] if one["mount_relative_path"] == "sales.csv")
    assert (sales["size"], sales["sandbox_mount_prefix"]) == (len(SALES), "/mnt/files")
    first, second = told.gave("first page"), told.gave("second page")
    assert len(first["items"]) == 1
    assert first["next_cursor"]
    assert sorted(paths(first) + paths(second)) == sorted(paths(listed))
    assert not second.get("next_cursor")
    assert "data/in/sales.csv" in paths(told.gave("list of a folder"))
    assert "sales.csv" not in paths(told.gave("list of a folder"))


def test_what_the_agent_writes_is_downloaded(told: Told) -> None:
    report = told.gave("download")
    assert (report["mount_relative_path"], report["filename"], report["text"]) == ("report.pdf", "report.pdf", "PDF!")
    assert told.gave("save") == told.gave("buffer") == "PDF!"
    if told.line.startswith("typescript"):
        assert told.gave("blob") == {"type": "application/pdf", "text": "PDF!"}


def test_what_is_not_there_cannot_be_downloaded(told: Told) -> None:
    refused = told.raised("download of nobody")
    assert refused.status == 404 or refused.kind == "RemoteFileDownloadError"
    assert "missing.pdf" in refused.message


def test_nothing_is_put_outside_of_the_mount(told: Told) -> None:
    assert told.raised("upload out of the mount").status == 400


def test_a_cursor_and_a_mount_of_nobody_are_refused(told: Told) -> None:
    assert told.raised("list of a cursor of nobody").status == 400
    assert told.raised("list of another mount").status == 404


def test_files_and_folders_are_deleted(told: Told) -> None:
    for name, path in (("delete of a file", "sales.csv"), ("delete of a folder", "data")):
        gone = told.gave(name)
        assert (gone["mount_relative_path"], gone["sandbox_mount_prefix"]) == (path, "/mnt/files")
    assert told.raised("delete of what is gone").status == 404
    left = paths(told.gave("list at the end"))
    assert not [path for path in left if path == "sales.csv" or path.startswith("data/")]


@pytest.mark.parametrize("line", ["python 0.30", "typescript 0.21"])
def test_newer_sdks_refuse_links_to_loopback_and_list_all_the_same(world: World, line: str) -> None:
    """Which is why `WORKBENCH_LINKS_URL` is there."""
    language, _, version = line.partition(" ")
    if language == "python":
        done = world.python(version, world.plain, "-m", "tests.composio_sdks.python.guard")
    else:
        done = world.node(version, world.plain, "guard.mjs")
    told = Told(line, world.plain, done.facts)
    assert told.raised("upload").kind in {"BlockedInternalUrlError", "ComposioBlockedInternalUrlError"}
    assert told.gave("list")["items"] == []
