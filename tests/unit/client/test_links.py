"""What is sent to links and to the server about files, with a small real server."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.loopback import KEY, Reply, refused, serving

from workbench import AsyncSession, AsyncWorkbench, Session, Workbench
from workbench.client import _file_requests
from workbench.egress.fetch import WHOLE_S
from workbench.errors import InvalidRequest, NotFound, ServerUnavailable


def answers(asked_for: str, port: int) -> Reply:
    url = f"http://127.0.0.1:{port}/files/x?sig=1"
    told = {"url": url, "path": "x", "expires_at": "", "size": 2, "version": "v"}
    return Reply(200, told) if asked_for.startswith("/v1/") else Reply(200, text="ok", headers={"ETag": '"v"'})


def test_links_are_asked_without_the_key_and_never_through_a_proxy_to_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving(lambda asked: answers(asked.target, loopback.port)) as loopback:
        with Workbench(loopback.url, KEY) as wb:
            assert session_of(wb).files.download("x").text() == "ok"
        to_server = [one for one in loopback.asked if one.target.startswith("/v1/")]
        to_link = [one for one in loopback.asked if one.target.startswith("/files/")]
    assert all(KEY in one.headers["authorization"] for one in to_server)
    assert len(to_link) == 1
    assert KEY not in str(to_link)
    assert "authorization" not in to_link[0].headers
    assert to_link[0].headers["accept-encoding"] == "identity"


def test_a_proxy_to_a_link_elsewhere_is_told_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"url": "http://elsewhere.test/files/x?sig=1", "path": "x", "expires_at": "", "size": 2, "version": "v"}

    def reply(asked: Any) -> Reply:
        return Reply(200, told) if asked.target.startswith("/v1/") else Reply(200, text="ok")

    with serving(reply) as loopback:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, loopback.url)
        with Workbench(loopback.url, KEY) as wb:
            assert session_of(wb).files.download("x").text() == "ok"
        assert loopback.asked[-1].target == "http://elsewhere.test/files/x?sig=1"
        assert loopback.asked[-1].headers["host"] == "elsewhere.test"


async def test_async_links_are_asked_without_the_key() -> None:
    with serving(lambda asked: answers(asked.target, loopback.port)) as loopback:
        async with AsyncWorkbench(loopback.url, KEY) as wb:
            session = AsyncSession(wb._sender, "s", "u")
            assert await (await session.files.download("x")).text() == "ok"
        assert KEY not in str([one for one in loopback.asked if one.target.startswith("/files/")])


async def test_what_makes_a_link_good_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda asked: answers(asked.target, loopback.port)) as loopback:
        with Workbench(loopback.url, KEY) as wb:
            assert session_of(wb).files.download("x").text() == "ok"
        async with AsyncWorkbench(loopback.url, KEY) as awb:
            assert await (await AsyncSession(awb._sender, "s", "u").files.download("x")).text() == "ok"
        assert [one.target for one in loopback.asked if "sig=1" in one.target] == ["/files/x?sig=1"] * 2
    assert "/files/x" in caplog.text
    assert "sig=" not in caplog.text


@pytest.mark.parametrize("opens", [True, False], ids=["pipe", "fifo"])
async def test_an_upload_from_a_silent_pipe_is_cancelled_at_once(opens: bool, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.mkfifo(tmp_path / "fifo")
    with os.fdopen(reading, "rb") as pipe, serving(lambda asked: answers(asked.target, loopback.port)) as loopback:
        async with AsyncWorkbench(loopback.url, KEY, timeout_s=5) as wb:
            files = AsyncSession(wb._sender, "s", "u").files
            source = pipe if opens else tmp_path / "fifo"
            sending = asyncio.create_task(files.upload(source, remote_path="x"))
            # Twice, as somebody without patience does.
            for _ in range(2):
                await asyncio.sleep(0.3)
                sending.cancel()
                await asyncio.sleep(0)
            ended, _ = await asyncio.wait({sending}, timeout=5)
            os.close(writing)
            assert ended
            with pytest.raises(asyncio.CancelledError if opens else InvalidRequest):
                await sending


def test_a_link_that_leads_elsewhere_is_not_followed() -> None:
    def reply(asked: Any) -> Reply:
        if asked.target.startswith("/files/"):
            return Reply(302, headers={"Location": "/elsewhere"})
        return answers(asked.target, loopback.port)

    with serving(reply) as loopback, Workbench(loopback.url, KEY) as wb:
        file = session_of(wb).files.download("x")
        with pytest.raises(ServerUnavailable, match="leads elsewhere"):
            file.buffer()
        assert "/elsewhere" not in [one.target for one in loopback.asked]


def test_a_file_shows_itself_without_its_link() -> None:
    with serving(lambda asked: answers(asked.target, loopback.port)) as loopback, Workbench(loopback.url, KEY) as wb:
        file = session_of(wb).files.download("x")
        assert repr(file) == "<RemoteFile /mnt/files/x, 2 bytes>"
        assert (file.filename, file.sandbox_mount_prefix, file.mount_relative_path) == ("x", "/mnt/files", "x")


def test_a_refusal_has_the_words_of_the_server() -> None:
    gone = refused("not_found", "no such file: 'x'", 404)
    with serving(gone) as loopback, Workbench(loopback.url, KEY) as wb, pytest.raises(NotFound, match="file: 'x'"):
        session_of(wb).files.download("x")


def session_of(wb: Workbench) -> Session:
    return Session(wb._sender, "s", "u")


def test_a_folder_is_fetched_without_what_is_deleted_meanwhile(tmp_path: Path) -> None:
    def reply(asked: Any) -> Reply:
        if "/items" in asked.target:
            items = [{"path": f"in/{name}", "size": 2, "modified_at": "", "version": "v"} for name in ("a", "b", "c")]
            return Reply(200, {"items": items, "next_cursor": None, "skipped": 0})
        if asked.body == {"path": "in/b"}:
            return refused("not_found", "no such file: 'in/b'", 404)
        return answers(asked.target, loopback.port)

    with serving(reply) as loopback, Workbench(loopback.url, KEY) as wb:
        saved = session_of(wb).files.download_folder("in", tmp_path)
    assert saved == [tmp_path / "a", tmp_path / "c"]


def test_what_can_be_in_no_address_or_path_is_refused_before_it_is_sent() -> None:
    with serving(refused("not_found")) as loopback, Workbench(loopback.url, KEY) as wb:
        files = session_of(wb).files
        for call in (files.list, files.download, files.delete):
            with pytest.raises(InvalidRequest, match="half a character"):
                call("a\ud800b")
        with pytest.raises(InvalidRequest, match="half a character"):
            files.upload(b"x", remote_path="a\ud800b")
        with pytest.raises(InvalidRequest, match="half a character"):
            files.list(mount_id="\ud800")
        with pytest.raises(NotFound, match="has one, 'files'"):
            files.list(mount_id="a/../b")
        assert loopback.asked == []


def test_the_server_is_the_first_to_give_up_fetching() -> None:
    assert _file_requests.fetch_file("s", "files", "http://x", "").silence_s > WHOLE_S
