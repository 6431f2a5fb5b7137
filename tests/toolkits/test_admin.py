"""Toolkits added by commands, by REST and by the file, to a server that runs; and who may add what."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.composio.tools.calling import Calling
from tests.host.support import output_of, workbench
from tests.mcp.http.talking import own_settings
from tests.server.running import Running, running
from tests.toolkits.worlds import LOOPBACK, PLAIN, SERVERS, free_port, listening, lying

from workbench.settings import Settings

_KEY = "canary-of-the-server-93"
_SEEN_S = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with own_settings(toolkits_allow=LOOPBACK, toolkits_file="/nowhere", toolkits_shipped="gmail") as settings:
        file = settings.data_dir.parent / "toolkits.toml"
        file.write_text("", encoding="utf-8")
        with running(_replaced(settings, file)) as server:
            yield server


def _replaced(settings: Settings, file: Path) -> Settings:
    return Settings.from_env({**settings.to_env(), "WORKBENCH_TOOLKITS_FILE": str(file)})


@pytest.fixture
def client(server: Running) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def calling(client: httpx2.Client) -> Iterator[Calling]:
    """A session of the default project."""
    name = client.post("/api/v3.1/tool_router/session", json={"user_id": "tester"}).json()["session_id"]
    yield Calling(client, name)
    assert client.delete(f"/v1/sessions/{name}").status_code == 204


@pytest.fixture(scope="module")
def mcp_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with listening([*PLAIN, str(port), _KEY, str(tmp_path_factory.mktemp("seen") / "seen")], port):
        yield f"http://127.0.0.1:{port}/mcp"


def said(server: Running, *arguments: str) -> str:
    """By a command that succeeds."""
    code, out, err = output_of(workbench(server.settings, *arguments))
    assert code == 0, err
    return out


def refused(server: Running, *arguments: str) -> str:
    """By a command that fails: its one line."""
    code, _, err = output_of(workbench(server.settings, *arguments))
    assert code != 0
    return err.strip()


def eventually_answers(calling: Calling, slug: str, **arguments: Any) -> dict[str, Any]:
    """A server looks once a second for what another process did."""
    until = time.monotonic() + _SEEN_S
    while (told := calling.run(slug, arguments))["error"] and time.monotonic() < until:
        time.sleep(0.2)
    return told


def test_a_program_that_was_added_by_a_command_is_there_for_sdks_and_for_code_inside_without_a_restart(
    server: Running, calling: Calling
) -> None:
    assert "no tool 'PLAIN_ADD' here" in calling.run("PLAIN_ADD", {"a": 1, "b": 2})["error"]
    out = said(server, "toolkits", "add", "plain", "--env", f"PLAIN_KEY={_KEY}", "--", *PLAIN)
    assert out == "plain is added for all projects: 7 tools\n"
    try:
        assert eventually_answers(calling, "PLAIN_ADD", a=1, b=2)["data"] == {"result": 3}
        found = calling.data("COMPOSIO_SEARCH_TOOLS", {"queries": [{"use_case": "the sum of two numbers"}]})
        assert "PLAIN_ADD" in json.dumps(found)
        pictures = calling.data("PLAIN_PICTURES")
        assert len(pictures["files"]) == 2
        code = "print(run_composio_tool('PLAIN_ADD', {'a': 20, 'b': 2}))"
        inside = calling.data("COMPOSIO_REMOTE_WORKBENCH", {"code_to_execute": code})
        assert "22" in inside["stdout"], inside
        variables = calling.data("PLAIN_VARIABLES")
        assert "WORKBENCH_DATA_DIR" not in variables
        assert _KEY not in json.dumps(variables)
        assert "PLAIN_ADD" in said(server, "toolkits", "show", "plain")
        assert "kept sealed: env.PLAIN_KEY" in said(server, "toolkits", "test", "plain")
        listed = json.loads(said(server, "toolkits", "list", "--json"))
        assert [(one["slug"], one["kind"], one["tool_count"]) for one in listed] == [("plain", "command", 7)]
    finally:
        assert said(server, "toolkits", "remove", "plain") == "plain is removed\n"
    until = time.monotonic() + _SEEN_S
    while not calling.run("PLAIN_ADD", {"a": 1, "b": 2})["error"] and time.monotonic() < until:
        time.sleep(0.2)
    assert "no tool 'PLAIN_ADD' here" in calling.run("PLAIN_ADD", {"a": 1, "b": 2})["error"]


def test_a_server_is_added_shown_tried_and_removed_by_rest(
    server: Running, client: httpx2.Client, calling: Calling, mcp_url: str
) -> None:
    made = client.post("/v1/toolkits", json={"slug": "far", "url": mcp_url, "bearer": _KEY})
    assert made.status_code == 201, made.text
    try:
        told = made.json()
        assert (told["kind"], told["project"], told["secrets"]) == ("url", "default", ["bearer"])
        assert "FAR_ADD" in [one["slug"] for one in told["tools"]]
        assert calling.data("FAR_ADD", {"a": 1, "b": 2}) == {"result": 3}
        answers = [
            made,
            client.get("/v1/toolkits"),
            client.get("/v1/toolkits/far"),
            client.post("/v1/toolkits/far/test"),
        ]
        assert {one.status_code for one in answers} == {200, 201}
        assert not [one for one in answers if _KEY in one.text]
        assert client.post("/v1/toolkits", json={"slug": "far", "url": mcp_url, "bearer": _KEY}).status_code == 409
        kept = b"".join(path.read_bytes() for path in server.settings.data_dir.glob("workbench.db*"))
        assert b"far" in kept
        assert _KEY.encode() not in kept
        assert _KEY not in server.log.read_text(encoding="utf-8")
    finally:
        assert client.delete("/v1/toolkits/far").status_code == 204
    assert client.delete("/v1/toolkits/far").status_code == 404
    assert "no tool 'FAR_ADD' here" in calling.run("FAR_ADD", {"a": 1, "b": 2})["error"]
    audit = client.get("/v1/audit").json()["items"]
    assert [(one["action"], one["outcome"]) for one in audit if one["action"].startswith("toolkit.")][:3] == [
        ("toolkit.remove", "not_found"),
        ("toolkit.remove", "ok"),
        ("toolkit.add", "conflict"),
    ]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"slug": "evil", "command": ["/bin/sh"]}, 403, "only who runs this workbench adds it"),
        ({"slug": "evil", "functions": "/tmp/x.py"}, 403, "only who runs this workbench adds it"),
        ({"slug": "evil", "openapi": "/etc/passwd"}, 403, "only who runs this workbench adds it"),
        ({"slug": "evil"}, 422, "a toolkit comes from one of `command`, `url`, `functions`, `composio`, `openapi`"),
        ({"slug": "Evil One", "url": "https://example.com"}, 422, "'Evil One' is no name of a toolkit"),
        ({"slug": "composio_search", "url": "https://example.com"}, 422, "is kept for tools of the workbench"),
        ({"slug": "evil", "url": "http://10.0.0.1/mcp"}, 403, "WORKBENCH_TOOLKITS_ALLOW"),
        ({"slug": "evil", "url": "file:///etc/passwd"}, 422, "not a URL that can be fetched"),
        ({"slug": "evil", "composio": ["gmail"]}, 422, "Composio is asked with a key of yours"),
        ({"slug": "evil", "url": "https://example.com", "key": "x"}, 422, "takes no `key`"),
    ],
)
def test_what_cannot_be_added_by_rest_says_why_and_is_not_kept(
    client: httpx2.Client, body: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post("/v1/toolkits", json=body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert client.get("/v1/toolkits").json()["items"] == []


def test_only_admins_add_and_what_is_of_one_project_is_not_there_for_another(
    server: Running, client: httpx2.Client, mcp_url: str
) -> None:
    plain = client.post("/v1/keys", json={"scopes": ["sessions"]}).json()["key"]
    other = said(server, "keys", "create", "--project", "other", "--scope", "admin", "--scope", "sessions").strip()
    with server.client(plain) as weak:
        body = {"slug": "far", "url": mcp_url, "bearer": _KEY}
        assert weak.post("/v1/toolkits", json=body).status_code == 403
        assert weak.get("/v1/toolkits").status_code == 403
    assert client.post("/v1/toolkits", json={"slug": "far", "url": mcp_url, "bearer": _KEY}).status_code == 201
    said(server, "toolkits", "add", "everybodys", "--", *lying("alike"))
    try:
        with server.client(other) as stranger:
            until = time.monotonic() + _SEEN_S
            while not (items := stranger.get("/v1/toolkits").json()["items"]) and time.monotonic() < until:
                time.sleep(0.2)
            assert [one["slug"] for one in items] == ["everybodys"]
            assert stranger.get("/v1/toolkits/far").status_code == 404
            assert stranger.delete("/v1/toolkits/far").status_code == 404
            assert stranger.delete("/v1/toolkits/everybodys").status_code == 403
            name = stranger.post("/api/v3.1/tool_router/session", json={"user_id": "u"}).json()["session_id"]
            theirs = Calling(stranger, name)
            assert "no tool 'FAR_ADD' here" in theirs.run("FAR_ADD", {"a": 1, "b": 2})["error"]
            assert stranger.delete(f"/v1/sessions/{name}").status_code == 204
    finally:
        said(server, "toolkits", "remove", "everybodys")
        assert client.delete("/v1/toolkits/far").status_code == 204


def test_the_file_is_followed_while_the_server_runs(server: Running, client: httpx2.Client, calling: Calling) -> None:
    file = Path(server.settings.toolkits_file)
    billing = SERVERS / "billing.py"
    file.write_text(
        f'[toolkits.billing]\nfunctions = "{billing}"\nprojects = ["default"]\n[toolkits.liar]\n'
        f'command = ["{sys.executable}", "{SERVERS / "lying.py"}", "one-broken"]\n',
        encoding="utf-8",
    )
    try:
        assert eventually_answers(calling, "STOCK_COUNT", item="abc")["data"] == {"result": 3}
        items = {one["slug"]: one for one in client.get("/v1/toolkits").json()["items"]}
        assert (items["billing"]["from_file"], items["billing"]["project"]) == (True, "default")
        assert "strnig" in items["liar"]["refused"]["no-schema"]
        assert "in the settings file" in client.delete("/v1/toolkits/billing").text
        file.write_text("[toolkits.billing]\nfunctoins = 1\n", encoding="utf-8")
        assert calling.data("STOCK_COUNT", {"item": "abc"}) == {"result": 3}
        code, _, err = output_of(workbench(server.settings, "toolkits", "list"))
        assert code == 0
        assert "toolkits.toml: billing: a toolkit comes from one of" in err
    finally:
        file.write_text("", encoding="utf-8")


def test_commands_say_what_is_wrong_and_keep_nothing(server: Running) -> None:
    for arguments, words in (
        (["nothing"], "error: nothing: a toolkit comes from one of"),
        (["both", "--url", "http://x", "--", "y"], "this has `command` and `url`"),
        (["far", "--url", "http://127.0.0.1:1/mcp", "--bearer-from", "NO_SUCH"], "the variable NO_SUCH is to be used"),
        (["kit", "--functions", "/no/such.py"], "error: /no/such.py cannot be read: No such file"),
        (["short", "--", "/bin/false"], "it ended at once, with the code 1"),
        (["liar", "--", *lying("all-broken")], "none of the 1 tools of liar can be used; the first, bad: its input"),
    ):
        assert words in refused(server, "toolkits", "add", *arguments)
    assert "no toolkit 'nothing' was added here" in refused(server, "toolkits", "show", "nothing")
    assert json.loads(said(server, "toolkits", "list", "--json")) == []


def test_a_program_is_named_from_where_the_command_is_typed(server: Running) -> None:
    # A program starts in a folder of its own.
    program = os.path.relpath(PLAIN[0])
    assert "/" in program
    said(server, "toolkits", "add", "near", "--", program, *PLAIN[1:])
    try:
        assert f"['{os.path.abspath(PLAIN[0])}'" in said(server, "toolkits", "show", "near")
    finally:
        said(server, "toolkits", "remove", "near")


def test_those_that_come_with_the_workbench_are_listed_and_shown(server: Running) -> None:
    code, out, err = output_of(workbench(server.settings, "toolkits", "list"))
    assert (code, len(out.splitlines())) == (0, 1)
    assert "`workbench toolkits list --shipped`" in err
    listed = {one["slug"]: one for one in json.loads(said(server, "toolkits", "list", "--shipped", "--json"))}
    assert listed["gmail"]["auth_schemes"] == ["OAUTH2", "BEARER_TOKEN"]
    assert "GMAIL_SEND_EMAIL" in said(server, "toolkits", "show", "gmail")
    tools = json.loads(said(server, "toolkits", "show", "gmail", "--json"))["tools"]
    assert len(tools) == listed["gmail"]["tool_count"]
    assert "'gmail' comes with this workbench" in refused(server, "toolkits", "remove", "gmail")


def test_one_that_is_added_untried_tells_its_problem_when_it_is_shown_and_tried(server: Running) -> None:
    said(server, "toolkits", "add", "short", "--no-test", "--project", "default", "--", "/bin/false")
    try:
        assert "it ended at once, with the code 1" in refused(
            server, "toolkits", "test", "short", "--project", "default"
        )
        assert "it ended at once" in refused(server, "toolkits", "show", "short", "--project", "default")
    finally:
        said(server, "toolkits", "remove", "short", "--project", "default")


def test_nothing_of_a_killed_server_is_left(tmp_path: Path) -> None:
    with own_settings() as settings, running(settings) as server:
        script = f"echo $$ > {tmp_path / 'pid'}; exec {' '.join(PLAIN)}"
        said(server, "toolkits", "add", "plain", "--no-test", "--", "/bin/sh", "-c", script)
        with server.client() as client:
            assert client.get("/v1/toolkits").json()["items"][0]["tool_count"] == 7
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
        server.stop(9)
        until = time.monotonic() + _SEEN_S
        while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not Path(f"/proc/{pid}").exists()
