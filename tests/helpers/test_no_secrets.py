"""Secrets of a server stay in it: no process of a host or a sandbox, no file, no output and no log has one of them.

Seen is what the user of the tests may see: root looks into everything; an ordinary user not into the memory of
processes that are closed to it, such as pid 1 of a sandbox, which is told with the result.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql
from tests.connections.authorisation import CLIENT_ID, Authorisation, authorisation_server
from tests.connections.authorisation import World as Granting
from tests.helpers.accounts import Telltale, connect
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
WITH_ACCOUNTS = """\
import json
def everything():
    for toolkit in ('KEYED', 'NOTES'):
        for tool in ('ECHO', 'TEAPOT', 'BROKEN'):
            yield run_composio_tool(f'{toolkit}_{tool}', {})
        yield run_composio_tool(f'{toolkit}_NOTHING', {})
        for path in ('/echo', '/teapot', '/broken'):
            yield proxy_execute('GET', path, toolkit.lower())
told = list(everything())
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
    database: str
    service: Authorisation
    """where the user has accounts"""

    def credentials(self) -> dict[str, bytes]:
        """Of the accounts, and of the client by which they were made."""
        found = {"the client's secret": self.service.world.client_secret}
        for number, token in enumerate(self.service.world.tokens):
            found |= {f"access token {number}": token.access_token, f"refresh token {number}": token.refresh_token}
        return {name: secret.encode() for name, secret in found.items()}

    def rows(self) -> Iterator[tuple[str, bytes]]:
        """Of every table of the database, as they are kept."""
        with psycopg.connect(self.database) as line, line.cursor() as cursor:
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            for (table,) in cursor.fetchall():
                command = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(sql.Identifier(table))
                with cursor.copy(command) as rows:
                    yield table, b"".join(bytes(piece) for piece in rows)


@pytest.fixture(scope="module")
def world(_models: Running, _searches: Running) -> Iterator[World]:
    made = {name: MARK + secrets.token_hex(8) for name in (
        "llm_key", "search_key", "files_secret_key", "files_session_token", "database password", "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY", "SOME_PASSWORD", "an account's key", "a toolkit's header",
    )}  # fmt: skip
    with contextlib.ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "SOME_PASSWORD"):
            environment.setenv(name, made[name])
        url = stack.enter_context(stack.enter_context(running_postgres()).database())
        options = {name: made[name] for name in ("llm_key", "search_key", "files_secret_key", "files_session_token")}
        options["database_url"] = url.replace("workbench@", f"workbench:{made['database password']}@")
        granting = Granting(mark=MARK, client_secret=f"{MARK}-client-{secrets.token_hex(8)}")
        service = stack.enter_context(authorisation_server(granting, Telltale))
        server = stack.enter_context(
            helped(_models, _searches, log_level="debug", toolkits_allow="127.0.0.1", **options)
        )
        made["the workbench's own key"] = server.key.split("_", 2)[2]
        yield World(server, {name: secret.encode() for name, secret in made.items()}, url, service)


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


def test_no_credential_of_a_connected_account_is_anywhere_but_in_the_server(world: World, bench: Workbench) -> None:
    key = world.secrets["an account's key"].decode()
    said = connect(world.server, world.service, "tester", key)
    session = bench.create("tester")
    told = value(session, WITH_ACCOUNTS)
    # Each told what it was sent, and the credential is cut out of that; some fail, and say no more.
    for toolkit in (told[:7], told[7:]):
        assert [bool(error) for _, error in toolkit] == [False, True, True, True, False, True, True], toolkit
        assert "***" in json.dumps(toolkit[0])
        assert "***" in json.dumps(toolkit[1])
    session.bash(
        "python3 -c 'from workbench_helper import *; print(run_composio_tool(\"KEYED_ECHO\"))' | tee /tmp/said"
    )
    said |= _asked_from_outside(world, session)
    assert len(world.service.world.tokens) == 2

    wanted = world.secrets | world.credentials()
    search = searched(world.server, session, bench, wanted, MARK)
    for place, text in said.items():
        search.text(place, text)
    rows = dict(world.rows())
    for table, those in rows.items():
        search.text(f"the table {table}", those)
    assert search.found == set()
    # What is no secret is there to be read: these are the records.
    assert any(CLIENT_ID.encode() in those for those in rows.values())
    # They were there to be found, and went where they belong.
    assert {key, f"Bearer {world.service.world.tokens[0].access_token}"} <= set(Telltale.credentials)
    forms = [form for path, form in world.service.world.seen if path == "/token"]
    assert {world.service.world.client_secret} == {form["client_secret"] for form in forms}
    assert world.service.world.tokens[0].refresh_token in [form.get("refresh_token") for form in forms]
    session.delete()


def _asked_from_outside(world: World, session: Session) -> dict[str, str]:
    """What callers of the server are told of accounts, also when they cannot be renewed."""
    said = {}
    with world.server.client() as client:
        given = {"url": "http://127.0.0.1:9/mcp", "bearer": world.secrets["a toolkit's header"].decode(), "test": False}
        added = client.post("/v1/toolkits", json={"slug": "remote", **given})
        assert added.status_code == 201, added.text
        said["the toolkit"] = added.text
        (notes,) = client.get("/v1/connections", params={"toolkit": "notes"}).json()["items"]
        refresh = f"/v1/connections/{notes['id']}/refresh"
        assert client.post(refresh).status_code == 200
        router = f"/api/v3.1/tool_router/session/{session.id}"
        for slug in ("KEYED_ECHO", "NOTES_ECHO", "NOTES_TEAPOT", "NOTES_BROKEN"):
            said[f"execute {slug}"] = client.post(f"{router}/execute", json={"tool_slug": slug, "arguments": {}}).text
        world.service.world.broken = True
        said["a failed refresh"] = client.post(refresh).text
        world.service.world.broken = False
        assert "500" in said["a failed refresh"]
        for path in ("/v1/connections", "/v1/auth-configs", "/v1/toolkits", "/v1/toolkits/remote",
                     "/api/v3.1/connected_accounts", f"{router}/toolkits", f"{router}/tools"):  # fmt: skip
            said[path] = client.get(path).raise_for_status().text
    return said


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
