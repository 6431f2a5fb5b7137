"""Secrets of a server stay in it: no process of a host or a sandbox, no file, no output and no log has one of them.

Seen is what the user of the tests may see: root looks into everything; an ordinary user not into the memory of
processes that are closed to it, such as pid 1 of a sandbox, which is told with the result.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.helpers.leaks import Search
from tests.helpers.serving import helped, ran, value
from tests.host.support import descendants, eventually, host_pids, namespace_pids, output_of, read, workbench
from tests.postgres import running_postgres
from tests.restart.server import Server, end_hosts, own_settings
from tests.services.running import Running

from workbench import Session, Workbench

pytestmark = [pytest.mark.long, pytest.mark.isolation, pytest.mark.timeout(240)]
# All secrets of ours begin with it, so that one search finds them all.
MARK, PLANTED = secrets.token_hex(12), secrets.token_hex(12)
EVERY_HELPER = """\
import json
from concurrent.futures import ThreadPoolExecutor
def everything():
    yield invoke_llm('say:fine', 'high')
    yield invoke_llm('fault:echo-key')
    yield web_search('weather')
    yield web_search('fault:echo-key')
    yield run_composio_tool('GMAIL_SEND_EMAIL', {'to': 'a'})
    yield proxy_execute('GET', '/me', 'github')
    with open('/tmp/report.txt', 'w') as file: file.write('text')
    yield upload_local_file('/tmp/report.txt')
    yield upload_local_file('/tmp/report.txt', '/etc/hostname')
    yield get_mount_file_url('uploads/report.txt')
    yield get_mount_file_s3_key('uploads/report.txt')
told = list(everything())
with ThreadPoolExecutor(10) as pool: told += pool.map(invoke_llm, ['fault:echo-key'] * 10)
with open('/mnt/files/told.json', 'w') as file: json.dump(told, file)
with open('/home/user/told.json', 'w') as file: json.dump(told, file)
print(told)
told
"""


@dataclass(frozen=True)
class World:
    """A server full of secrets."""

    server: Server
    secrets: dict[str, bytes]


@pytest.fixture(scope="module")
def world(_models: Running, _searches: Running) -> Iterator[World]:
    made = {name: MARK + secrets.token_hex(8) for name in (
        "llm_key", "search_key", "files_secret_key", "files_session_token", "database password", "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY", "SOME_PASSWORD",
    )}  # fmt: skip
    with contextlib.ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SOME_PASSWORD"):
            environment.setenv(name, made[name])
        url = stack.enter_context(stack.enter_context(running_postgres()).database())
        options = {name: made[name] for name in ("llm_key", "search_key", "files_secret_key", "files_session_token")}
        options["database_url"] = url.replace("workbench@", f"workbench:{made['database password']}@")
        server = stack.enter_context(helped(_models, _searches, log_level="debug", **options))
        made["the workbench's own key"] = server.key.split("_", 2)[2]
        yield World(server, {name: secret.encode() for name, secret in made.items()})


@pytest.fixture
def bench(world: World) -> Iterator[Workbench]:
    with world.server.bench() as bench:
        yield bench


def named_processes(server: Server) -> dict[int, str]:
    """The host and all that is below it: guardian, zygotes, sandboxes in use and in the pool."""
    hosts = [pid for pid in host_pids(server.settings) if pid != server.pid]
    found = {}
    for pid in hosts + [one for host in hosts for one in descendants(host)]:
        words = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ")[-40:].decode(errors="replace")
        found[pid] = f"{pid} {namespace_pids(pid)[1:]} {words}"
    return found


def searched(server: Server, session: Session, bench: Workbench, wanted: dict[str, bytes], mark: str) -> Search:
    """Everywhere but in the server's own process."""
    search = Search(wanted, mark.encode())
    for pid, name in named_processes(server).items():
        search.process(pid, name)
        if namespace_pids(pid)[1:] == [1]:
            search.root_of(pid, name)
    data = server.settings.data_dir
    search.folder(data, "the data folder", leave_out=[data / "links.key"])
    search.text("the log of the server", server.log.read_bytes())
    with server.client() as client:
        for path in ("/metrics", f"/v1/sessions/{session.id}", "/v1/sessions", "/v1/audit?limit=1000"):
            search.text(path, client.get(path).raise_for_status().content)
    search.text("the history", "".join(one.model_dump_json() for one in session.history()))
    search.text("the notebook", session.notebook().__repr__())
    return search


def test_no_secret_of_a_server_is_anywhere_but_in_it(world: World, bench: Workbench, models: Running) -> None:
    session = bench.create("tester")
    ran(session, "before = 1")
    told = value(session, EVERY_HELPER)
    assert [bool(error) for _, error in told[:10]] == [False, True, False, True, True, True, *[False] * 4]
    assert "[hidden]" in told[1][1]
    assert "[hidden]" in told[3][1]
    session.bash("python3 -c 'from workbench_helper import *; print(invoke_llm(\"fault:echo-key\"))' | tee /tmp/said")
    branch = session.branch()
    ran(branch, "invoke_llm('fault:echo-key')")
    wanted = world.secrets | {"the secret of links": (world.server.settings.data_dir / "links.key").read_bytes()}

    search = searched(world.server, session, bench, wanted, MARK)
    assert search.found == set()
    if os.geteuid() == 0:
        assert search.unread == []
    processes = len(named_processes(world.server))
    print(f"searched {search.bytes_searched / 2**20:.0f} MiB of {processes} processes; closed to us: {search.unread}")
    # They were there to be found, and sent to where they belong.
    own = Search(wanted, MARK.encode())
    own.process(world.server.pid, "the server")
    assert {name for name, _ in own.found} >= {"llm_key", "search_key", "database password", "SOME_PASSWORD"}
    assert models.seen()[0].headers["authorization"].endswith(world.secrets["llm_key"].decode())
    branch.delete()
    session.delete()


def test_a_secret_that_a_cell_has_would_be_found(world: World, bench: Workbench) -> None:
    planted = {
        name: PLANTED + secrets.token_hex(8) for name in ("kept", "wide", "packed", "printed", "written", "hidden away")
    }
    # Each is put together by the cell, so that only what the cell makes of it is found.
    backwards = {name: secret[::-1] for name, secret in planted.items()}
    session = bench.create("tester")
    ran(
        session,
        f"""\
import base64
planted = {{name: text[::-1] for name, text in {backwards!r}.items()}}
kept = planted['kept'] + '!'
wide = (planted['wide'] + '!').encode('utf-16-le')
packed = base64.b64encode(b'?' + planted['packed'].encode() + b'!')
print(planted['printed'])
with open('/mnt/files/written', 'w') as file: file.write(planted['written'])
with open('/tmp/.hidden', 'w') as file: file.write(planted['hidden away'])
del planted
""",
    )
    search = searched(world.server, session, bench, {name: text.encode() for name, text in planted.items()}, PLANTED)
    places = {name: {where for found, where in search.found if found == name} for name in planted}
    closed = {one.partition(" of ")[0] for one in search.unread} if os.geteuid() else set()
    for name in ("kept", "wide", "packed"):
        assert "memory" in closed or any(where.startswith("memory of ") for where in places[name])
    assert any("spool" in where for where in places["printed"])
    assert "the history" in places["printed"]
    assert "the notebook" in places["printed"]
    assert f"the data folder: files/{session.id}/written" in places["written"]
    assert "files" in closed or any(where.startswith("/tmp of ") for where in places["hidden away"])
    session.delete()


def test_a_secret_in_the_environment_of_a_host_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = secrets.token_hex(20)
    with own_settings() as settings:
        with monkeypatch.context() as environment:
            environment.setenv("LEAKED_BY_HAND", secret)
            host = workbench(settings, "host", "run")
        try:
            eventually((settings.data_dir / "host.sock").is_symlink, "it listens")
            search = Search({"leaked": secret.encode()})
            search.process(host.pid, "the host")
            assert search.found == {("leaked", "environ of the host"), ("leaked", "memory of the host")}
        finally:
            end_hosts(settings)
            output_of(host)


def test_a_search_finds_a_secret_across_the_seam_of_two_pieces() -> None:
    secret = secrets.token_hex(20).encode()
    for text in (secret, base64.b64encode(b"ab" + secret + b"c"), secret.decode().encode("utf-16-le")):
        search = Search({"it": secret})
        search._pieces("here", [b"x" * 100 + text[:13], text[13:] + b"y"])
        assert search.found == {("it", "here")}
