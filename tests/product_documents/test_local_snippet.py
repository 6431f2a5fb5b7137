"""The page about the local sandbox: its program, run as it is printed in a box of our own beside the helper."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.restart.server import Server

from workbench import Composio, ComposioSession, create_local_workbench_session
from workbench.errors import Conflict

# As printed, to the letter; nothing here is to be made to fit.
SNIPPET = """\
from composio_helper import run_composio_tool, invoke_llm, web_search
response, error = run_composio_tool(
"GITHUB_GET_A_PULL_REQUEST",
{"owner": "composiohq", "repo": "composio", "pull_number": 1},
)"""
_BOX_S = 60.0


@pytest.fixture
def local(composio: Composio) -> Iterator[ComposioSession]:
    """As the page makes it: with the sandbox turned off. Deleted afterwards."""
    session = composio.create("user_123", toolkits=["github"], workbench={"enable": False})
    yield session
    session.delete()


def in_the_box(folder: Path, env: dict[str, str], text: str) -> str:
    """What the program said; nothing of this machine's variables is in there."""
    done = subprocess.run(
        [sys.executable, "-"],
        input=text,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=_BOX_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_printed_program_calls_the_tool_through_the_session(
    composio: Composio, local: ComposioSession, server: Server, tmp_path: Path
) -> None:
    box = create_local_workbench_session(composio, local)
    (tmp_path / "composio_helper.py").write_text(box.helper_source, encoding="utf-8")
    assert server.key not in box.helper_source
    assert server.key not in str(box.env)
    said = in_the_box(tmp_path, dict(box.env), f"{SNIPPET}\nprint(repr((type(response).__name__, error)))\n")
    # The user has connected no account there: that is what the tool's answer says, and not that the helper failed.
    kind, error = ast.literal_eval(said.splitlines()[-1])
    assert kind == "dict"
    assert "no active connection of user 'user_123' with github" in error


def test_the_other_two_names_of_the_program_answer(composio: Composio, local: ComposioSession, tmp_path: Path) -> None:
    box = create_local_workbench_session(composio, local)
    (tmp_path / "composio_helper.py").write_text(box.helper_source, encoding="utf-8")
    asked = "print(repr((invoke_llm('say:one two three'), web_search('open workbench')[1])))\n"
    said = in_the_box(tmp_path, dict(box.env), f"{SNIPPET.splitlines()[0]}\n{asked}")
    assert ast.literal_eval(said) == (("one two three", ""), "")


def test_a_session_with_a_sandbox_is_not_a_local_one(composio: Composio, session: ComposioSession) -> None:
    with pytest.raises(Conflict, match="enable"):
        create_local_workbench_session(composio, session)
