"""The ways from a box to the server: TLS with the machine's certificates, proxies, and answers that take their time."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.host.support import eventually
from tests.local_sandbox.boxes import Box, box_in
from tests.local_sandbox.recorder import Recorder, Told, recorder

TOKEN = "wbt_aaaaaaaaaaaa_secret"
GOOD = {"data": {"answer": "found"}, "error": None, "log_id": "log_1"}
NAMED = {"COMPOSIO_TOOLROUTER_SESSION_ID": "trs_1", "COMPOSIO_API_KEY": TOKEN}


@pytest.fixture
def outside() -> Iterator[Recorder]:
    with recorder(lambda _: Told(body=GOOD)) as server:
        yield server


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return cert, key


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler], secure: ssl.SSLContext | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who does not trust us leaves
    if secure is not None:
        server.socket = secure.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"{'https' if secure else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def answering(body: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """To nobody."""

    return Handler


def test_a_certificate_is_checked_and_one_of_ones_own_can_be_named(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(answering(b'{"data": {"answer": "found"}}'), context) as url:
        box = box_in(tmp_path / "box", {**NAMED, "BACKEND_URL": url})
        assert box.answer("web_search('x')", SSL_CERT_FILE=str(cert)) == ["found", ""]
        result, error = box.answer("web_search('x')")
        assert result == ""
        assert "certificate verify failed" in error


def test_a_proxy_of_the_environment_is_used_and_may_be_passed_by(outside: Recorder, tmp_path: Path) -> None:
    box = box_in(tmp_path, {**NAMED, "BACKEND_URL": "http://workbench.invalid:8787"})
    assert box.answer("web_search('x')", http_proxy=outside.url) == ["found", ""]
    assert outside.asked[0].path == "http://workbench.invalid:8787/api/v3/tool_router/session/trs_1/execute"
    near = box_in(tmp_path, {**NAMED, "BACKEND_URL": outside.url})
    assert near.answer("web_search('x')", http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1") == ["found", ""]


def dripping(seconds: float) -> type[BaseHTTPRequestHandler]:
    """As the server keeps a long call alive: white space, then the answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            end = time.monotonic() + seconds
            with contextlib.suppress(OSError):
                while time.monotonic() < end:
                    self._say(b" ")
                    time.sleep(0.1)
                self._say(b'{"data": {"answer": "late"}}')
                self.wfile.write(b"0\r\n\r\n")

        def _say(self, words: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(words), words))

        def log_message(self, *_args: Any) -> None:
            """To nobody."""

    return Handler


def test_a_long_call_is_waited_for_as_long_as_it_shows_signs_of_life_and_not_for_ever(tmp_path: Path) -> None:
    with serving(dripping(2.0)) as url:
        box = box_in(tmp_path, {**NAMED, "BACKEND_URL": url})
        setting = "import composio_helper\ncomposio_helper.{} = {}\nanswer = web_search('x')"
        assert box.run(setting.format("SILENCE_S", 1.0)).answer == ["late", ""]
        result, error = box.run(setting.format("ANSWER_TIMEOUT_S", 0.5)).answer
        assert (result, error) == ("", "no whole answer within 0.5 s; it may have been carried out")


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(1_000_000)

        def log_message(self, *_args: Any) -> None:
            """To nobody."""

    with serving(Silent) as url:
        box = box_in(tmp_path, {**NAMED, "BACKEND_URL": url})
        code = "import composio_helper as helper\n"
        code += "try:\n    helper.post('/x', {}, 0.3)\nexcept helper.Unanswered as failure:\n    answer = str(failure)"
        assert box.run(code).answer == f"{url} was silent for 0.3 s; it may have been carried out"


def test_a_file_that_changes_while_it_is_sent_is_told_as_that(outside: Recorder, tmp_path: Path) -> None:
    box = box_in(tmp_path, {**NAMED, "BACKEND_URL": outside.url})
    code = (
        "import composio_helper as helper, io\n"
        f"try:\n    answer = helper.put('{outside.url}/x', io.BytesIO(b'short'), 10_000_000, {{}}).status\n"
        "except OSError as problem:\n    answer = str(problem)"
    )
    assert box.run(code).answer == "the file has become shorter while it was sent"
    longer = (
        "import composio_helper as helper, io\n"
        f"answer = helper.put('{outside.url}/x', io.BytesIO(b'longer'), 4, {{}}).status"
    )
    assert box.run(longer).answer == 200
    assert outside.asked[-1].body == b"long"


def test_an_interrupt_passes_through_and_what_was_lent_is_taken_back(tmp_path: Path) -> None:
    """Who stops a program in the middle of a reading leaves nothing in the mount."""
    removed = threading.Event()
    reading = threading.Event()

    def told(asked: Any) -> Told:
        if asked.path.endswith("/upload_url"):
            return Told(status=201, body={"upload_url": f"http://{asked.headers['host']}/put"})
        if asked.path.endswith("/extract_text"):
            reading.set()
            removed.wait(20)
        if asked.path.endswith("/delete"):
            removed.set()
        return Told(body={})

    with recorder(told) as outside:
        box = box_in(tmp_path, {**NAMED, "BACKEND_URL": outside.url})
        program = "from composio_helper import smart_file_extract\nsmart_file_extract('composio_helper.py')"
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", program], cwd=box.folder, env=box.env, stderr=subprocess.PIPE
        )
        try:
            assert reading.wait(20)
            process.send_signal(signal.SIGINT)
            _, complaint = process.communicate(timeout=20)
        finally:
            process.kill()
        assert removed.is_set()
        assert b"KeyboardInterrupt" in complaint
        assert process.returncode == -signal.SIGINT


def test_threads_and_forks_share_nothing(outside: Recorder, tmp_path: Path) -> None:
    box = box_in(tmp_path, {**NAMED, "BACKEND_URL": outside.url})
    code = (
        "import os\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(20) as pool:\n"
        "    told = set(pool.map(lambda n: web_search(str(n)), range(100)))\n"
        "child = os.fork()\n"
        "if not child: os._exit(0 if web_search('child') == ('found', '') else 1)\n"
        "answer = [list(told), os.waitpid(child, 0)[1]]"
    )
    assert box.run(code).answer == [[["found", ""]], 0]
    eventually(lambda: len(outside.asked) == 101, "all were asked")


def test_nothing_is_left_open(outside: Recorder, tmp_path: Path) -> None:
    box: Box = box_in(tmp_path, {**NAMED, "BACKEND_URL": outside.url})
    count = "len(os.listdir('/proc/self/fd'))"
    code = (
        f"import os\nweb_search('x')\nbefore = {count}\n[web_search('x') for _ in range(20)]\nanswer = {count} - before"
    )
    assert box.run(code).answer == 0
    assert os.listdir(tmp_path) == ["composio_helper.py"]
