"""Every block that a reader would type is run, as it stands on its page, or says why not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.server_process import Serving, serving
from tests.docs.snippets import ROOT, RUN, Snippet, pages, snippets, to_run

from workbench.settings import Settings

_PAGE_S = 300
_FOREGROUND = "it stays in the foreground; tests/cli/test_run.py starts it and uses what it prints"
NOT_RUN = {
    ("README.md", _FOREGROUND),
    ("README.md", "takes minutes; tests/security/test_proof.py runs it"),
    (
        "README.md",
        "needs an account of GitHub, and a program; tests/cli/test_connections.py and tests/toolkits run them",
    ),
    ("docs/how-to/docker.md", "needs a Docker daemon"),
    ("docs/how-to/files.md", "needs a public server"),
    ("docs/how-to/mcp-clients.md", "needs the frameworks; tests/examples runs it"),
    ("docs/how-to/models.md", "downloads 130 MB; tests/services/test_local_model.py runs it"),
    ("docs/how-to/models.md", "needs a key; tests/services runs it on a server of its own"),
    ("docs/how-to/models.md", "needs a server of models; tests/services runs it on one of its own"),
    ("docs/how-to/object-stores.md", "needs an object store; tests/mounts runs on one"),
    ("docs/how-to/postgres.md", "needs a PostgreSQL server; tests/contract runs the store on one"),
    ("docs/how-to/serve.md", "needs a certificate for a public name"),
    ("docs/how-to/serve.md", "needs a proxy"),
    (
        "docs/how-to/toolkits.md",
        "it is a file that a workbench is told of; tests/toolkits/servers/billing.py is one that is run",
    ),
    ("docs/how-to/toolkits.md", "needs accounts of other services; tests/cli/test_connections.py has its own"),
    ("docs/how-to/toolkits.md", "needs an MCP server; tests/toolkits runs every command on real ones"),
    ("docs/how-to/toolkits.md", "needs an application at Google; tests/connections has an authorisation server"),
    ("docs/how-to/systemd.md", "needs systemd and root"),
    ("docs/reference/helpers.md", "runs inside a sandbox; tests/host/test_helpers.py runs it there"),
    ("docs/reference/runtime-r.md", "needs an account of Gmail; tests/runtimes/r/test_asking.py asks for all of them"),
    ("docs/how-to/web-search.md", "needs the web; tests/services runs it on a server of its own"),
    ("docs/tutorial/first-steps.md", _FOREGROUND),
    ("docs/tutorial/first-steps.md", "the test has a server and a key of its own"),
    (
        "docs/how-to/toolkits.md",
        "it is a file that a workbench is told of; tests/toolkits/servers/billing.py is one that is run",
    ),
    ("docs/how-to/toolkits.md", "needs an MCP server; tests/toolkits runs every command on real ones"),
}


def _with(kind: str) -> list[str]:
    return [page for page in pages() if to_run(page, kind)]


@pytest.fixture(scope="module")
def place(image: object) -> Iterator[tuple[Serving, Path]]:
    """A server, and a folder that looks like a clone to who types in it."""
    del image  # built beforehand: a block must not begin by installing
    with serving(Settings.from_env(os.environ)) as server:
        folder = server.settings.data_dir.parent / "clone"
        folder.mkdir()
        (folder / ".venv").symlink_to(Path(sys.executable).parent.parent)
        yield server, folder


def _environment(server: Serving, folder: Path) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "OPEN_WORKBENCH_"))}
    return {
        **kept,
        "WORKBENCH_DATA_DIR": str(server.settings.data_dir),
        "WORKBENCH_IMAGES_DIR": str(server.settings.images_dir),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "URL": server.url,
        "KEY": server.key,
        "OPEN_WORKBENCH_URL": server.url,
        "OPEN_WORKBENCH_API_KEY": server.key,
    }


def _run(command: list[str], script: str, server: Serving, folder: Path) -> None:
    done = subprocess.run(
        command, input=script, cwd=folder, env=_environment(server, folder), capture_output=True, text=True,
        timeout=_PAGE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def test_every_block_that_is_not_run_is_listed_with_its_reason() -> None:
    assert {(one.page, one.reason) for page in pages() for one in snippets(page) if one.reason} == NOT_RUN


def test_every_block_is_in_a_language_that_is_run_or_is_text() -> None:
    odd = [f"{one.page}:{one.line}: {one.kind!r}" for page in pages() for one in snippets(page)
           if not one.reason and one.kind not in (*RUN, "text", "toml", "ini", "nginx")]  # fmt: skip
    assert not odd


def test_no_block_escapes_the_reader_of_blocks() -> None:
    for page in pages():
        fences = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("```")]
        assert len(fences) == 2 * len(snippets(page)), page


def test_a_reason_belongs_to_the_block_below_it() -> None:
    text = "<!-- not run: needs a moon -->\n```sh\nfly\n```\n\n```sh\nwalk\n```\n"
    assert [one.reason for one in snippets("x.md", text)] == ["needs a moon", ""]


@pytest.mark.parametrize("page", _with("json"))
def test_json_of_a_page_is_json(page: str) -> None:
    for one in to_run(page, "json"):
        json.loads(one.body)


@pytest.mark.timeout(_PAGE_S + 60)
@pytest.mark.parametrize("page", _with("sh"))
def test_commands_of_a_page_work_in_their_order(page: str, place: tuple[Serving, Path]) -> None:
    server, folder = place
    assert shutil.which("curl"), "the pages use curl: apt-get install -y curl"
    script = "\n".join(f"echo '--- {one.page}:{one.line}' >&2\n{_checked(one)}" for one in to_run(page, "sh"))
    _run(["bash", "-eu", "-o", "pipefail"], script, server, folder)


def _checked(one: Snippet) -> str:
    """A refusal of the server fails the page as well: the pages show what works."""
    return one.body.replace("curl -s ", "curl -sS --fail-with-body ")


@pytest.mark.timeout(_PAGE_S + 60)
@pytest.mark.parametrize("page", _with("python"))
def test_python_of_a_page_works_in_one_program(page: str, place: tuple[Serving, Path]) -> None:
    server, folder = place
    program = "\n".join(f"# {one.page}:{one.line}\n{one.body}" for one in to_run(page, "python"))
    _run([sys.executable, "-W", "error", "-"], program, server, folder)
