"""Transfers that break off: nothing half is ever seen, and what came goes on where it was."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from tests.host.support import eventually
from tests.server.files_support import TUS, Mount, answered, connected, head, received
from tests.server.running import Running, problem_of, running

from workbench.settings import Settings

MIB = 1024 * 1024


@pytest.fixture
def mount(server: Running, client: httpx2.Client, session: str) -> Iterator[Mount]:
    """Of a session of the test's own."""
    with server.client("") as anyone:
        yield Mount(client, session, anyone)


def staged(settings: Settings) -> list[Path]:
    return [one for one in (settings.data_dir / "uploads").glob("*/*") if not one.name.endswith(".remark")]


def held(settings: Settings) -> bool:
    """Whether a connection writes to an upload."""
    for one in staged(settings):
        with one.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


@pytest.mark.parametrize("sent", [0, 10, 100_000, 3 * MIB])
def test_an_upload_that_breaks_off_replaces_nothing_and_leaves_nothing(
    server: Running, mount: Mount, sent: int
) -> None:
    mount.put("file", b"first")
    before = len(staged(server.settings))
    url = mount.upload_url("file")
    with connected(url) as connection:
        connection.sendall(head("PUT", url, content_length=str(5 * MIB)) + bytes(sent))
        eventually(lambda: len(staged(server.settings)) == before + 1, "the upload has begun")
    eventually(lambda: len(staged(server.settings)) == before, "what was staged is dropped")
    assert mount.get("file").content == b"first"
    assert mount.paths() == ["file"]


def test_chunks_that_break_off_replace_nothing(server: Running, mount: Mount) -> None:
    mount.put("file", b"first")
    url = mount.upload_url("file")
    for rest in (b"", b"zz\r\n"):
        with connected(url) as connection:
            connection.sendall(head("PUT", url, transfer_encoding="chunked") + b"3\r\nabc\r\n" + rest)
            if rest:
                assert received(connection).startswith(b"HTTP/1.1 400 ")
    eventually(lambda: not staged(server.settings), "what was staged is dropped")
    assert mount.get("file").content == b"first"


def test_a_file_that_changes_while_it_is_sent_breaks_off(mount: Mount) -> None:
    size = 40 * MIB
    mount.run(f"import os\nopen('/mnt/files/file', 'wb').write(os.urandom({size}))")
    for change in ("open('/mnt/files/file', 'r+b').write(b'x')", "os.truncate('/mnt/files/file', 20 << 20)"):
        url = mount.download_url("file")
        with connected(url) as connection:
            connection.sendall(head("GET", url))
            got = connection.recv(65_536)
            length = int(got.partition(b"content-length: ")[2].split(b"\r\n")[0])
            mount.run(f"import os\n{change}")
            got += received(connection)
        assert len(got.partition(b"\r\n\r\n")[2]) < length


def test_a_file_that_is_replaced_while_it_is_sent_comes_whole_as_it_was(mount: Mount) -> None:
    data = os.urandom(40 * MIB)
    mount.put("file", data)
    url = mount.download_url("file")
    with connected(url) as connection:
        connection.sendall(head("GET", url, connection="close"))
        got = connection.recv(65_536)
        assert mount.put("file", b"another").status_code == 201
        got += received(connection)
    assert got.partition(b"\r\n\r\n")[2] == data
    assert mount.get("file").content == b"another"


def test_a_reader_that_leaves_is_not_read_for(server: Running, mount: Mount) -> None:
    mount.run("open('/mnt/files/file', 'wb').truncate(4 << 30)")
    url = mount.download_url("file")
    with connected(url) as connection:
        connection.sendall(head("GET", url))
        connection.recv(65_536)
    began = time.monotonic()

    def noted() -> bool:
        entries = mount.client.get("/v1/audit", params={"limit": "20"}).json()["items"]
        return any(one["action"] == "file.download" and one["outcome"] == "client_left" for one in entries)

    eventually(noted, "it is noted that the client left")
    assert time.monotonic() - began < 5
    assert server.process.poll() is None


def test_pieces_make_a_file_when_they_are_all_there(mount: Mount) -> None:
    data = os.urandom(3 * MIB)
    url = mount.upload_url("file", size=len(data))
    told = mount.anyone.head(url)
    assert (told.status_code, told.headers["upload-offset"], told.headers["upload-length"]) == (
        200,
        "0",
        str(len(data)),
    )
    assert told.headers["tus-resumable"] == "1.0.0"
    assert told.headers["cache-control"] == "no-store"
    for start, end in ((0, 10), (10, 2 * MIB), (2 * MIB, len(data))):
        assert mount.paths() == []
        answer = mount.anyone.patch(url, content=data[start:end], headers={**TUS, "upload-offset": str(start)})
        assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(end))
        assert mount.anyone.head(url).headers["upload-offset"] == str(end)
    assert mount.get("file").content == data
    # What is done is done: also if the answer to the last piece was lost.
    again = mount.anyone.patch(url, content=b"", headers={**TUS, "upload-offset": str(len(data))})
    assert again.status_code == 204
    more = mount.anyone.patch(url, content=b"more", headers={**TUS, "upload-offset": str(len(data))})
    assert (more.status_code, more.headers["upload-offset"]) == (409, str(len(data)))
    assert "complete" in problem_of(more)["message"]
    assert mount.get("file").content == data


def test_the_length_may_come_with_a_piece(mount: Mount) -> None:
    url = mount.upload_url("file")
    assert mount.anyone.head(url).headers["upload-defer-length"] == "1"

    def piece(data: bytes, offset: int, **more: str) -> httpx2.Response:
        return mount.anyone.patch(url, content=data, headers={**TUS, "upload-offset": str(offset), **more})

    assert piece(b"12", 0).status_code == 204
    assert piece(b"34", 2, **{"upload-length": "6"}).status_code == 204
    assert mount.anyone.head(url).headers["upload-length"] == "6"
    assert piece(b"5", 4, **{"upload-length": "7"}).status_code == 422
    assert piece(b"567", 4).status_code == 413
    assert mount.paths() == []
    assert piece(b"56", 4).status_code == 204
    assert mount.get("file").content == b"123456"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"upload-offset": "3"}, 409),
        ({"upload-offset": "x"}, 422),
        ({}, 422),
        ({"upload-offset": "0", "content-type": "application/octet-stream"}, 415),
        ({"upload-offset": "0", "tus-resumable": "0.2.0"}, 412),
        ({"upload-offset": "0", "upload-length": "-1"}, 422),
        ({"upload-offset": "0", "upload-length": "2"}, 413),
    ],
)
def test_a_piece_that_does_not_fit_is_refused(mount: Mount, headers: dict[str, str], status: int) -> None:
    url = mount.upload_url("file")
    answer = mount.anyone.patch(url, content=b"1234", headers={**TUS, **headers})
    assert answer.status_code == status, answer.text
    if status == 409:
        assert answer.headers["upload-offset"] == "0"
    assert mount.anyone.head(url).headers["upload-offset"] == "0"
    assert mount.paths() == []


def test_a_length_below_what_has_come_is_refused_and_the_upload_goes_on(mount: Mount) -> None:
    url = mount.upload_url("file")

    def piece(data: bytes, offset: int, **more: str) -> httpx2.Response:
        return mount.anyone.patch(url, content=data, headers={**TUS, "upload-offset": str(offset), **more})

    assert piece(b"abcdef", 0).status_code == 204
    refused = piece(b"", 6, **{"upload-length": "2"})
    assert refused.status_code == 422
    assert "6 bytes have come" in problem_of(refused)["message"]
    assert mount.anyone.head(url).headers["upload-defer-length"] == "1"
    assert piece(b"gh", 6, **{"upload-length": "8"}).status_code == 204
    assert mount.get("file").content == b"abcdefgh"


def test_an_upload_can_be_given_up(server: Running, mount: Mount) -> None:
    before = len(staged(server.settings))
    url = mount.upload_url("file")
    assert mount.anyone.delete(url).status_code == 204
    started = mount.anyone.patch(url, content=b"12", headers={**TUS, "upload-offset": "0", "upload-length": "4"})
    assert started.status_code == 204
    assert len(staged(server.settings)) == before + 1
    assert mount.anyone.delete(url).status_code == 204
    assert len(staged(server.settings)) == before
    told = mount.anyone.head(url).headers
    assert (told["upload-offset"], told["upload-defer-length"]) == ("0", "1")
    # Another may begin, of another length; what is complete stays.
    again = mount.anyone.patch(url, content=b"123", headers={**TUS, "upload-offset": "0", "upload-length": "3"})
    assert again.status_code == 204
    assert mount.anyone.delete(url).status_code == 409
    assert mount.get("file").content == b"123"


def test_two_that_send_the_same_piece_make_one_file(server: Running, mount: Mount) -> None:
    data = os.urandom(300_000)
    for attempt in range(5):
        url = mount.upload_url(f"file{attempt}", size=len(data))
        with ThreadPoolExecutor(4) as pool:

            def send(number: int, url: str = url) -> int:
                del number
                headers = {**TUS, "upload-offset": "0"}
                return mount.anyone.patch(url, content=data, headers=headers).status_code

            statuses = list(pool.map(send, range(4)))
        assert statuses.count(204) == 1, statuses
        assert set(statuses) == {204, 409}
        assert mount.anyone.head(url).headers["upload-offset"] == str(len(data))
        assert mount.get(f"file{attempt}").content == data
    assert not staged(server.settings)


def test_who_drips_keeps_nobody_from_their_files(mount: Mount) -> None:
    """On as many connections as one link may have, which are more than there are threads for all."""
    url = mount.upload_url("slow")
    over = threading.Event()
    with contextlib.ExitStack() as stack:
        dripping = [stack.enter_context(connected(url)) for _ in range(16)]
        for one in dripping:
            one.sendall(head("PUT", url, content_length=str(100 * MIB)) + bytes(1000))

        def drip() -> None:
            while not over.wait(0.001):
                for one in dripping:
                    one.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            time.sleep(0.5)
            began = time.monotonic()
            for number in range(5):
                assert mount.put("file", b"%d" % number).status_code == 201
                assert mount.paths() == ["file"]
            assert time.monotonic() - began < 5
        finally:
            over.set()
            thread.join()


def test_a_server_that_stops_tells_who_stalls_soon(settings: Settings) -> None:
    with running(settings) as server, server.client() as client, server.client("") as anyone:
        client.post("/v1/sessions", json={"id": "one"})
        url = Mount(client, "one", anyone).upload_url("file")
        with connected(url) as connection:
            connection.sendall(head("PUT", url, content_length=str(50 * MIB)) + bytes(3 * MIB))
            eventually(lambda: held(settings), "the upload has begun")
            began = time.monotonic()
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            told = received(connection)
            assert told.startswith(b"HTTP/1.1 503 ")
            assert b'"retryable":true' in told
            assert time.monotonic() - began < 8
            stopping.join()
    assert not staged(settings)


def test_links_say_which_protocol_they_speak(mount: Mount) -> None:
    answer = mount.anyone.request("OPTIONS", mount.upload_url("file"))
    assert (answer.status_code, answer.headers["tus-version"]) == (204, "1.0.0")
    assert mount.anyone.request("OPTIONS", "/files/any/where/at-all").headers["tus-resumable"] == "1.0.0"


def test_one_piece_at_a_time(mount: Mount) -> None:
    url = mount.upload_url("file")
    with connected(url) as connection:
        connection.sendall(
            head("PATCH", url, upload_offset="0", content_length="8", expect="100-continue",
                 content_type="application/offset+octet-stream")
        )  # fmt: skip
        assert connection.recv(4096).startswith(b"HTTP/1.1 100")
        busy = mount.anyone.patch(url, content=b"1234", headers={**TUS, "upload-offset": "0"})
        assert busy.status_code == 409
        assert "another connection" in problem_of(busy)["message"]
        connection.sendall(b"12345678")
        assert connection.recv(4096).startswith(b"HTTP/1.1 204")


def test_a_piece_that_breaks_off_is_gone_on_with(server: Running, mount: Mount) -> None:
    data = os.urandom(4 * MIB)
    url = mount.upload_url("file", size=len(data))
    for sent in (100, 1_000_000, 2_500_000):
        start = int(mount.anyone.head(url).headers["upload-offset"])
        with connected(url) as connection:
            fields = {"upload_offset": str(start), "content_length": str(len(data) - start)}
            asked = head("PATCH", url, content_type=TUS["content-type"], **fields)
            connection.sendall(asked + data[start:sent])

            def has_come(sent: int = sent) -> bool:
                return int(mount.anyone.head(url).headers["upload-offset"]) == sent

            eventually(has_come, "it has come")
        eventually(lambda: not held(server.settings), "the broken connection was noticed")
        assert mount.anyone.head(url).headers["upload-offset"] == str(sent)
        assert mount.paths() == []
    last = mount.anyone.patch(url, content=data[2_500_000:], headers={**TUS, "upload-offset": "2500000"})
    assert last.status_code == 204
    assert mount.get("file").content == data


def test_an_upload_goes_on_behind_a_server_that_was_killed(settings: Settings) -> None:
    data = os.urandom(6 * MIB)
    with running(settings) as server, server.client() as client, server.client("") as anyone:
        client.post("/v1/sessions", json={"id": "one"})
        mount = Mount(client, "one", anyone)
        mount.put("file", b"first")
        url = mount.upload_url("file")
        broken = mount.upload_url("file")
        with connected(url) as connection, connected(broken) as other:
            fields = {"upload_offset": "0", "upload_length": str(len(data)), "content_length": str(len(data))}
            connection.sendall(head("PATCH", url, content_type=TUS["content-type"], **fields) + data[: 4 * MIB])
            other.sendall(head("PUT", broken, content_length=str(len(data))) + data[: 4 * MIB])
            eventually(lambda: int(anyone.head(url).headers["upload-offset"]) == 4 * MIB, "it has come")
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(20)
    with running(settings) as server, server.client() as client, server.client("") as anyone:
        mount = Mount(client, "one", anyone)
        assert mount.get("file").content == b"first"
        url = server.url + url[url.index("/files/") :]
        told = anyone.head(url).headers
        assert (told["upload-offset"], told["upload-length"]) == (str(4 * MIB), str(len(data)))
        last = anyone.patch(url, content=data[4 * MIB :], headers={**TUS, "upload-offset": str(4 * MIB)})
        assert last.status_code == 204
        assert mount.get("file").content == data
        assert mount.paths() == ["file"]
        client.delete("/v1/sessions/one")
    assert not staged(settings)


@pytest.mark.long
def test_a_server_that_stops_lets_transfers_end_or_says_that_it_cannot(settings: Settings) -> None:
    with running(settings) as server, server.client() as client, server.client("") as anyone:
        client.post("/v1/sessions", json={"id": "one"})
        mount = Mount(client, "one", anyone)
        url = mount.upload_url("file")
        late = mount.upload_url("late")
        with connected(url) as connection, connected(late) as other:
            for one, link in ((connection, url), (other, late)):
                one.sendall(head("PUT", link, content_length="5", expect="100-continue"))
                assert one.recv(4096).startswith(b"HTTP/1.1 100")
            other.settimeout(30)
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            time.sleep(0.5)
            connection.sendall(b"12345")
            assert answered(connection)[0] == 201
            told = received(other)
            assert told.startswith(b"HTTP/1.1 503 ")
            assert b'"retryable":true' in told
            stopping.join()
        assert not [one for one in server.events() if one["level"] == "error" and "where" in one]
    assert not staged(settings)
