"""The package for npm, installed under the name that programs import, against a real server."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.local_sandbox.boxes import Box
from tests.local_sandbox.recorder import Asked, Told, recorder
from tests.restart.server import Server
from tests.services.running import Running

from workbench import Session, Workbench
from workbench.local_sandbox import HELPER_FILE, helper_source

PACKAGE = Path(__file__).resolve().parents[2] / "npm" / "workbench"
_NODE_PARTS = Path(__file__).resolve().parents[1] / "node" / "node_modules" / ".bin" / "node"
_RUN_S = 100.0
PROGRAM = """\
import {
  experimental_createLocalWorkbenchSession,
  experimental_createWorkbenchEnv,
} from '@composio/experimental/workbench';

const given = JSON.parse(process.argv[2]);
const composio = { getConfig: () => given.config };
let told;
try {
  if (given.env) {
    told = experimental_createWorkbenchEnv(given.env);
  } else {
    const client = given.composio === null ? {} : composio;
    told = await experimental_createLocalWorkbenchSession(client, given.session, given.options);
  }
} catch (error) {
  told = { name: error.name, message: error.message, status: error.status, code: error.code };
}
console.log(JSON.stringify(told));
"""


def node() -> str:
    """The one that npm's other parts here bring along, or this machine's."""
    found = str(_NODE_PARTS) if _NODE_PARTS.exists() else shutil.which("node")
    assert found, "there is no node: scripts/install-node-parts brings one"
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that imports it by the name `@composio/experimental`, as npm has installed it."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    (folder / "program.js").write_text(PROGRAM, encoding="utf-8")
    npm = shutil.which("npm")
    assert npm, "there is no npm: scripts/install-node-parts brings one"
    command = [npm, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--install-links"]
    done = subprocess.run(
        [*command, f"@composio/experimental@file:{PACKAGE}"],
        cwd=folder,
        env={**os.environ, "npm_config_cache": str(folder / "cache"), "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        timeout=_RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "program.js"


def told_by(program: Path, **given: Any) -> Any:
    done = subprocess.run(
        [node(), "--no-warnings", str(program), json.dumps(given)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=_RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def asked(server: Server, session: str) -> dict[str, Any]:
    """As the official SDK has them: an address without a slash or with one, and what the session says of itself."""
    return {
        "config": {"apiKey": server.key, "baseURL": f"{server.url}/"},
        "session": {"sessionId": session, "workbench": {"enable": False}},
    }


def test_a_box_made_by_it_works(
    server: Server, program: Path, session: Session, searches: Running, tmp_path: Path
) -> None:
    told = told_by(program, **asked(server, session.id), options={"expiresInS": 600})
    assert told["helperSource"] == helper_source()
    assert told["env"]["COMPOSIO_API_KEY"].startswith(f"wbt_{told['tokenId']}_")
    assert server.key not in json.dumps(told)
    (tmp_path / HELPER_FILE).write_text(told["helperSource"], encoding="utf-8")
    box = Box(folder=tmp_path, env=told["env"])
    assert box.answer("web_search('moon')")[1] == ""
    assert len(searches.seen()) == 1


@pytest.mark.parametrize("said", [{"enable": True}, {}, None])
def test_a_session_that_does_not_say_that_it_is_local_is_refused(
    server: Server, program: Path, session: Session, said: dict[str, bool] | None
) -> None:
    given = asked(server, session.id)
    given["session"] = {"sessionId": session.id, **({"workbench": said} if said is not None else {})}
    told = told_by(program, **given)
    assert told["name"] == "LocalWorkbenchError"
    assert "workbench: { enable: false }" in told["message"]


def test_what_the_server_refuses_is_told_in_its_words(server: Server, program: Path, bench: Workbench) -> None:
    with_sandbox = bench.create("tester")
    told = told_by(program, **asked(server, with_sandbox.id))
    with_sandbox.delete()
    assert (told["status"], told["code"]) == (409, "conflict")
    assert "--no-sandbox" in told["message"]
    assert told_by(program, **asked(server, "nobody"))["status"] == 404
    wrong = asked(server, "nobody")
    wrong["config"]["apiKey"] = "wbk_aaaaaaaaaaaa_wrong"
    assert told_by(program, **wrong)["status"] == 401
    late = told_by(program, **asked(server, "nobody"), options={"expiresInS": 0})
    assert late["status"] == 422


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"baseURL": "http://127.0.0.1:1"}, "composio has no key"),
        ({"apiKey": "", "baseURL": "http://127.0.0.1:1"}, "composio has no key"),
        ({"apiKey": "k"}, "composio has no address"),
        ({"apiKey": "k", "baseURL": "http://127.0.0.1:1"}, "no answer from http://127.0.0.1:1: "),
    ],
)
def test_what_is_wrong_with_composio_is_told(program: Path, config: dict[str, str], words: str) -> None:
    session = {"sessionId": "s", "workbench": {"enable": False}}
    assert told_by(program, config=config, session=session)["message"].startswith(words)


def test_things_that_are_neither_a_composio_nor_a_session_are_refused(program: Path) -> None:
    assert "getConfig" in told_by(program, composio=None, session={})["message"]
    config = {"apiKey": "k", "baseURL": "http://127.0.0.1:1"}
    assert "sessionId" in told_by(program, config=config, session={})["message"]


@pytest.mark.parametrize("answer", [Told(status=404, body="<html>"), Told(body={"hello": 1}), Told(body="no json")])
def test_another_server_is_told_from_ours(program: Path, answer: Told) -> None:
    with recorder(lambda _: answer) as other:
        config = {"apiKey": "k", "baseURL": other.url}
        told = told_by(program, config=config, session={"sessionId": "a/b", "workbench": {"enable": False}})
        assert "Open Workbench server" in told["message"]
        assert other.asked[0].path == "/v1/sessions/a%2Fb/local-sandbox"
        assert other.asked[0].headers["x-api-key"] == "k"


def always(told: Told, _asked: Asked) -> Told:
    return told


def test_the_key_is_not_sent_on_to_where_an_answer_leads(program: Path) -> None:
    with recorder(lambda _: Told()) as elsewhere:
        for status in (301, 302, 307, 308):
            leading = Told(status=status, headers={"location": f"{elsewhere.url}/x"})
            with recorder(functools.partial(always, leading)) as other:
                config = {"apiKey": "k", "baseURL": other.url}
                told = told_by(program, config=config, session={"sessionId": "s", "workbench": {"enable": False}})
                assert told["name"] == "LocalWorkbenchError"
        assert elsewhere.asked == []


def test_variables_are_made_of_a_token_and_not_of_a_key(program: Path) -> None:
    env = {"sessionId": "s", "backendUrl": "http://127.0.0.1:1//", "apiKey": "wbt_a_b"}
    assert told_by(program, env=env) == {
        "BACKEND_URL": "http://127.0.0.1:1",
        "COMPOSIO_TOOLROUTER_SESSION_ID": "s",
        "COMPOSIO_API_KEY": "wbt_a_b",
        "COMPOSIO_WORKBENCH_ACCESS_KEY": "wbt_a_b",
    }
    assert "key of a project" in told_by(program, env={**env, "apiKey": "wbk_a_b"})["message"]
    assert told_by(program, env={**env, "backendUrl": " "})["message"].startswith("backendUrl is missing")
