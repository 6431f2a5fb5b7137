"""Every snippet of the product's documents, unchanged, with the official SDKs and our server."""

from __future__ import annotations

import json

import pytest
from tests.composio_sdks import snippets
from tests.composio_sdks.world import Done, World

pytestmark = pytest.mark.long

SALES = "region,total\nwest,10\n"
PYTHON = """\
from composio import Composio
composio = Composio()
with open("sales.csv", "w") as sales: sales.write("region,total\\nwest,10\\n")
"""
# What the page says in between: the agent reads what was uploaded and writes a result.
PYTHON_TURN = """\
turn = session.execute("COMPOSIO_REMOTE_WORKBENCH", arguments={
    "code_to_execute": "open('/mnt/files/report.pdf', 'w').write(open('/mnt/files/sales.csv').read().upper())"})
assert turn.error is None, turn
"""
TYPESCRIPT = """\
import { writeFileSync } from 'node:fs';
import { Composio } from '@composio/core';
const composio = new Composio();
writeFileSync('sales.csv', 'region,total\\nwest,10\\n');
"""
TYPESCRIPT_TURN = """\
const turn = await session.execute('COMPOSIO_REMOTE_WORKBENCH', {
  code_to_execute: "open('/mnt/files/report.pdf', 'w').write(open('/mnt/files/sales.csv').read().upper())" });
if (turn.error !== null) throw new Error(turn.error);
"""
# What its reader does with both: the module beside the agent's code, the variables into its environment.
KEEP = """\
import { writeFileSync as keep } from 'node:fs';
keep('composio_helper.py', helperSource);
keep('env.json', JSON.stringify(env));
process.exit(0);
"""
USE = """\
import json
print("RESULT", json.dumps([response, error, invoke_llm("say:hello"), web_search("open workbench")]))
"""


def check_transfers(done: Done) -> None:
    assert done.code == 0, done.stderr
    assert "/mnt/files sales.csv" in done.stdout.splitlines()
    assert done.files["report.pdf"].decode() == SALES.upper()


@pytest.mark.parametrize("line", ["0.16", "0.19", "0.21"])
def test_the_typescript_snippet_of_the_sandbox_page_runs_as_it_stands(world: World, line: str) -> None:
    script = "\n".join((TYPESCRIPT, snippets.TYPESCRIPT_UPLOAD, TYPESCRIPT_TURN, snippets.TYPESCRIPT_DOWNLOAD))
    check_transfers(world.node(line, world.server_of(f"typescript {line}"), "snippet.mjs", {"snippet.mjs": script}))


@pytest.mark.parametrize("line", ["0.16", "0.19", "0.21"])
def test_the_snippets_of_the_local_sandbox_page_run_as_they_stand(world: World, line: str) -> None:
    """With our package under the name of theirs; the helper of the second runs with nothing but what the first gave."""
    script = snippets.TYPESCRIPT_LOCAL + KEEP
    made = world.node(line, world.server_of(f"typescript {line}"), "snippet.mjs", {"snippet.mjs": script})
    assert made.code == 0, made.stderr
    env: dict[str, str] = json.loads(made.files["env.json"])
    assert world.plain.key not in env.values()
    files = {"composio_helper.py": made.files["composio_helper.py"].decode(), "agent.py": snippets.PYTHON_HELPER + USE}
    ran = world.alone(files, "agent.py", env)
    assert ran.code == 0, ran.stderr
    (line_told,) = [text for text in ran.stdout.splitlines() if text.startswith("RESULT ")]
    response, error, said, found = json.loads(line_told.removeprefix("RESULT "))
    # Nobody has connected it, and that is what the agent is told.
    assert "no active connection" in error
    assert "github" in error
    assert isinstance(response, dict)
    assert said == ["hello", ""]
    assert found[1] == ""
    assert found[0]


@pytest.mark.parametrize("line", ["0.19", "0.30"])
def test_the_python_snippet_of_the_sandbox_page_is_refused_by_the_sdk_itself_at_its_first_line(
    world: World, line: str
) -> None:
    """`create` of the official SDK takes a user by name only, whatever server it speaks to; ours takes both."""
    script = PYTHON + snippets.PYTHON_CREATE
    asked = len(world.requests())
    done = world.python(line, world.server_of(f"python {line}"), "-c", script)
    assert done.code == 1
    assert done.stderr.splitlines()[-1] == (
        "TypeError: ToolRouter.create() takes 1 positional argument but 2 were given"
    )
    assert len(world.requests()) == asked


@pytest.mark.parametrize("line", ["0.19", "0.30"])
def test_the_rest_of_the_python_snippet_runs_as_it_stands(world: World, line: str) -> None:
    made = 'session = composio.create(user_id="user_123")\n'
    script = PYTHON + made + snippets.PYTHON_UPLOAD + PYTHON_TURN + snippets.PYTHON_DOWNLOAD
    check_transfers(world.python(line, world.server_of(f"python {line}"), "-c", script))
