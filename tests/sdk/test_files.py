"""Files of sessions through the SDK, sync and async, against the real server: also over connections that break."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.host.support import eventually
from tests.restart.server import Server, own_settings, served

from workbench import AsyncWorkbench, RemoteFile, Session, Workbench
from workbench.client import _file_requests
from workbench.client._moving import MountOf
from workbench.client._requests import Request
from workbench.client._transfers import WHOLE_BYTES
from workbench.client.local import LocalServer
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, WorkbenchError

_LARGE = os.urandom(1024) * (12 * 1024)
assert len(_LARGE) > WHOLE_BYTES


def test_an_upload_is_seen_inside_and_what_is_written_there_comes_out(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "sales.csv"
    source.write_bytes(b"a,b\n1,2\n")
    made = session.files.upload(source)
    assert (made.sandbox_mount_prefix, made.mount_relative_path) == ("/mnt/files", "sales.csv")
    assert (made.filename, made.size) == ("sales.csv", 8)
    session.run("open('/mnt/files/report.txt', 'w').write(open('/mnt/files/sales.csv').read().upper())")
    report = session.files.download("/report.txt")
    assert (report.text(), report.buffer(), report.size) == ("A,B\n1,2\n", b"A,B\n1,2\n", 8)
    assert report.save(tmp_path / "out" / "report.txt") == tmp_path / "out" / "report.txt"
    assert report.save(tmp_path) == tmp_path / "report.txt"
    assert (tmp_path / "report.txt").read_bytes() == b"A,B\n1,2\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "report.txt", "sales.csv"]
    # Anybody with the link, without a key, until then.
    assert httpx2.get(report.download_url, trust_env=False).content == b"A,B\n1,2\n"
    assert report.expires_at > "2026"


def test_bytes_and_open_files_are_sent_and_named(session: Session) -> None:
    files = session.files
    assert files.upload(b"x", remote_path="in/a.bin").mount_relative_path == "in/a.bin"
    assert files.upload(b"", mimetype="text/csv").filename.endswith(".csv")
    open_file = io.BytesIO(b"0123456789")
    open_file.seek(4)
    assert files.upload(open_file, remote_path="/mnt/files/rest").text() == "456789"
    reading, writing = os.pipe()
    threading.Thread(target=lambda: fill(writing)).start()
    with os.fdopen(reading, "rb") as pipe:
        piped = files.upload(pipe, remote_path="piped")
    assert piped.size == 3_000_000
    for wrong in (b"x", io.BytesIO(b"x")):
        with pytest.raises(InvalidRequest, match="remote_path"):
            files.upload(wrong)


def fill(descriptor: int) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        pipe.write(bytes(3_000_000))


def test_two_large_files_of_one_name_and_size_sent_one_after_the_other_are_two(session: Session) -> None:
    for letter in b"ab":
        data = bytes([letter]) * (9 * 1024 * 1024)
        session.files.upload(data, remote_path="same.bin")
        assert session.files.download("same.bin").buffer() == data


def test_files_are_listed_by_prefix_and_page_and_deleted(session: Session) -> None:
    files = session.files
    for number in range(5):
        files.upload(b"x" * number, remote_path=f"data/{number}.txt")
    files.upload(b"", remote_path="other")
    first = files.list(path="/data/", limit=2)
    assert [(one.mount_relative_path, one.size) for one in first.items] == [("data/0.txt", 0), ("data/1.txt", 1)]
    assert first.items[0].sandbox_mount_prefix == "/mnt/files"
    second = files.list(prefix="data/", cursor=first.next_cursor, limit=500)
    assert [one.mount_relative_path for one in second.items] == ["data/2.txt", "data/3.txt", "data/4.txt"]
    assert second.next_cursor is None
    assert len(list(files.iter())) == 6
    use = files.usage()
    assert use.files >= 6
    assert use.complete
    assert use.most_bytes > use.bytes
    assert files.delete("/data").files == 5
    assert [one.mount_relative_path for one in files.list().items] == ["other"]
    with pytest.raises(InvalidRequest):
        files.list("a", prefix="b")


def test_what_is_not_there_or_cannot_be_is_told(session: Session, tmp_path: Path) -> None:
    files = session.files
    files.upload(b"x", remote_path="folder/x")
    for call in (files.download, files.delete):
        with pytest.raises(NotFound, match=r"none\.txt"):
            call("none.txt")
    with pytest.raises(Conflict, match="folder"):
        files.download("folder")
    for mount in ("other", "..", "a/../b"):
        with pytest.raises(NotFound, match="'files'"):
            files.list(mount_id=mount)
    for name in ("../x", "a/./b", "x\0y", "a" * 4096):
        with pytest.raises(InvalidRequest):
            files.upload(b"x", remote_path=name)
    with pytest.raises(InvalidRequest, match="upload_folder"):
        files.upload(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.upload(tmp_path / "nowhere")
    gone = files.download("folder/x")
    files.delete("folder")
    with pytest.raises(NotFound):
        gone.text()
    with pytest.raises(NotFound):
        gone.save(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []


def test_files_are_experimental_as_well(session: Session) -> None:
    assert session.experimental.files is session.files


def test_folders_go_in_and_come_out_the_same(session: Session, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a").write_bytes(b"alpha")
    (tree / "sub" / "b").write_bytes(b"beta")
    (tree / "link").symlink_to("/etc/passwd")
    made = session.files.upload_folder(tree, "in")
    assert [one.mount_relative_path for one in made] == ["in/a", "in/sub/b"]
    saved = session.files.download_folder("in", tmp_path / "back")
    assert saved == [tmp_path / "back" / "a", tmp_path / "back" / "sub" / "b"]
    assert saved[1].read_bytes() == b"beta"
    with pytest.raises(NotFound):
        session.files.download_folder("nothing", tmp_path)


def test_an_expired_link_is_renewed_by_itself(wb: Workbench, session: Session) -> None:
    made = session.files.upload(b"still there", remote_path="x")
    place = MountOf(wb._sender, session.id, "files")
    asked = _file_requests.download_link(session.id, "files", "x")
    short = wb._sender.send(
        Request(method="POST", path=asked.path, body=b'{"path": "x", "expires_in_s": 1}', parse=asked.parse)
    )
    expired = RemoteFile(wb._sender, place, short)
    eventually(lambda: httpx2.get(short.url, trust_env=False).status_code == 403, "it has expired")
    assert expired.text() == "still there"
    assert expired.download_url != short.url
    assert made.text() == "still there"


def test_a_url_of_this_machine_is_not_fetched(session: Session) -> None:
    with pytest.raises(WorkbenchError) as refused:
        session.files.upload("http://127.0.0.1:1/x.csv")
    assert refused.value.code == Denied.code
    assert session.files.list().items == []


class Cutting:
    """A way to the server on which a connection breaks after so many bytes in either direction, so many times."""

    def __init__(self, url: str, after: int, times: int) -> None:
        there = urlsplit(url)
        self._there = (there.hostname or "", there.port or 80)
        self._after = after
        self.left = times
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._there)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        carried = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                carried += len(data)
                if carried > self._after and self.left > 0:
                    self.left -= 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)


@contextlib.contextmanager
def cutting(server: LocalServer, *, times: int) -> Iterator[Cutting]:
    way = Cutting(server.url, 3_000_000, times)
    try:
        yield way
    finally:
        way.close()


def test_large_files_go_on_where_a_connection_broke(server: LocalServer, session: Session, tmp_path: Path) -> None:
    with cutting(server, times=4) as way, Workbench(way.url, server.key) as wb:
        files = wb.use(session.id).files
        made = files.upload(_LARGE, remote_path="large.bin")
        assert made.size == len(_LARGE)
        assert way.left < 4
        session.run("import hashlib; digest = hashlib.sha256(open('/mnt/files/large.bin', 'rb').read()).hexdigest()")
        way.left = 2
        assert made.save(tmp_path / "back.bin").read_bytes() == _LARGE
        assert way.left == 0
        assert [one.name for one in tmp_path.iterdir()] == ["back.bin"]


async def test_async_files_have_the_same_names_and_break_as_little(
    server: LocalServer, awb: AsyncWorkbench, session: Session, tmp_path: Path
) -> None:
    with cutting(server, times=4) as way:
        async with AsyncWorkbench(way.url, server.key) as cut:
            files = (await cut.use(session.id)).files
            made = await files.upload(io.BytesIO(_LARGE), remote_path="large.bin")
            way.left = 2
            assert (await made.save(tmp_path)).read_bytes() == _LARGE
            assert way.left == 0
    files = (await awb.use(session.id)).files
    for number in range(3):
        await files.upload(b"x", remote_path=f"small/{number}")
    assert [one.mount_relative_path async for one in files.iter("small/")] == ["small/0", "small/1", "small/2"]
    assert await (await files.download("small/1")).text() == "x"
    assert len(await files.download_folder("small", tmp_path / "small")) == 3
    assert len(await files.upload_folder(tmp_path / "small", "again")) == 3
    assert (await files.delete("small")).files == 3
    assert (await files.usage()).files >= 4
    with pytest.raises(NotFound):
        await files.download("small/1")


async def test_a_cancelled_transfer_leaves_nothing(awb: AsyncWorkbench, session: Session, tmp_path: Path) -> None:
    files = (await awb.use(session.id)).files
    made = await files.upload(_LARGE, remote_path="large.bin")
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            loop.call_soon_threadsafe(begun.set)
            return super().read(min(size or 1, 10_000))

    sending = asyncio.create_task(files.upload(Slow(_LARGE), remote_path="never.bin"))
    async with asyncio.timeout(60):
        await begun.wait()
    saving = asyncio.create_task(made.save(tmp_path / "never.bin"))
    await asyncio.sleep(0)
    for task in (sending, saving):
        task.cancel()
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as silent:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(files.upload(silent, remote_path="never.bin"), 0.5)
        os.close(writing)
    assert all(
        isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(sending, saving, return_exceptions=True)
    )
    assert list(tmp_path.iterdir()) == []
    assert [one.mount_relative_path for one in (await files.list()).items] == ["large.bin"]


class Restarting(io.BytesIO):
    """A source during which the server is killed and started again."""

    def __init__(self, data: bytes, server: Server) -> None:
        super().__init__(data)
        self._server = server
        self._restarted = False

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > len(_LARGE) // 2 and not self._restarted:
            self._restarted = True
            self._server.kill()
            self._server.start()
        return super().read(size)


@pytest.mark.long
def test_an_upload_goes_on_over_a_killed_server_and_a_url_is_fetched_where_it_is_allowed() -> None:
    with own_settings(fetch_allow="127.0.0.1") as settings, served(settings) as server, server.bench() as wb:
        session = wb.create("user_123")
        made = session.files.upload(Restarting(_LARGE, server), remote_path="large.bin")
        assert made.buffer() == _LARGE
        fetched = session.files.upload(made.download_url, remote_path="copies/")
        assert (fetched.mount_relative_path, fetched.size) == ("copies/large.bin", len(_LARGE))
        session.delete()
