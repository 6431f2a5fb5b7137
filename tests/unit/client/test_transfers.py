"""Transfers step by step, without any network."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from workbench.client import _file_requests, _transfers
from workbench.client._local_files import Kept, OpenSource
from workbench.client._requests import Request
from workbench.client._retries import Attempts, Connection
from workbench.client._transfers import PIECE_BYTES, WHOLE_BYTES, Call, Exchange, Got, Pause
from workbench.errors import Conflict, Denied, NotFound, QuotaExceeded, ServerUnavailable
from workbench.wire import rest_files as rest

URL = "http://127.0.0.1:1/files/s/files/data/in.bin?exp=1&sig=x"
BROKEN = httpx2.ReadError("broken")


class Here:
    """A place whose clock stands still unless it is moved."""

    server = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.now = 0.0
        self.connection = Connection(server=self.server, retry_for_s=30.0, reached=True)

    def attempts(self, request: Request[object]) -> Attempts:
        return Attempts(request=request, connection=self.connection, now=lambda: self.now, spread=lambda: 0.5)

    def upload_link(self, path: str, size: int | None) -> Request[rest.UploadLink]:
        return _file_requests.upload_link("s", "files", path, size)

    def download_link(self, path: str) -> Request[rest.DownloadLink]:
        return _file_requests.download_link("s", "files", path)

    def fetched(self, url: str, path: str) -> Request[rest.File]:
        return _file_requests.fetch_file("s", "files", url, path)


def link(**changes: Any) -> rest.DownloadLink:
    told = {"url": URL, "path": "data/in.bin", "expires_at": "2026-01-01T00:00:00.000Z", "size": 10, "version": "v1"}
    return rest.DownloadLink.model_validate({**told, **changes})


def got(status: int, body: bytes = b"", **headers: str) -> Got:
    return Got(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=body)


def problem(code: str, message: str = "no") -> bytes:
    return b'{"error": {"code": "%s", "message": "%s"}}' % (code.encode(), message.encode())


class Driver:
    """Takes a transfer's steps as a test says."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.step: Any = next(steps)
        self.result: Any = None

    def exchange(self, answer: Got | Exception, data: bytes = b"") -> None:
        """The step is an exchange; the next one after it, over pauses."""
        assert isinstance(self.step, Exchange)
        if self.step.into is not None and not isinstance(answer, httpx2.ConnectError):
            headers: Mapping[str, str] = answer.headers if isinstance(answer, Got) else {}
            status = answer.status if isinstance(answer, Got) else 0
            if status in (200, 206):
                self.step.into.begin(status, headers)
                self.step.into.write(data)
        self.go_on(answer)

    def broken_after(self, status: int, data: bytes, **headers: str) -> None:
        """An answer that begins, and breaks off."""
        assert isinstance(self.step, Exchange)
        assert self.step.into is not None
        self.step.into.begin(status, {name.replace("_", "-"): value for name, value in headers.items()})
        self.step.into.write(data)
        self.go_on(BROKEN)

    def go_on(self, answer: object) -> None:
        try:
            self.step = self.steps.throw(answer) if isinstance(answer, Exception) else self.steps.send(answer)
            while isinstance(self.step, Pause):
                self.step = self.steps.send(None)
        except StopIteration as end:
            self.step, self.result = None, end.value

    @property
    def url(self) -> str:
        assert isinstance(self.step, Exchange)
        return self.step.url

    def sent(self) -> tuple[str, Mapping[str, str], bytes]:
        assert isinstance(self.step, Exchange)
        return self.step.method, self.step.headers, b"".join(self.step.body()) if self.step.body else b""


def upload(data: bytes) -> Driver:
    driver = Driver(_transfers.upload(Here(), OpenSource(io.BytesIO(data), "it"), "data/in.bin"))
    assert isinstance(driver.step, Call)
    assert driver.step.request.path.endswith("/mounts/files/upload_url")
    told = {"url": URL, "path": "data/in.bin", "expires_at": "2026-01-01T00:00:00.000Z"}
    driver.go_on(rest.UploadLink.model_validate(told))
    return driver


def finish(driver: Driver) -> None:
    """What was uploaded is told as the server has it."""
    assert isinstance(driver.step, Call)
    assert driver.step.request.path.endswith("/download_url")
    driver.go_on(link())
    assert driver.result == link()


def test_a_small_file_is_put_whole_and_again_after_a_broken_connection() -> None:
    driver = upload(b"small")
    assert driver.sent() == ("PUT", {"Content-Length": "5"}, b"small")
    driver.exchange(BROKEN)
    assert driver.sent()[2] == b"small"
    driver.exchange(got(503))
    assert driver.sent()[2] == b"small"
    driver.exchange(got(201))
    finish(driver)


def test_a_refusal_of_an_upload_is_the_error_of_its_code() -> None:
    driver = upload(b"small")
    with pytest.raises(QuotaExceeded, match="no room"):
        driver.exchange(got(413, problem("quota_exceeded", "no room")))


def test_a_server_with_too_much_to_do_is_asked_again_and_a_full_mount_is_not() -> None:
    driver = upload(b"small")
    driver.exchange(got(429, b'{"error": {"code": "quota_exceeded", "message": "too many", "retryable": true}}'))
    assert driver.sent()[2] == b"small"
    with pytest.raises(QuotaExceeded, match="no room"):
        driver.exchange(got(429, problem("quota_exceeded", "no room")))


def test_a_folder_in_the_place_of_a_large_file_is_told_at_once() -> None:
    _, driver = large()
    told = b'{"error": {"code": "conflict", "message": "is a folder", "context": {"path": "data"}}}'
    with pytest.raises(Conflict, match="is a folder"):
        driver.exchange(got(409, told))


def test_what_can_be_read_once_is_sent_once() -> None:
    class Once(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b""

    driver = Driver(_transfers.upload(Here(), OpenSource(Once(), "it"), "x"))  # type: ignore[arg-type]
    driver.go_on(rest.UploadLink.model_validate({"url": URL, "path": "x", "expires_at": ""}))
    assert driver.sent()[1] == {}
    with pytest.raises(ServerUnavailable, match="whether it was done is not known"):
        driver.exchange(BROKEN)


def large() -> tuple[bytes, Driver]:
    data = bytes(range(256)) * ((PIECE_BYTES + 4096) // 256)
    assert len(data) > PIECE_BYTES > WHOLE_BYTES
    return data, upload(data)


def test_a_large_file_is_sent_in_pieces() -> None:
    data, driver = large()
    method, headers, sent = driver.sent()
    assert (method, headers["Upload-Offset"], headers["Upload-Length"]) == ("PATCH", "0", str(len(data)))
    assert (headers["Content-Type"], sent) == ("application/offset+octet-stream", data[:PIECE_BYTES])
    driver.exchange(got(204, upload_offset=str(PIECE_BYTES)))
    _, headers, sent = driver.sent()
    assert (headers["Upload-Offset"], sent) == (str(PIECE_BYTES), data[PIECE_BYTES:])
    driver.exchange(got(204, upload_offset=str(len(data))))
    finish(driver)


def test_a_broken_upload_goes_on_from_where_the_server_is() -> None:
    data, driver = large()
    driver.exchange(BROKEN)
    assert driver.sent()[0] == "HEAD"
    driver.exchange(got(200, upload_offset="1000"))
    _, headers, sent = driver.sent()
    assert headers["Upload-Offset"] == "1000"
    assert sent == data[1000 : 1000 + PIECE_BYTES]
    # The connection that broke is held for alive by the server still.
    driver.exchange(got(409, problem("conflict")))
    driver.exchange(got(200, upload_offset=str(len(data))))
    # All is there, and is put in its place by a piece without anything in it.
    assert driver.sent()[1:] == ({**headers, "Upload-Offset": str(len(data)), "Content-Length": "0"}, b"")
    driver.exchange(got(204, upload_offset=str(len(data))))
    finish(driver)


def test_a_server_that_takes_nothing_is_given_up_in_time() -> None:
    here = Here()
    driver = Driver(_transfers.upload(here, OpenSource(io.BytesIO(bytes(WHOLE_BYTES + 1)), "it"), "x"))
    driver.go_on(rest.UploadLink.model_validate({"url": URL, "path": "x", "expires_at": ""}))

    def goes_on() -> None:
        for _ in range(100):
            driver.exchange(BROKEN if driver.sent()[0] == "PATCH" else got(200, upload_offset="0"))
            here.now += 1.0

    with pytest.raises(ServerUnavailable):
        goes_on()
    assert 29 <= here.now <= 32


def test_an_upload_that_the_server_loses_again_and_again_is_given_up() -> None:
    _, driver = large()

    def goes_on() -> None:
        for told in ("1000", "0") * 50:
            driver.exchange(BROKEN)
            driver.exchange(got(200, upload_offset=told))

    with pytest.raises(ServerUnavailable, match="lost this upload"):
        goes_on()


def download(sink: Kept) -> Driver:
    driver = Driver(_transfers.download(Here(), link(), sink))
    assert driver.sent() == ("GET", {}, b"")
    return driver


def test_a_broken_download_goes_on_with_the_rest_of_the_same_file() -> None:
    sink = Kept()
    driver = download(sink)
    driver.broken_after(200, b"01234", etag='"v1"')
    assert driver.sent()[1] == {"Range": "bytes=5-", "If-Range": '"v1"'}
    driver.exchange(got(206, etag='"v1"', content_range="bytes 5-9/10"), b"56789")
    assert (sink.whole(), driver.result) == (b"0123456789", link())


def test_a_file_that_changed_meanwhile_is_fetched_anew_and_never_mixed() -> None:
    sink = Kept()
    driver = download(sink)
    driver.broken_after(200, b"01234", etag='"v1"')
    driver.exchange(got(200, etag='"v2"'), b"another")
    assert sink.whole() == b"another"
    driver = download(sink := Kept())
    driver.broken_after(200, b"01234", etag='"v1"')
    driver.exchange(got(416))
    assert driver.sent()[1] == {}
    driver.exchange(got(200, etag='"v2"'), b"x")
    assert sink.whole() == b"x"


def test_a_file_that_changes_all_the_time_is_told() -> None:
    driver = download(Kept())

    def goes_on() -> None:
        for number in range(20):
            driver.broken_after(200, b"x", etag=f'"v{number}"')

    with pytest.raises(Conflict, match="changes all the time"):
        goes_on()


def test_breaks_without_any_progress_are_a_server_that_is_away() -> None:
    here = Here()

    def goes_on(driver: Driver, data: bytes, **headers: str) -> None:
        for _ in range(100):
            driver.broken_after(200, data, **headers)
            here.now += 1.0

    for data, headers in ((b"", {"etag": '"v1"'}), (b"01234", {})):
        here.now = 0.0
        with pytest.raises(ServerUnavailable, match="no answer"):
            goes_on(Driver(_transfers.download(here, link(), Kept())), data, **headers)
        assert 29 <= here.now <= 33


def test_a_part_that_nobody_asked_for_is_not_taken_for_the_rest() -> None:
    sink = Kept()
    driver = download(sink)
    driver.broken_after(200, b"01234", etag='"v1"')
    for other in ({"content-range": "bytes 7-9/10", "etag": '"v1"'}, {"content-range": "bytes 5-9/10", "etag": '"v2"'}):
        sink.clear()
        sink.write(b"01234")
        with pytest.raises(httpx2.RemoteProtocolError):
            driver.step.into.begin(206, other)
        assert sink.position == 0


def test_an_expired_link_is_renewed_again_once_it_has_brought_something() -> None:
    sink = Kept()
    driver = download(sink)
    for number in range(4):
        driver.exchange(got(403, problem("denied", "this link has expired")))
        assert isinstance(driver.step, Call)
        driver.go_on(link())
        told = {} if number == 0 else {"content_range": f"bytes {number}-9/10"}
        driver.broken_after(206 if told else 200, b"x", etag='"v1"', **told)
    assert sink.position == 4


def test_an_upload_whose_link_has_expired_begins_anew_on_another() -> None:
    data, driver = large()
    expired = got(403, problem("denied", "this link has expired"))
    driver.exchange(got(204, upload_offset=str(PIECE_BYTES)))
    driver.exchange(expired)
    assert isinstance(driver.step, Call)
    assert driver.step.request.path.endswith("/upload_url")
    driver.go_on(rest.UploadLink.model_validate({"url": URL + "2", "path": "data/in.bin", "expires_at": ""}))
    assert (driver.url, driver.sent()[1]["Upload-Offset"]) == (URL + "2", "0")
    assert driver.sent()[2] == data[:PIECE_BYTES]
    with pytest.raises(Denied):
        driver.exchange(expired)


def test_where_a_link_leads_is_named_if_nothing_answers_there() -> None:
    here = Here()
    driver = Driver(_transfers.download(here, link(url="http://elsewhere.test:7/files/x?sig=secret"), Kept()))
    driver.exchange(httpx2.ConnectError("refused"))
    here.now = 60.0
    with pytest.raises(ServerUnavailable, match=r"no answer from http://elsewhere\.test:7 \(") as told:
        driver.exchange(httpx2.ConnectError("refused"))
    assert "WORKBENCH_PUBLIC_URL" in str(told.value)
    assert "secret" not in str(told.value)


def test_an_expired_link_is_renewed_once() -> None:
    sink = Kept()
    driver = download(sink)
    driver.exchange(got(403, problem("denied", "this link has expired")))
    assert isinstance(driver.step, Call)
    driver.go_on(link(url=URL + "2"))
    assert driver.url == URL + "2"
    with pytest.raises(Denied):
        driver.exchange(got(403, problem("denied", "this link has expired")))


def test_a_file_that_is_gone_is_not_found() -> None:
    with pytest.raises(NotFound):
        download(Kept()).exchange(got(404, problem("not_found")))
