"""Each example as its reader runs it, by the framework itself, in an environment that has nothing of ours.

Without a model --check goes as far as each framework goes. Where a framework can be given another address for its
model, a stand-in on this machine asks for one tool, so that the whole of the example runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.server_process import Serving, serving
from tests.examples.scripted_model import scripted_model
from tests.restart.server import own_settings

from workbench.settings import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-examples/bin/python"
TOOL = "COMPOSIO_REMOTE_WORKBENCH"
EXAMPLES = ("openai_agents", "langgraph_agent", "claude_agent")
# Those whose tools are objects that can be called without a model.
CALLS = {"openai_agents": "FunctionTool", "langgraph_agent": "StructuredTool"}
_RUN_S = 120


@pytest.fixture(scope="module")
def settings(image: object) -> Iterator[Settings]:
    """A data folder for all of them."""
    del image  # built beforehand: an example must not begin by installing
    assert PYTHON.exists(), "the frameworks are not installed: run scripts/install-example-parts"
    with own_settings() as settings:
        yield settings


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[Serving]:
    """For those that go by HTTP."""
    with serving(settings) as server:
        yield server


def environment(settings: Settings, home: Path, **more: str) -> dict[str, str]:
    """No key, no configuration of whoever runs the tests, and nothing that would be sent anywhere."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPEN_WORKBENCH_COMMAND": str(Path(sys.executable).parent / "workbench"),
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": "none",
        **settings.to_env(),
        **more,
    }


def run(example: str, env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [PYTHON, ROOT / f"examples/{example}.py", *arguments], env=env, cwd=env["HOME"],
        capture_output=True, text=True, timeout=_RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def checked(example: str, out: str) -> None:
    lines = out.splitlines()
    if example in CALLS:
        assert f"{CALLS[example]} {TOOL}" in lines
        # The second call finds what the first one defined.
        assert '"results": "42"' in lines[-1]
    else:
        assert lines[0].startswith("connected to open-workbench ")
        assert f"mcp__workbench__{TOOL}" in lines


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_goes_as_far_as_it_can_without_a_model_over_stdio(
    example: str, settings: Settings, short_dir: Path
) -> None:
    checked(example, run(example, environment(settings, short_dir), "--check"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_goes_as_far_as_it_can_without_a_model_over_http(
    example: str, settings: Settings, server: Serving, short_dir: Path
) -> None:
    address = {"OPEN_WORKBENCH_URL": server.url, "OPEN_WORKBENCH_API_KEY": server.key}
    checked(example, run(example, environment(settings, short_dir, **address), "--check"))


@pytest.mark.parametrize(("example", "prefix"), [("claude_agent", "mcp__workbench__"), ("langgraph_agent", "")])
def test_an_example_runs_to_its_end_when_a_model_asks_for_a_tool(
    example: str, prefix: str, settings: Settings, short_dir: Path
) -> None:
    with scripted_model(f"{prefix}{TOOL}", {"code_to_execute": "6 * 7"}) as model:
        out = run(example, environment(settings, short_dir, ANTHROPIC_BASE_URL=model.url), "What is six times seven?")
    assert "RESULT" in out
    assert "42" in out
    assert "successful" in out
