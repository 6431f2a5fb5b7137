"""How a file gets to a link and from one: over broken connections and restarts of the server, whole or not at all.

Each transfer is a generator of steps. It decides, and touches no network: `_moving.py` takes the steps, sync and async.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

import httpx2

from workbench.client._answers import is_away, is_busy, refusal
from workbench.client._requests import Request
from workbench.client._retries import Attempts
from workbench.errors import Conflict, ServerUnavailable

T = TypeVar("T")

# Up to here a file is sent in one go, and once more from its beginning if that breaks.
WHOLE_BYTES = 8 * 1024 * 1024
# So much is sent of a larger one before the server says that it has it.
PIECE_BYTES = 32 * 1024 * 1024
# How often a transfer may begin anew because the other side has lost or changed the file.
_MOST_STARTS = 5
_RESUMABLE = {"Tus-Resumable": "1.0.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Ask the server, with the key. Answered with what the request is parsed to."""

    request: Request[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request to a link, without the key. Answered with `Got`, or an `httpx2.TransportError` is thrown."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Iterator[bytes]] | None = None
    leave: Callable[[], None] = lambda: None
    """ends a wait of the body, soon"""
    into: Incoming | None = None
    """where the body of a success goes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """What a link answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """empty if it went elsewhere"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait for a while."""

    seconds: float


Steps = Generator[Call | Exchange | Pause, Any, T]


class Source(Protocol):
    """What is sent."""

    @property
    def size(self) -> int | None:
        """None if that is not known."""
        ...

    @property
    def again(self) -> bool:
        """Whether it can be read a second time."""
        ...

    def chunks(self, start: int, end: int | None) -> Iterator[bytes]:
        """From one place to another, or to its end."""
        ...

    def leave(self) -> None:
        """End a wait for more of it, soon."""
        ...


class Sink(Protocol):
    """Where it goes."""

    @property
    def position(self) -> int:
        """How much is there."""
        ...

    def write(self, data: bytes) -> None:
        """Behind what is there."""
        ...

    def clear(self) -> None:
        """Begin anew."""
        ...


class Named(Protocol):
    """A file of a mount."""

    @property
    def path(self) -> str:
        """From the top of the mount."""
        ...


class Link(Named, Protocol):
    """Where one can be sent or fetched."""

    @property
    def url(self) -> str:
        """Without a key, by whoever has it."""
        ...


LinkT = TypeVar("LinkT", bound=Link)
_Given = TypeVar("_Given", bound=Link, covariant=True)


class Place(Protocol[_Given]):
    """Which mount of which session it is, in whose words the server is asked about it, and how often to try."""

    server: str

    def attempts(self, request: Request[object]) -> Attempts:
        """At something that may be done again."""
        ...

    def upload_link(self, path: str, size: int | None) -> Request[Link]:
        """Where a file is to be sent."""
        ...

    def download_link(self, path: str) -> Request[_Given]:
        """Where a file that is there is fetched."""
        ...

    def fetched(self, url: str, path: str) -> Request[Named]:
        """A file that the server is to fetch from elsewhere."""
        ...


class Incoming:
    """What comes, whether it goes on where it broke off or begins anew."""

    def __init__(self, sink: Sink, path: str) -> None:
        self._sink = sink
        self._path = path
        self._version = ""
        self._starts = 1
        self._furthest = 0

    @property
    def position(self) -> int:
        """How much is there."""
        return self._sink.position

    def came_further(self) -> bool:
        """Whether there is more than ever before of this version: who begins anew all the time makes no progress."""
        further = self._sink.position > self._furthest
        self._furthest = max(self._furthest, self._sink.position)
        return further

    def wanted(self) -> dict[str, str]:
        """The rest of the same file, or all of another."""
        if not (self._sink.position and self._version):
            return {}
        return {"Range": f"bytes={self._sink.position}-", "If-Range": self._version}

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Before the first byte of an answer.

        Raises:
            Conflict: it has become another file too often.
            httpx2.RemoteProtocolError: it is a part that nobody asked for.
        """
        version = headers.get("etag", "")
        goes_on = status == httpx2.codes.PARTIAL_CONTENT
        if not goes_on or not self._is_next(version, headers):
            if self._sink.position and version and self._version and version != self._version:
                self.changed()
            self._sink.clear()
            if goes_on:
                raise httpx2.RemoteProtocolError("another part of the file than was asked for")
        # Who sends the rest of the same file need not say again which it is.
        self._version = version or (self._version if goes_on else "")

    def _is_next(self, version: str, headers: Mapping[str, str]) -> bool:
        told = headers.get("content-range", "")
        return version in ("", self._version) and told.startswith(f"bytes {self._sink.position}-")

    def changed(self) -> None:
        """Begin anew, with another file.

        Raises:
            Conflict: it has become one too often.
        """
        self._starts += 1
        if self._starts > _MOST_STARTS:
            raise Conflict(f"{self._path!r} changes all the time; fetch it when nothing writes to it")
        self._sink.clear()
        self._furthest = 0

    def write(self, data: bytes) -> None:
        """Behind what is there."""
        self._sink.write(data)


def upload(place: Place[LinkT], source: Source, path: str) -> Steps[LinkT]:
    """Send it, and tell what the server has then."""
    link = yield from _upload_link(place, path, source.size)
    if source.again and source.size is not None and source.size > WHOLE_BYTES:
        yield from _in_pieces(place, source, source.size, link)
    else:
        yield from _whole(place, source, link.url)
    return (yield from look(place, link.path))


def _upload_link(place: Place[Link], path: str, size: int | None) -> Steps[Link]:
    link: Link = yield Call(request=place.upload_link(path, size))
    return link


def fetch(place: Place[LinkT], url: str, path: str) -> Steps[LinkT]:
    """Have the server fetch it."""
    made: Named = yield Call(request=place.fetched(url, path))
    return (yield from look(place, made.path))


def look(place: Place[LinkT], path: str) -> Steps[LinkT]:
    """A link to what is there."""
    link: LinkT = yield Call(request=place.download_link(path))
    return link


def _whole(place: Place[Link], source: Source, url: str) -> Steps[None]:
    attempts = _attempts(place, "PUT", url, again=source.again)
    headers = {} if source.size is None else {"Content-Length": str(source.size)}
    while True:
        failed = got = None
        try:
            got = yield Exchange(
                method="PUT",
                url=url,
                headers=headers,
                body=lambda: source.chunks(0, source.size),
                leave=source.leave,
            )
        except httpx2.TransportError as problem:
            failed = problem
        if got is not None and _is_success(got):
            return
        yield _pause(attempts, place, failed, got)


def _in_pieces(place: Place[Link], source: Source, size: int, link: Link) -> Steps[None]:
    attempts = _attempts(place, "PATCH", link.url, again=True)
    offset, furthest, starts = 0, 0, 1
    while True:
        failed = got = None
        try:
            got = yield _piece(source, link.url, offset, size)
        except httpx2.TransportError as problem:
            failed = problem
        if got is not None and _is_success(got):
            attempts.got_through()
            offset = furthest = _offset(got, offset)
            if offset >= size:
                return
            continue
        if got is not None and got.status == httpx2.codes.FORBIDDEN and furthest:
            # It was good until now, so its time is over. Each link has an upload of its own.
            link = yield from _upload_link(place, link.path, size)
            offset = 0
        else:
            yield _pause(attempts, place, failed, got)
            known: int | None = yield from _reached(link.url)
            offset = offset if known is None else known
        if offset > furthest:
            attempts.got_through()
            furthest = offset
        elif offset == 0 and furthest:
            starts, furthest = starts + 1, 0
            if starts > _MOST_STARTS:
                raise ServerUnavailable(f"{place.server} lost this upload again and again", {"server": place.server})


def _piece(source: Source, url: str, offset: int, size: int) -> Exchange:
    end = min(offset + PIECE_BYTES, size)
    headers = {
        **_RESUMABLE,
        "Content-Type": "application/offset+octet-stream",
        "Content-Length": str(end - offset),
        "Upload-Offset": str(offset),
        "Upload-Length": str(size),
    }
    return Exchange(
        method="PATCH", url=url, headers=headers, body=lambda: source.chunks(offset, end), leave=source.leave
    )


def _reached(url: str) -> Steps[int | None]:
    """How far it came; None if that is not told: then sending the next piece tells why."""
    try:
        got: Got = yield Exchange(method="HEAD", url=url, headers=_RESUMABLE)
    except httpx2.TransportError:
        return None
    return _offset(got, 0) if _is_success(got) else None


def _offset(got: Got, otherwise: int) -> int:
    told = got.headers.get("upload-offset", "")
    return int(told) if told.isdecimal() else otherwise


def _pause(attempts: Attempts, place: Place[Link], failed: Exception | None, got: Got | None) -> Pause:
    """Before the next attempt.

    Raises:
        WorkbenchError: the server refused for good, or there were attempts enough.
    """
    if got is None or is_away(got.status, got.body):
        return Pause(seconds=attempts.pause_s(failed or f"status {got.status if got else 0}"))
    if not (is_busy(got.status, got.body) or _is_held(got)):
        _refuse(place, got)
    try:
        return Pause(seconds=attempts.pause_s(f"status {got.status}"))
    except ServerUnavailable:
        # It is there, and has said why.
        _refuse(place, got)


def _is_held(got: Got) -> bool:
    """A connection of ours that broke, and that the server holds for alive still, or an offset that is not its own.

    Any other conflict is about the path, and stays one.
    """
    if got.status != httpx2.codes.CONFLICT:
        return False
    return "upload-offset" in got.headers or "path" not in refusal("", got.status, got.body).context


def download(place: Place[LinkT], link: LinkT, sink: Sink) -> Steps[LinkT]:
    """Fetch it; the link that was good in the end."""
    attempts, incoming = _attempts(place, "GET", link.url, again=True), Incoming(sink, link.path)
    renewed = False
    while True:
        failed = got = None
        try:
            got = yield Exchange(method="GET", url=link.url, headers=incoming.wanted(), into=incoming)
        except httpx2.TransportError as problem:
            failed = problem
        if incoming.came_further():
            attempts.got_through()
            renewed = False
        if got is not None:
            if _is_success(got):
                return link
            if got.status == httpx2.codes.FORBIDDEN and not renewed:
                # Its time is over, most likely. A new one is given to who may have it.
                link, renewed = (yield from look(place, link.path)), True
                continue
            if got.status == httpx2.codes.RANGE_NOT_SATISFIABLE:
                incoming.changed()
                continue
        yield _pause(attempts, place, failed, got)


def _attempts(place: Place[Link], method: str, url: str, *, again: bool) -> Attempts:
    """At a link; who counts them needs to know no more of it."""
    attempts = place.attempts(Request(method=method, path="", parse=lambda answer: answer, again=again))
    there = httpx2.URL(url)
    if there.netloc != httpx2.URL(place.server).netloc:
        attempts.link_to = f"{there.scheme}://{there.netloc.decode('ascii')}"
    return attempts


def _is_success(got: Got) -> bool:
    return 200 <= got.status < 300


def _refuse(place: Place[Link], got: Got) -> NoReturn:
    if 300 <= got.status < 400:
        # BARRIER: who answers instead of the server could have the file sent, or fetched, anywhere; held by
        # tests/unit/client/test_links.py.
        raise ServerUnavailable(
            f"a link of {place.server} leads elsewhere (status {got.status}), and that is not followed; give the "
            "server's own address as base_url, and to the server as WORKBENCH_PUBLIC_URL",
            {"server": place.server},
        )
    raise refusal(place.server, got.status, got.body)
