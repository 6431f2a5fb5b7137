"""A link is good for one session, mount, path and action, for a while: whatever is changed about it, it is not."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.server.files_support import Mount, answered, connected, head, received
from tests.server.running import Running, make_key, problem_of

from workbench.model.access import Scope


@pytest.fixture
def mount(server: Running, client: httpx2.Client, session: str) -> Iterator[Mount]:
    """With a file in it."""
    with server.client("") as anyone:
        mount = Mount(client, session, anyone)
        assert mount.put("file", b"first").status_code == 201
        yield mount


def asked(mount: Mount, method: str, url: str) -> httpx2.Response:
    return mount.anyone.request(method, url, content=b"forged" if method in {"PUT", "PATCH"} else None)


def check_refused(method: str, url: str) -> None:
    """Sent as it is: a client's library would make another address of it."""
    body = b"forged" if method in {"PUT", "PATCH"} else b""
    with connected(url) as connection:
        connection.sendall(head(method, url, content_length=str(len(body)), connection="close") + body)
        told, _, answer = received(connection).partition(b"\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 403 "), (method, url, told)
    if method != "HEAD":
        problem = json.loads(answer)["error"]
        assert problem["code"] == "denied"
        assert "this link is not good" in problem["message"]
        assert problem["context"] == {}


def test_a_link_is_good_for_its_own_method_only(mount: Mount) -> None:
    down, up = mount.download_url("file"), mount.upload_url("file")
    check_refused("PUT", down)
    check_refused("PATCH", down)
    check_refused("GET", up)
    check_refused("DELETE", down)
    answer = asked(mount, "POST", down)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
    assert mount.get("file").content == b"first"
    assert asked(mount, "PUT", up).status_code == 201


def test_whatever_is_changed_about_a_link_it_is_not_good_any_more(mount: Mount, session: str) -> None:
    other = f"t-{secrets.token_hex(4)}"
    assert mount.client.post("/v1/sessions", json={"id": other}).status_code == 201
    mount.put("other", b"x")
    for method, url in (("GET", mount.download_url("file")), ("PUT", mount.upload_url("file"))):
        path, _, query = url.partition("?")
        said = dict(part.split("=", 1) for part in query.split("&"))
        top = path.removesuffix("/file")
        signature, expires = said["sig"], said["exp"]
        changed = [
            f"{top}/other?{query}", f"{top}/./file?{query}", f"{top}//file?{query}", f"{top}/file/?{query}",
            f"{top}/x/../file?{query}", f"{top}/%2e%2e/file?{query}", f"{top}/fil%C3?{query}", f"{top}/?{query}",
            f"{top}/file%00?{query}", url.replace("/files/file", "/other/file"),
            *(url.replace(f"/{session}/", f"/{name}/") for name in (other, "nobody", "NoBody%00", "%2e%2e")),
            f"{path}?exp={int(expires) + 1}&sig={signature}", f"{path}?exp=9999999999&sig={signature}",
            f"{path}?exp=x&sig={signature}", f"{path}?exp={expires}", f"{path}?sig={signature}", path,
            f"{path}?exp={expires}&sig={signature[:-1]}", f"{path}?exp={expires}&sig={signature}A",
            f"{path}?exp={expires}&sig={signature[:20]}", f"{path}?exp={expires}&sig=",
            f"{path}?exp={expires}&sig={'A' * 43}", f"{path}?exp={expires}&sig={'%C3%A4' * 43}",
            f"{url}&project=default", f"{url}&project=other", f"{url}&project=..", f"{url}&exp={expires}",
            f"{url}&sig={signature}", f"{url}&more=1", f"{url}&size=x", f"{url}&size=6", f"{url}&",
        ]  # fmt: skip
        for one in changed:
            check_refused(method, one)
            check_refused("HEAD", one)
    assert mount.get("file").content == b"first"
    mount.client.delete(f"/v1/sessions/{other}")


def test_the_size_is_a_part_of_the_link(mount: Mount) -> None:
    url = mount.upload_url("file", size=3)
    assert "&size=3&" in url
    for other in (url.replace("size=3", "size=6"), url.replace("&size=3", ""), url.replace("size=3", "size=")):
        check_refused("PUT", other)
        check_refused("PATCH", other)
        check_refused("HEAD", other)
    assert mount.anyone.put(url, content=b"forged").status_code == 422
    assert mount.get("file").content == b"first"
    assert mount.anyone.put(url, content=b"new").status_code == 201


def test_a_link_that_has_expired_says_so(mount: Mount) -> None:
    down, up = mount.download_url("file", expires_in_s=1), mount.upload_url("file", expires_in_s=1)
    time.sleep(2.1)
    for method, url in (("GET", down), ("PUT", up), ("PATCH", up)):
        problem = problem_of(asked(mount, method, url))
        assert problem["code"] == "denied"
        assert "has expired at" in problem["message"]
        assert "expired_at" in problem["context"]
    assert mount.anyone.head(down).status_code == mount.anyone.head(up).status_code == 403
    # Not to be had by another signature or path: of who has no good link nothing is told.
    check_refused("GET", down.replace("/file?", "/other?"))
    assert mount.get("file").content == b"first"


@pytest.mark.parametrize("seconds", [0, -1, 7 * 86_400 + 1, "60"])
def test_a_lifetime_that_cannot_be_is_refused(mount: Mount, seconds: object) -> None:
    assert mount.ask("upload_url", path="x", expires_in_s=seconds).status_code == 422
    assert mount.ask("upload_url", path="x", expires_in_s=7 * 86_400).status_code == 200


def test_a_link_of_a_deleted_session_is_no_good_for_another_of_its_name(mount: Mount, session: str) -> None:
    down, up = mount.download_url("file"), mount.upload_url("file")
    assert mount.client.delete(f"/v1/sessions/{session}").status_code == 204
    for method, url in (("GET", down), ("PUT", up)):
        check_refused(method, url)
    assert mount.client.post("/v1/sessions", json={"id": session}).status_code == 201
    for method, url in (("GET", down), ("PUT", up)):
        check_refused(method, url)
    assert mount.paths() == []


def test_a_key_opens_nothing_here(mount: Mount) -> None:
    path = urlsplit(mount.download_url("file")).path
    assert mount.client.get(path).status_code == 403
    # And one that comes with a good link is not looked at.
    answer = mount.anyone.get(mount.download_url("file"), headers={"authorization": "Bearer wrong"})
    assert answer.content == b"first"


def test_links_of_another_project_name_it(server: Running, mount: Mount) -> None:
    key = make_key(server.settings, Scope.SESSIONS, project="elsewhere").presented
    name = f"t-{secrets.token_hex(4)}"
    with server.client(key) as client:
        assert client.post("/v1/sessions", json={"id": name}).status_code == 201
        theirs = Mount(client, name, mount.anyone)
        assert theirs.put("file", b"theirs").status_code == 201
        url = theirs.download_url("file")
        assert "project=elsewhere" in url
        assert mount.anyone.get(url).content == b"theirs"
        check_refused("GET", url.replace("&project=elsewhere", ""))
        assert client.delete(f"/v1/sessions/{name}").status_code == 204


def test_a_refusal_comes_before_a_byte_of_the_body(mount: Mount) -> None:
    good = mount.upload_url("file")
    for url, status in ((good, b"100"), (good.replace("sig=", "sig=A"), b"403")):
        with connected(url) as connection:
            connection.sendall(head("PUT", url, content_length="5", expect="100-continue"))
            assert connection.recv(4096).startswith(b"HTTP/1.1 " + status)
            if status == b"100":
                connection.sendall(b"12345")
                assert answered(connection)[0] == 201
    big = mount.client.get(mount.base).json()["most_bytes"] + 1
    with connected(good) as connection:
        connection.sendall(head("PUT", good, content_length=str(big), expect="100-continue"))
        assert connection.recv(4096).startswith(b"HTTP/1.1 429")
    assert mount.get("file").content == b"12345"


def test_so_many_transfers_of_a_session_at_once_and_no_more(mount: Mount) -> None:
    links = [mount.upload_url(f"slow{number}") for number in range(3)]
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(links[0])) for _ in range(32)]
        for number, connection in enumerate(held):
            url = links[number // 16]
            connection.sendall(head("PUT", url, content_length="5", expect="100-continue"))
            assert connection.recv(4096).startswith(b"HTTP/1.1 100")
        for url, words in ((links[0], "16 uploads by this link"), (links[2], "32 uploads of this session")):
            answer = mount.anyone.put(url, content=b"x")
            problem = problem_of(answer)
            assert (answer.status_code, problem["code"], problem["retryable"]) == (429, "quota_exceeded", True)
            assert words in problem["message"]
        # Who reads is not kept from it.
        assert mount.get("file").content == b"first"
        for connection in held:
            connection.sendall(b"12345")
            assert answered(connection)[0] == 201
    assert mount.anyone.put(url, content=b"x").status_code == 201


def test_a_body_that_asks_to_upgrade_is_the_file(mount: Mount) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    for size in (1, 20_000):
        data, url = smuggled * size, mount.upload_url("file")
        with connected(url) as connection:
            fields = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2_settings": "AAMAAABk"}
            connection.sendall(head("PUT", url, content_length=str(len(data)), **fields) + data)
            assert answered(connection)[0] == 201
            connection.sendall(head("GET", mount.download_url("file"), connection="close"))
            assert received(connection).endswith(b"\r\n\r\n" + data)


def test_what_has_no_length_is_told_so_whatever_follows(mount: Mount) -> None:
    url = mount.upload_url("file")
    with connected(url) as connection:
        connection.sendall(head("PUT", url) + b"hello")
        assert answered(connection)[0] == 411
        assert received(connection) == b""
    assert mount.get("file").content == b"first"


def test_one_connection_carries_many_files(mount: Mount) -> None:
    """Also after a body that went past the parser."""
    data = secrets.token_bytes(3_000_000)
    url, down = mount.upload_url("large"), mount.download_url("file")
    with connected(url) as connection:
        for _ in range(3):
            connection.sendall(head("PUT", url, content_length=str(len(data))) + data)
            assert answered(connection)[0] == 201
            connection.sendall(head("GET", down))
            assert answered(connection)[2] == b"first"
        # Two at once, the second of which is asked for before the first has come whole.
        connection.sendall(
            head("PUT", url, content_length=str(len(data))) + data + head("GET", down, connection="close")
        )
        got = received(connection)
        assert got.count(b"HTTP/1.1 ") == 2
        assert got.endswith(b"\r\n\r\nfirst")
    assert mount.get("large").content == data
