"""Parts of the door of files by themselves: what is counted, what conditions mean, and bodies that come to no end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Message

from workbench.core.mount_requests import FileLink
from workbench.errors import InvalidRequest, QuotaExceeded, ServerUnavailable, TooLarge
from workbench.model.ids import ProjectId, SessionId
from workbench.model.mounts import FilePath, LinkAction, MountFile
from workbench.server.addresses import links_lead_to, reached_by
from workbench.server.connection import CONNECTION
from workbench.server.files import bodies, downloads, pace, uploads
from workbench.server.files.bodies import Body
from workbench.server.files.conditions import wanted_part
from workbench.server.files.transfers import Most, Transfers
from workbench.server.files.visit import FileVisit, Refused
from workbench.server.service import ServerOptions

FILE = MountFile(path=FilePath("file"), size=1000, modified_at="2026-01-01T00:00:00.000Z", version="1-3e8-5")
MIB = 1024 * 1024


class Staged:
    """Takes what comes, and knows it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.writes: list[int] = []
        self.takes = 0

    @property
    def offset(self) -> int:
        return len(self.data)

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data
        self.writes.append(len(data))

    async def take(self, source: int, most: int) -> int:
        self.takes += 1
        try:
            some = os.read(source, most)
        except BlockingIOError:
            return 0
        if not some:
            raise EOFError
        self.data += some
        return len(some)


class TakenOver:
    """A connection whose socket is read past the parser."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self.ended = ""

    def take_body(self) -> int:
        self._source.setblocking(False)
        return os.dup(self._source.fileno())

    def body_taken(self) -> None:
        self.ended = "taken"

    async def break_off(self) -> None:
        self.ended = "broken off"


def visit(
    pieces: list[bytes], *, ends: bool = True, breaks: bool = False, connection: object = None, **headers: str
) -> FileVisit:
    """Of a client that sends these, and then is at its end, gone, or silent."""
    left = iter(pieces)

    async def receive() -> Message:
        try:
            piece = next(left)
        except StopIteration:
            if not ends:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": breaks or not ends or piece != pieces[-1]}

    given = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    made = SimpleNamespace(
        receive=receive, headers=given, scope={CONNECTION: connection}, transfers=Transfers(),
        note=SimpleNamespace(body_left=False), door=SimpleNamespace(stopping=asyncio.Event()),
    )  # fmt: skip
    return cast("FileVisit", made)


async def into(one: FileVisit, staged: Staged, most: int | None = None) -> None:
    await Body(one, most).into(cast("Any", staged))


def link(session: str = "mine", project: str = "default", action: LinkAction = LinkAction.UPLOAD) -> FileLink:
    return FileLink(
        session=SessionId(session),
        project=ProjectId(project),
        mount="files",
        path=FilePath("x"),
        action=action,
        expires=1,
    )


def test_transfers_of_one_leave_room_for_others() -> None:
    transfers = Transfers(Most(of_a_link=1, of_a_session=2, of_a_project=3, of_all=4))

    def refused(one: FileLink, signature: str, words: str) -> None:
        with pytest.raises(QuotaExceeded, match=words) as refused, transfers.one(one, signature):
            pass
        assert refused.value.retryable

    with contextlib.ExitStack() as held:
        held.enter_context(transfers.one(link(), "a"))
        refused(link(), "a", "1 uploads by this link")
        held.enter_context(transfers.one(link(), "b"))
        refused(link(), "c", "2 uploads of this session")
        held.enter_context(transfers.one(link("another"), "d"))
        refused(link("third"), "e", "3 uploads of this project")
        held.enter_context(transfers.one(link("x", "theirs"), "f"))
        refused(link("y", "others"), "g", "4 uploads of all sessions")
        # Who writes does not wait for those that read, nor they for him.
        for signature in ("h", "i"):
            held.enter_context(transfers.one(link(action=LinkAction.DOWNLOAD), signature))
        refused(link(action=LinkAction.DOWNLOAD), "j", "2 downloads of this session")
    assert not transfers._counts
    with transfers.one(link(), "a"):
        pass


def test_the_more_transfers_the_smaller_their_pieces() -> None:
    transfers = Transfers()
    with contextlib.ExitStack() as held:
        sizes = []
        for number in range(256):
            held.enter_context(transfers.one(link(f"{number}", f"{number}"), f"{number}"))
            sizes.append(transfers.piece_bytes())
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (MIB, 128 * 1024)
    assert max(size * count for count, size in enumerate(sizes, 1)) <= 32 * MIB


@pytest.mark.parametrize("text", ["bytes=0-1,4-5", "bytes=", "bytes=-", "items=0-1", "bytes=9-3", "bytes=a-b", ""])
def test_what_is_no_single_range_means_the_whole(text: str) -> None:
    part = wanted_part(Headers({"range": text}), FILE)
    assert (part.start, part.count, part.whole) == (0, 1000, True)


@pytest.mark.parametrize("text", [f"bytes=10-{'9' * 5000}", f"bytes={'0' * 30}10-", f"bytes=-{'9' * 20}"])
def test_a_number_of_any_length_is_one(text: str) -> None:
    part = wanted_part(Headers({"range": text}), FILE)
    start = 0 if "=-" in text else 10
    assert (part.start, part.count, part.whole) == (start, 1000 - start, False)


def test_a_range_behind_the_end_cannot_be_had() -> None:
    for text in ("bytes=1000-", "bytes=5000-6000", "bytes=-0", f"bytes={'9' * 20}-", f"bytes=9000-{'9' * 5000}"):
        with pytest.raises(Refused) as refused:
            wanted_part(Headers({"range": text}), FILE)
        assert (refused.value.status, refused.value.headers) == (416, {"content-range": "bytes */1000"})


async def test_a_body_is_written_in_large_pieces() -> None:
    staged, piece = Staged(), os.urandom(300_000)
    pieces = [piece + bytes([number]) for number in range(10)]
    await into(visit(pieces, transfer_encoding="chunked"), staged)
    assert bytes(staged.data) == b"".join(pieces)
    assert len(staged.writes) == 3


async def test_what_came_of_a_broken_body_is_written_first() -> None:
    staged = Staged()
    with pytest.raises(ClientDisconnect):
        await into(visit([b"12", b"34"], breaks=True, content_length="9"), staged)
    assert bytes(staged.data) == b"1234"


async def test_a_body_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "STALLED_S", 0.1)
    staged = Staged()
    with pytest.raises(InvalidRequest, match="no byte of the file came"):
        await into(visit([b"12"], ends=False, content_length="9"), staged)
    assert bytes(staged.data) == b"12"


async def test_a_socket_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "STALLED_S", 0.1)
    staged, (near, far) = Staged(), socket.socketpair()
    with near, far:
        far.sendall(b"some")
        one = visit([b"12"], ends=False, connection=TakenOver(near), content_length=str(MIB))
        with pytest.raises(InvalidRequest, match="no byte of the file came"):
            await into(one, staged)
        assert one.note.body_left
    assert bytes(staged.data) == b"12some"


async def test_a_server_that_stops_does_not_wait_for_who_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "STOPPING_S", 0.1)
    near, far = socket.socketpair()
    with near, far:
        for connection in (None, TakenOver(near)):
            staged, one = Staged(), visit([b"12"], ends=False, connection=connection, content_length=str(MIB))
            asyncio.get_running_loop().call_later(0.2, one.door.stopping.set)
            async with asyncio.timeout(10):
                with pytest.raises(ServerUnavailable, match="the server stops"):
                    await into(one, staged)
            assert bytes(staged.data) == b"12"


async def test_a_body_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "WITHIN_S", 0.3)
    near, far = socket.socketpair()

    async def drip() -> None:
        while True:
            await asyncio.sleep(0.01)
            far.send(b"x")

    with near, far:
        staged, one = Staged(), visit([b"12"], ends=False, connection=TakenOver(near), content_length=str(MIB))
        dripping = asyncio.create_task(drip())
        try:
            async with asyncio.timeout(10):
                with pytest.raises(InvalidRequest, match="1,024 in a second are the least"):
                    await into(one, staged)
        finally:
            dripping.cancel()
    assert staged.data.startswith(b"12xx")


async def test_a_body_that_drips_seldom_has_a_thread() -> None:
    near, far = socket.socketpair()

    async def drip() -> None:
        for _ in range(500):
            await asyncio.sleep(0.001)
            far.send(b"x")
        far.close()

    with near, far:
        staged, dripping = Staged(), asyncio.create_task(drip())
        began = time.monotonic()
        with pytest.raises(ClientDisconnect):
            await into(visit([b"12"], ends=False, connection=TakenOver(near), content_length=str(MIB)), staged)
        await dripping
        took = time.monotonic() - began
    # Some at first, and then one every now and then.
    assert staged.takes < 40 + took / 0.01


def test_only_the_time_that_the_client_takes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = pace.Pace()
    one.note(119, 0)
    for _ in range(10):
        one.note(0.5, 2 * MIB)
    with pytest.raises(InvalidRequest, match="the least"):
        pace.Pace().note(120, 100_000)
    monkeypatch.setattr(pace, "LONGEST_S", -1.0)
    with pytest.raises(InvalidRequest, match="hours, the most"):
        pace.Pace().note(0.0, MIB)


async def test_less_than_was_announced_is_no_file() -> None:
    staged = Staged()
    with pytest.raises(InvalidRequest, match="4 bytes came of the 9 that were announced"):
        await into(visit([b"12", b"34"], content_length="9"), staged)


async def test_a_socket_is_read_to_the_end_of_the_body_and_not_beyond() -> None:
    staged, (near, far) = Staged(), socket.socketpair()
    data = os.urandom(MIB)
    with near, far:
        connection = TakenOver(near)
        sending = asyncio.create_task(asyncio.to_thread(far.sendall, data + b"GET / HTTP/1.1"))
        one = visit([b"12"], ends=False, connection=connection, content_length=str(MIB + 2))
        await into(one, staged)
        await sending
        assert near.recv(100) == b"GET / HTTP/1.1"
    assert bytes(staged.data) == b"12" + data
    assert connection.ended == "taken"
    assert not one.note.body_left


async def test_a_socket_at_its_end_too_early_breaks_off() -> None:
    staged, (near, far) = Staged(), socket.socketpair()
    with near, far:
        connection = TakenOver(near)
        far.sendall(b"some")
        far.close()
        with pytest.raises(ClientDisconnect):
            await into(visit([b"12"], ends=False, connection=connection, content_length=str(MIB)), staged)
    assert bytes(staged.data) == b"12some"
    assert connection.ended == "broken off"


async def test_more_than_was_said_is_refused() -> None:
    with pytest.raises(TooLarge, match="more bytes came than the 3"):
        await into(visit([b"12", b"345"], transfer_encoding="chunked"), Staged(), most=3)


class Unread:
    """A connection whose client reads when it is told to."""

    def __init__(self) -> None:
        self.is_read = asyncio.Event()

    async def sent(self) -> None:
        await self.is_read.wait()


@pytest.mark.parametrize("size", [1000, 3 * MIB])
async def test_an_answer_is_on_its_way_until_it_is_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, got = Unread(), bytearray()
    with tempfile.TemporaryFile(prefix="wb-", dir="/tmp") as file:
        file.write(bytes(size))
        file.flush()
        opened = SimpleNamespace(file=replace(FILE, size=size), descriptor=file.fileno(), is_unchanged=lambda: True)

        async def send(message: Message) -> None:
            got.extend(message.get("body", b""))

        async def answer(_status: int, _headers: object, body: bytes) -> None:
            got.extend(body)

        one = visit([], ends=False, connection=connection)
        more = {"start": lambda *_: asyncio.sleep(0), "send": send, "answer": answer, "file": FILE}
        vars(one).update(more, mounts=SimpleNamespace(open=lambda _: contextlib.nullcontext(opened)))
        sending = asyncio.create_task(downloads.download(one))
        async with asyncio.timeout(10):
            while len(got) < size:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            assert not sending.done()
            connection.is_read.set()
            await sending
            connection.is_read.clear()
            monkeypatch.setattr(downloads, "longest_s", lambda _: 0.1)
            with pytest.raises(downloads.TooSlow):
                await downloads.download(one)


def test_a_digest_that_cannot_be_read_is_refused() -> None:
    for headers in ({"content-md5": "x"}, {"repr-digest": "sha-256=abc"}, {"content-digest": "sha-256=:AA==:"}):
        with pytest.raises(InvalidRequest, match="cannot be read"):
            uploads.Digests(Headers(headers))
    assert not uploads.Digests(Headers({"repr-digest": "unixsum=:AA==:"}))


@pytest.mark.parametrize(
    ("host", "public", "address"),
    [
        ("box:8080", "", "http://box:8080"),
        ("[::1]:80", "", "http://[::1]:80"),
        ("box:8080", "https://public.example", "https://public.example"),
        ("evil/path?", "", "http://127.0.0.1:1"),
        ("", "", "http://127.0.0.1:1"),
    ],
)
def test_links_lead_to_where_the_caller_asked(host: str, public: str, address: str) -> None:
    scope = {"type": "http", "scheme": "http", "headers": [(b"host", host.encode())]}
    options = ServerOptions(url="http://127.0.0.1:1", public_url=public)
    assert reached_by(scope, options) == links_lead_to(scope, options) == address


def test_links_may_lead_to_another_address_than_everything_else() -> None:
    scope = {"type": "http", "scheme": "http", "headers": [(b"host", b"127.0.0.1:1")]}
    options = ServerOptions(public_url="https://a.example", links_url="https://files.example")
    assert links_lead_to(scope, options) == "https://files.example"
    assert reached_by(scope, options) == "https://a.example"
