"""Where it listens, with which certificate, how it stops, and what a killed one leaves to the next."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.host.support import eventually
from tests.server.running import Running, events_of, problem_of, running

from workbench.errors import InvalidSetting
from workbench.server.addresses import is_loopback
from workbench.server.serve import check_address, local_url, run_server, tls_context
from workbench.settings import Settings

COUNT = (
    "import time\nfor n in range(1000):\n    print(n, flush=True)\n    time.sleep(0.1)\n    if n == {}: break\n'end'"
)


def _never() -> Any:
    raise AssertionError("nothing is opened before the settings are known to be good")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "workbench.example.com"])
def test_an_address_that_others_reach_is_refused_without_tls_and_says_how(settings: Settings, host: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        run_server(_never, replace(settings, listen_host=host), started=lambda _: None)
    for word in (host, "WORKBENCH_TLS_CERT", "WORKBENCH_TLS_KEY", "127.0.0.1", "WORKBENCH_ALLOW_PLAIN_HTTP=true"):
        assert word in refused.value.message
    check_address(replace(settings, listen_host=host, allow_plain_http=True))


@pytest.mark.parametrize(
    ("host", "inside", "url"),
    [("127.0.0.1", True, "http://127.0.0.1:8"), ("127.9.9.9", True, "http://127.9.9.9:8"), ("::1", True, "http://[::1]:8"),
     ("localhost", True, "http://localhost:8"), ("0.0.0.0", False, "http://127.0.0.1:8"), ("::", False, "http://[::1]:8"),
     ("example.com", False, "http://example.com:8"), ("localhost.evil.com", False, "http://localhost.evil.com:8")],
)  # fmt: skip
def test_addresses_are_known_as_this_machines_own_or_not(host: str, inside: bool, url: str) -> None:
    assert is_loopback(host) is inside
    assert local_url(host, 8, secure=False) == url


def test_a_port_that_is_taken_is_named_with_a_way_out(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidSetting, match=rf"port {port}.*in use.*WORKBENCH_LISTEN_PORT.*0 for one"):
            run_server(_never, replace(settings, listen_port=port), started=lambda _: None)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_with_a_certificate_it_speaks_tls_only(settings: Settings, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with running(replace(settings, tls_cert=str(cert), tls_key=str(key))) as server:
        assert server.url.startswith("https://127.0.0.1:")
        with server.client(verify=ssl.create_default_context(cafile=str(cert))) as client:
            assert client.get("/v1/sessions").json() == {"items": [], "next_cursor": None}
            shown = client.get("/openapi.json").json()["servers"]
            assert shown == [{"url": server.url}]
        with server.client() as suspicious, pytest.raises(httpx2.ConnectError):
            suspicious.get("/healthz")
        with httpx2.Client(trust_env=False) as plain, pytest.raises(httpx2.TransportError):
            plain.get(server.url.replace("https:", "http:"))


def test_files_go_by_links_over_tls_as_well(settings: Settings, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    data = os.urandom(5_000_000)
    secure = replace(settings, tls_cert=str(cert), tls_key=str(key))
    trusting = ssl.create_default_context(cafile=str(cert))
    with running(secure) as server, server.client(verify=trusting) as client:
        assert client.post("/v1/sessions", json={"id": "one"}).status_code == 201
        mount = "/v1/sessions/one/mounts/files"
        up = client.post(f"{mount}/upload_url", json={"path": "file"}).json()["url"]
        assert up.startswith(server.url)
        assert client.put(up, content=data).status_code == 201
        down = client.post(f"{mount}/download_url", json={"path": "file"}).json()["url"]
        assert client.get(down).content == data


def test_files_that_are_no_certificate_and_key_are_named(
    settings: Settings, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = (str(path) for path in certificate)
    words = tmp_path / "words.pem"
    words.write_text("no certificate", encoding="utf-8")
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:x", "-out", str(locked)],
        check=True, capture_output=True,
    )  # fmt: skip
    for tls_cert, tls_key, word in (
        (cert, "", "set WORKBENCH_TLS_KEY as well"),
        ("", key, "set WORKBENCH_TLS_CERT as well"),
        ("/no/such.pem", key, "WORKBENCH_TLS_CERT=/no/such.pem cannot be read"),
        (cert, "/no/such.pem", "WORKBENCH_TLS_KEY=/no/such.pem cannot be read"),
        (str(words), key, "no certificate in PEM"),
        (cert, str(words), "no certificate in PEM"),
        (cert, str(locked), "without a pass phrase"),
    ):
        with pytest.raises(InvalidSetting, match=word):
            tls_context(replace(settings, tls_cert=tls_cert, tls_key=tls_key))


def test_the_public_address_is_what_it_tells(settings: Settings) -> None:
    with running(replace(settings, public_url="https://workbench.example.com/here")) as server:
        # What it told is not where the test can reach it.
        assert server.url == "https://workbench.example.com/here"


@pytest.fixture
def own(settings: Settings) -> Iterator[Running]:
    """A server of its own, with a session that has a kernel."""
    with running(settings) as server:
        with server.client() as client:
            client.post("/v1/sessions", json={"id": "mine"}).raise_for_status()
            client.post("/v1/sessions/mine/cells", json={"code": "kept = 'still here'"}).raise_for_status()
        yield server


def _detach(client: httpx2.Client, code: str) -> str:
    answer = client.post("/v1/sessions/mine/cells", json={"code": code, "mode": "detach"})
    assert answer.status_code == 202
    return str(answer.headers["location"])


def test_a_stop_lets_what_is_short_end_tells_followers_and_ends_nothing_that_runs(own: Running) -> None:
    with own.client() as client, own.client() as other, concurrent.futures.ThreadPoolExecutor() as pool:
        place = _detach(client, COUNT.format(80))
        command = {"command": "sleep 3; echo done"}
        short = pool.submit(other.post, "/v1/sessions/mine/commands", json=command)
        seen, comments = [], []
        with client.stream("GET", f"{place}/events") as stream:
            lines = stream.iter_lines()
            for event in events_of(lines):
                seen.append(event)
                if len(seen) == 3:
                    break
            began = time.monotonic()
            own.process.send_signal(signal.SIGTERM)
            comments = [line for line in lines if line.startswith(":")]
            followed_s = time.monotonic() - began
        assert any("the server stops" in line for line in comments)
        assert followed_s < 5
        answer = short.result(30)
        assert answer.json()["result"]["stdout"]["text"] == "done\n"
    assert own.process.wait(30) == 0
    with running(own.settings) as again, again.client() as client:
        with client.stream("GET", f"{place}/events", headers={"last-event-id": seen[-1].id}) as stream:
            rest = list(events_of(stream.iter_lines()))
        numbers = [event.data["text"] for event in (*seen, *rest) if event.name == "piece" and event.data["text"]]
        assert "".join(numbers) == "".join(f"{n}\n" for n in range(81))
        assert rest[-1].data["result"]["outcome"] == "ok"
        _deleted(client)


def test_an_awaited_cell_that_outlasts_a_stop_is_answered_as_pending(own: Running) -> None:
    with own.client() as client, concurrent.futures.ThreadPoolExecutor() as pool:
        body = {"code": "import time; time.sleep(16); 'late'"}
        awaited = pool.submit(client.post, "/v1/sessions/mine/cells", json=body)
        with own.client() as other:
            eventually(lambda: other.get("/v1/sessions/mine").json()["queue"], "it runs")
        own.process.send_signal(signal.SIGTERM)
        cell = awaited.result(60).json()
    assert (cell["status"], cell["result"]) == ("pending", None)
    assert own.process.wait(30) == 0
    with running(own.settings) as again, again.client() as client:
        ended = client.get(f"/v1/sessions/mine/cells/{cell['id']}", params={"wait_s": "30"}).json()
        assert ended["result"]["results"]["text"] == "'late'"
        _deleted(client)


def test_who_waits_when_the_server_stops_is_answered_in_our_words(own: Running) -> None:
    with own.client() as client, own.client() as other, concurrent.futures.ThreadPoolExecutor() as pool:
        place = _detach(client, "import time; time.sleep(25); 'late'")
        waiting = pool.submit(client.get, place, params={"wait_s": "60"})
        # What makes a session at once, with start-up code that outlasts the stop, has no answer to give.
        body = {"id": "slow", "eager": True, "sandbox": {"start_up": "import time; time.sleep(40)"}}
        making = pool.submit(other.post, "/v1/sessions", json=body)
        time.sleep(2)
        began = time.monotonic()
        own.process.send_signal(signal.SIGTERM)
        answer = waiting.result(30)
        assert time.monotonic() - began < 5
        assert (answer.status_code, answer.json()["status"]) == (200, "pending")
        made = making.result(30)
    assert (made.status_code, problem_of(made)["code"]) == (503, "server_unavailable")
    assert "whether this was done is not known" in made.text
    assert made.headers["x-should-retry"] == "false"
    assert own.process.wait(30) == 0
    with running(own.settings) as again, again.client() as client:
        assert client.get(place, params={"wait_s": "60"}).json()["result"]["results"]["text"] == "'late'"
        client.delete("/v1/sessions/slow")
        _deleted(client)


def test_a_killed_server_loses_nothing(own: Running) -> None:
    with own.client() as client, concurrent.futures.ThreadPoolExecutor() as pool:
        place = _detach(client, COUNT.format(50))
        seen = []
        with client.stream("GET", f"{place}/events") as stream:
            for event in events_of(stream.iter_lines()):
                seen.append(event)
                if len(seen) == 3:
                    break
        with own.client() as other:
            body = {"code": "n + 1"}
            headers = {"idempotency-key": "asked before the end"}
            awaited = pool.submit(other.post, "/v1/sessions/mine/cells", json=body, headers=headers)
            eventually(lambda: len(client.get("/v1/sessions/mine").json()["queue"]) == 2, "it waits")
            os.kill(own.process.pid, signal.SIGKILL)
            with pytest.raises(httpx2.TransportError):
                awaited.result(30)
        own.process.wait(30)
    with running(own.settings) as again, again.client() as client:
        with client.stream("GET", f"{place}/events", params={"offset": seen[-1].id}) as stream:
            rest = list(events_of(stream.iter_lines()))
        numbers = [event.data["text"] for event in (*seen, *rest) if event.name == "piece" and event.data["text"]]
        assert "".join(numbers) == "".join(f"{n}\n" for n in range(51))
        retried = client.post("/v1/sessions/mine/cells", json=body, headers=headers).json()
        assert retried["result"]["results"]["text"] == "51"
        told = client.post("/v1/sessions/mine/cells", json={"code": "kept"}).json()
        assert (told["result"]["results"]["text"], told["result"]["receipt"]["epoch"]) == ("'still here'", 1)
        history = client.get("/v1/sessions/mine/history").json()["items"]
        assert [one["status"] for one in history] == ["ended"] * 4
        _deleted(client)


def _deleted(client: httpx2.Client) -> None:
    assert client.delete("/v1/sessions/mine").status_code == 204
