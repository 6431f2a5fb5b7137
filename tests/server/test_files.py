"""Files of a session from outside: listed, put there, read, fetched and deleted, by REST and by links."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
import pytest
from tests.server.files_support import Mount, answered, connected, head
from tests.server.running import Running, make_key, problem_of

from workbench.model.access import Scope

MIB = 1024 * 1024


@pytest.fixture
def mount(server: Running, client: httpx2.Client, session: str) -> Iterator[Mount]:
    """With no sandbox behind it, until one is asked for."""
    with server.client("") as anyone:
        yield Mount(client, session, anyone)


def test_a_file_that_was_put_there_is_listed_read_and_deleted(mount: Mount) -> None:
    put = mount.put("data/sales.csv", b"a,b\n1,2\n")
    assert put.status_code == 201, put.text
    assert (put.json()["path"], put.json()["size"]) == ("data/sales.csv", 8)
    [listed] = mount.items()["items"]
    assert listed == put.json()
    got = mount.get("data/sales.csv")
    assert (got.status_code, got.content) == (200, b"a,b\n1,2\n")
    assert got.headers["etag"] == f'"{listed["version"]}"' == put.headers["etag"]
    gone = mount.ask("delete", path="/mnt/files/data")
    assert gone.json() == {"path": "data", "files": 1}
    assert mount.paths() == []
    assert mount.ask("download_url", path="data/sales.csv").status_code == 404


def test_code_inside_and_callers_outside_see_the_same_files(mount: Mount) -> None:
    mount.put("in.txt", b"from outside")
    assert mount.run("print(open('/mnt/files/in.txt').read())") == "from outside\n"
    mount.run("import os; os.makedirs('/mnt/files/made'); open('/mnt/files/made/out.txt', 'w').write('from inside')")
    assert mount.get("made/out.txt").content == b"from inside"
    mount.run("open('/mnt/files/in.txt', 'a').write(', and inside')")
    assert mount.get("in.txt").content == b"from outside, and inside"
    mount.put("in.txt", b"replaced")
    assert mount.run("print(open('/mnt/files/in.txt').read())") == "replaced\n"


def test_a_link_says_what_it_is_for(mount: Mount) -> None:
    mount.put("x", b"123")
    up = mount.ask("upload_url", path="/mnt/files/new", expires_in_s=60).json()
    assert (up["method"], up["path"], up["mount_prefix"]) == ("PUT", "new", "/mnt/files")
    left = (datetime.fromisoformat(up["expires_at"]) - datetime.now(UTC)).total_seconds()
    assert 50 < left <= 61
    down = mount.ask("download_url", path="/x").json()
    assert (down["method"], down["path"], down["size"]) == ("GET", "x", 3)
    assert down["version"] == mount.items()["items"][0]["version"]
    key = mount.client.headers["authorization"].split("_")[-1]
    assert key not in up["url"] + down["url"]


def test_links_lead_to_the_address_that_was_asked(mount: Mount) -> None:
    port = mount.client.base_url.port
    answer = mount.client.post(f"http://localhost:{port}{mount.base}/upload_url", json={"path": "x"})
    assert answer.json()["url"].startswith(f"http://localhost:{port}/files/")


def test_use_is_told_with_what_may_be_used(mount: Mount) -> None:
    before = mount.client.get(mount.base).json()
    assert (before["bytes"], before["files"], before["complete"], before["unsaved"]) == (0, 0, True, 0)
    mount.put("folder/file", bytes(100_000))
    after = mount.client.get(mount.base).json()
    assert after["files"] == 2
    assert 100_000 <= after["bytes"] < after["most_bytes"]
    assert after["files"] < after["most_files"]


def test_pages_tell_each_file_once_while_others_come_and_go(mount: Mount) -> None:
    mount.run("import os\nfor i in range(1000):\n    open(f'/mnt/files/{i:04}', 'w').close()")
    seen: list[str] = []
    cursor, pages = "", 0
    while True:
        page = mount.items(limit=300, **({"cursor": cursor} if cursor else {}))
        seen += [one["path"] for one in page["items"]]
        pages += 1
        mount.run(f"os.remove('/mnt/files/{seen[-1]}'); open('/mnt/files/{pages}-new', 'w').close()")
        if page["next_cursor"] is None:
            break
        cursor = page["next_cursor"]
    assert pages == 4
    assert [one for one in seen if not one.endswith("new")] == [f"{i:04}" for i in range(1000)]
    assert len(set(seen)) == len(seen)
    assert [one["path"] for one in mount.items(prefix="000", limit=5)["items"]] == [f"000{i}" for i in range(5)]


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 501}, {"cursor": "a"}, {"cursor": "ä"}, {"prefix": "../x"}])
def test_a_page_that_cannot_be_is_refused(mount: Mount, query: dict[str, str]) -> None:
    answer = mount.client.get(f"{mount.base}/items", params=query)
    assert answer.status_code == 422
    assert problem_of(answer)["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("../x", "the step '..'"),
        ("a/./b", "the step '.'"),
        ("a//b", "two slashes"),
        ("", "empty"),
        ("/", "empty"),
        ("folder/", "a folder"),
        ("a\0b", "NUL"),
        ("x" * 4096, "4096 bytes"),
        ("x" * 300, "255 bytes"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_with_the_reason(mount: Mount, path: str, word: str) -> None:
    for call in ("upload_url", "download_url"):
        problem = problem_of(mount.ask(call, path=path))
        assert problem["code"] == "invalid_request"
        assert word in problem["message"]
    assert mount.ask("delete", path="folder/" if path == "folder/" else path).status_code in {404, 422}


NAMES = [
    "plain.txt", "with space", "smile 😀.txt", "שלום", "مرحبا.csv", "a?b=c&d#e", "100%", "%2F", "a+b", "tab\there",
    "line\nbreak", "quote\"and'", "back\\slash", "etc/passwd", ";semi", "\uff45", "\u00e9", "e\u0301",
    ".hidden", "..two", "~", "=",
    "a" * 255, "ü" * 127, "/".join(["deep"] * 40),
]  # fmt: skip


def test_every_other_name_goes_there_and_back(mount: Mount) -> None:
    assert len(set(NAMES)) == len(NAMES)
    for number, name in enumerate(NAMES):
        put = mount.put(name, f"{number}".encode())
        assert (put.status_code, put.json()["path"]) == (201, name), name
    assert sorted(mount.paths()) == sorted(NAMES)
    for number, name in enumerate(NAMES):
        got = mount.get(name)
        assert (got.status_code, got.content) == (200, f"{number}".encode()), name
    assert mount.put("/etc/passwd", b"is below the mount").json()["path"] == "etc/passwd"


def test_names_that_differ_in_case_are_two_files(mount: Mount) -> None:
    mount.put("Report.txt", b"large")
    mount.put("report.txt", b"small")
    assert (mount.get("Report.txt").content, mount.get("report.txt").content) == (b"large", b"small")


def test_what_is_no_file_is_named_and_not_read(mount: Mount) -> None:
    mount.run(
        "import os\nos.makedirs('/mnt/files/folder')\nos.symlink('/etc/passwd', '/mnt/files/link')\n"
        "os.mkfifo('/mnt/files/fifo')"
    )
    for path, word in (("folder", "is a folder"), ("link", "link"), ("fifo", "FIFO")):
        problem = problem_of(mount.ask("download_url", path=path))
        assert problem["code"] == "conflict"
        assert word in problem["message"]
    assert "is a folder" in problem_of(mount.put("folder", b"x"))["message"]
    assert mount.put("folder/below", b"x").status_code == 201
    assert problem_of(mount.put("folder/below/more", b"x"))["code"] == "conflict"
    assert mount.items()["skipped"] == 2


def test_another_mount_is_not_found_by_the_name_of_the_one_there_is(mount: Mount, session: str) -> None:
    other = Mount(mount.client, session, mount.anyone, mount="other")
    answers = [other.client.get(other.base), other.client.get(f"{other.base}/items")]
    answers += [other.ask(call, path="x") for call in ("upload_url", "download_url", "delete")]
    answers.append(other.ask("fetch", url="https://example.com/x"))
    for answer in answers:
        assert answer.status_code == 404
        assert "'files'" in problem_of(answer)["message"]


def test_the_head_of_a_download_says_all_that_is_known(mount: Mount) -> None:
    mount.put("tables/päge.html", b"<script>alert(1)</script>")
    url = mount.download_url("tables/päge.html")
    got, head = mount.anyone.get(url), mount.anyone.head(url)
    for name in ("etag", "last-modified", "content-length", "content-type", "content-disposition", "accept-ranges"):
        assert got.headers[name] == head.headers[name]
    assert (head.status_code, head.content) == (200, b"")
    assert got.headers["content-type"] == "text/html"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''p%C3%A4ge.html"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"] == "sandbox"
    assert got.headers["cache-control"] == "no-store"
    modified = parsedate_to_datetime(got.headers["last-modified"]).timestamp()
    assert abs(modified - time.time()) < 60


@pytest.mark.parametrize("size", [1000, 3 * MIB + 17])
def test_ranges_give_the_bytes_that_were_asked_for(mount: Mount, size: int) -> None:
    data = os.urandom(size)
    mount.put("file", data)
    url = mount.download_url("file")
    for asked, start, end in (
        ("0-0", 0, 1), ("0-", 0, size), ("10-19", 10, 20), (f"{size - 5}-", size - 5, size), ("-7", size - 7, size),
        (f"-{size * 2}", 0, size), (f"5-{size * 9}", 5, size),
    ):  # fmt: skip
        got = mount.anyone.get(url, headers={"range": f"bytes={asked}"})
        assert (got.status_code, got.content) == (206, data[start:end]), asked
        assert got.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    for whole in ("0-1,5-6", "9-5", "x", "-"):
        assert mount.anyone.get(url, headers={"range": f"bytes={whole}"}).content == data
    behind = mount.anyone.get(url, headers={"range": f"bytes={size}-"})
    assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{size}")
    assert problem_of(behind)["code"] == "invalid_request"


def test_conditions_are_about_the_version(mount: Mount) -> None:
    mount.put("file", b"first")
    url = mount.download_url("file")
    tag = mount.anyone.get(url).headers["etag"]

    def status(**headers: str) -> int:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return mount.anyone.get(url, headers=names).status_code

    assert status(if_none_match=tag) == status(if_none_match=f'"x", W/{tag}') == status(if_none_match="*") == 304
    assert status(if_none_match='"other"') == status(if_match=tag) == 200
    assert status(if_match='"other"') == status(if_match=f"W/{tag}") == 412
    assert status(range="bytes=1-", if_range=tag) == 206
    mount.put("file", b"second")
    assert status(if_none_match=tag) == 200
    assert status(range="bytes=1-", if_range=tag) == 200
    assert mount.anyone.get(
        url, headers={"range": "bytes=1-", "if-range": "Mon, 16 Nov 2026 00:00:00 GMT"}
    ).content == (b"second")


def test_who_writes_can_say_what_must_be_there(mount: Mount) -> None:
    first = mount.put("file", b"first", if_none_match="*")
    assert first.status_code == 201
    again = mount.put("file", b"second", if_none_match="*")
    assert (again.status_code, problem_of(again)["code"]) == (412, "conflict")
    assert mount.put("file", b"second", if_match='"other"').status_code == 412
    assert mount.get("file").content == b"first"
    assert mount.put("file", b"third", if_match=first.headers["etag"]).status_code == 201
    assert mount.get("file").content == b"third"


def test_what_came_is_compared_with_what_was_said(mount: Mount) -> None:
    data = os.urandom(2 * MIB)
    md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
    sha = base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert mount.put("file", data, content_md5=md5, repr_digest=f"sha-256=:{sha}:, other=:AA==:").status_code == 201
    for headers in ({"content_md5": md5}, {"repr_digest": f"sha-256=:{sha}:"}, {"content_digest": f"sha-256=:{sha}:"}):
        answer = mount.put("file", data[:-1] + b"?", **headers)
        assert (answer.status_code, problem_of(answer)["code"]) == (422, "invalid_request")
        assert mount.get("file").content == data
    for headers in ({"content_md5": "AA=="}, {"content_md5": "?"}, {"repr_digest": "sha-256=x"}):
        assert mount.put("file", b"x", **headers).status_code == 422
    assert mount.put("file", b"x", content_range="bytes 0-0/5").status_code == 400
    assert mount.get("file").content == data


def test_a_link_with_a_size_takes_that_many_bytes(mount: Mount) -> None:
    url = mount.upload_url("file", size=5)
    for data in (b"1234", b"123456", iter([b"123", b"456"]), iter([b"12"])):
        assert mount.anyone.put(url, content=data).status_code in {413, 422}
    assert mount.paths() == []
    assert mount.anyone.put(url, content=iter([b"12", b"345"])).status_code == 201


def test_an_upload_without_a_length_is_not_taken_for_an_empty_file(mount: Mount) -> None:
    url = mount.upload_url("file")
    with connected(url) as connection:
        connection.sendall(head("PUT", url))
        assert answered(connection)[0] == 411
    assert mount.paths() == []


@pytest.mark.parametrize("size", [0, 1, 65_536, 300_000, 5 * MIB + 1])
def test_files_of_every_size_come_whole_with_and_without_a_length(mount: Mount, size: int) -> None:
    data = os.urandom(size)
    assert mount.put("file", data).json()["size"] == size
    assert mount.get("file").content == data
    url = mount.upload_url("chunked")
    assert mount.anyone.put(url, content=iter([data[: size // 2], data[size // 2 :]])).status_code == 201
    assert mount.get("chunked").content == data


def test_a_thousand_small_files_come_and_go(server: Running, mount: Mount, session: str) -> None:
    def there(worker: int) -> list[int]:
        with server.client() as client, server.client("") as anyone:
            mine = Mount(client, session, anyone)
            files = [number for number in range(1000) if number % 8 == worker]
            answers = [mine.put(f"many/{number % 10}/{number}", f"file {number}".encode()) for number in files]
            return [one.status_code for one in answers]

    with ThreadPoolExecutor(8) as pool:
        assert [status for some in pool.map(there, range(8)) for status in some] == [201] * 1000
    found, cursor = [], ""
    while True:
        page = mount.items(limit=500, prefix="many/", **({"cursor": cursor} if cursor else {}))
        found += [one["path"] for one in page["items"]]
        if (cursor := page["next_cursor"] or "") == "":
            break
    assert sorted(found) == sorted(f"many/{number % 10}/{number}" for number in range(1000))
    for number in range(0, 1000, 100):
        assert mount.get(f"many/{number % 10}/{number}").content == f"file {number}".encode()
    assert mount.ask("delete", path="many").json()["files"] == 1000


def test_more_than_the_quota_is_refused_before_it_is_sent(mount: Mount) -> None:
    most = mount.client.get(mount.base).json()["most_bytes"]
    url = mount.upload_url("file")
    with connected(url) as connection:
        connection.sendall(head("PUT", url, content_length=str(most + 1)))
        status, _, body = answered(connection)
    problem = json.loads(body)["error"]
    assert (status, problem["code"], problem["retryable"]) == (429, "quota_exceeded", False)
    assert f"{most:,}" in problem["message"]
    assert mount.paths() == []


def test_writers_on_both_sides_at_once_never_show_half_a_file(server: Running, mount: Mount) -> None:
    """Pages are as large as one piece, and larger; each is of one letter."""
    mount.put("page", b"a" * 200_000)
    over = time.monotonic() + 3
    wrong: list[str] = []

    def inside() -> None:
        mount.run(
            "import os, time\nover = time.monotonic() + 3\nwhile time.monotonic() < over:\n"
            "    open('/mnt/files/.new', 'w').write('i' * 200_000)\n"
            "    os.rename('/mnt/files/.new', '/mnt/files/page')\n    time.sleep(0.001)"
        )

    def outside() -> None:
        with server.client("") as anyone:
            url = mount.upload_url("page")
            for number in range(100_000):
                if time.monotonic() > over:
                    return
                answer = anyone.put(url, content=bytes([97 + number % 26]) * (200_000 if number % 2 else 2_000_000))
                if answer.status_code != 201:
                    wrong.append(answer.text)

    writers = [threading.Thread(target=inside), threading.Thread(target=outside)]
    for one in writers:
        one.start()
    reads, url = 0, mount.download_url("page")
    while time.monotonic() < over:
        with contextlib.suppress(httpx2.TransportError):
            got = mount.anyone.get(url)
            assert got.status_code == 200, got.text
            assert len(set(got.content)) == 1, "of two writers"
            assert len(got.content) in {200_000, 2_000_000}
            reads += 1
    for one in writers:
        one.join()
    assert not wrong
    assert reads > 20


def test_a_token_reaches_the_files_of_its_own_session_only(server: Running, mount: Mount, session: str) -> None:
    token = mount.client.post(f"/v1/sessions/{session}/tokens", json={}).json()["token"]
    other = f"t-{secrets.token_hex(4)}"
    assert mount.client.post("/v1/sessions", json={"id": other}).status_code == 201
    with server.client(token) as holder:
        own, theirs = Mount(holder, session, mount.anyone), Mount(holder, other, mount.anyone)
        assert own.put("mine", b"1").status_code == 201
        assert own.get("mine").content == b"1"
        assert own.ask("delete", path="mine").status_code == 200
        calls = [theirs.ask(call, path="x") for call in ("upload_url", "download_url", "delete")]
        calls += [
            theirs.ask("fetch", url="https://example.com/x"),
            holder.get(theirs.base),
            holder.get(f"{theirs.base}/items"),
        ]
        assert {answer.status_code for answer in calls} == {403}
    mount.client.delete(f"/v1/sessions/{other}")


def test_keys_without_the_scope_and_nobody_get_no_links(server: Running, mount: Mount) -> None:
    with server.client(make_key(server.settings, Scope.PROXY).presented) as proxy:
        assert proxy.post(f"{mount.base}/upload_url", json={"path": "x"}).status_code == 403
    with server.client(make_key(server.settings, Scope.SESSIONS, project="elsewhere").presented) as other:
        assert other.post(f"{mount.base}/upload_url", json={"path": "x"}).status_code == 404
        assert other.get(f"{mount.base}/items").status_code == 404
    for call in ("upload_url", "download_url", "delete", "fetch"):
        assert mount.anyone.post(f"{mount.base}/{call}", json={"path": "x"}).status_code == 401


def test_a_url_that_leads_to_this_machine_is_not_fetched(server: Running, mount: Mount) -> None:
    answer = mount.ask("fetch", url=f"{server.url}/healthz")
    assert (answer.status_code, problem_of(answer)["code"]) == (403, "denied")
    assert mount.ask("fetch", url="file:///etc/passwd").status_code == 422
    assert mount.paths() == []


def test_who_did_what_is_written_down_without_paths(server: Running, mount: Mount, session: str) -> None:
    mount.put("secret-plans.txt", b"x")
    mount.get("secret-plans.txt")
    mount.ask("download_url", path="secret-none.txt")
    mount.ask("delete", path="secret-plans.txt")
    entries = [one for one in mount.client.get("/v1/audit").json()["items"] if one["session"] == session]
    done = [(one["action"], one["outcome"], one["key"] is not None) for one in reversed(entries)][1:]
    assert done == [
        ("file.link_upload", "ok", True),
        ("file.upload", "ok", False),
        ("file.link_download", "ok", True),
        ("file.download", "ok", False),
        ("file.link_download", "not_found", True),
        ("file.delete", "ok", True),
    ]
    assert "secret" not in json.dumps(entries)
    told = server.log.read_text(encoding="utf-8")
    assert "secret-" not in told
    assert "sig=" not in told
    routes = [one["route"] for one in server.events() if one.get("route", "").startswith("/files")]
    assert set(routes) == {"/files/{session}/{mount}/{path:path}"}
