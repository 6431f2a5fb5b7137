"""The helper in a root with a stock Python and a way to the server, and nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local_sandbox.boxes import Box, box_in
from tests.local_sandbox.clean_root import entering, make_clean_root
from tests.restart.server import Server

from workbench import LocalWorkbenchSession, Session

pytestmark = pytest.mark.isolation

ALL = """\
import os
open('notes.txt', 'w').write('the notes')
answer = {
    'there': sorted(os.listdir('/')),
    'tool': run_composio_tool('COMPOSIO_SEARCH_EXA_ANSWER', {'content': 'moon'}),
    'model': invoke_llm('say:hello'),
    'search': web_search('moon'),
    'proxy': proxy_execute('GET', '/user', 'github'),
    'upload': upload_local_file('notes.txt'),
    'zip': upload_local_file('notes.txt', '/box'),
    'text': smart_file_extract('notes.txt'),
}
answer['link'] = get_mount_file_url('uploads/notes.txt')
answer['key'] = get_mount_file_s3_key('uploads/notes.txt')
"""


@pytest.fixture(scope="module")
def root() -> Iterator[tuple[Path, str]]:
    folder = Path(tempfile.mkdtemp(prefix="wb-root-", dir="/tmp"))
    try:
        yield folder, make_clean_root(folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def inside(root: tuple[Path, str], local: LocalWorkbenchSession) -> Iterator[Box]:
    folder, python = root
    box_in(folder / "box", {})
    # The way to Python's library is all that is said to it; PATH has nothing to lead to.
    command = (*entering(folder), python, "-S", "-E", "-B", "-W", "error", "-c")
    start = "import os, sys; os.chdir('/box'); sys.path.insert(0, '/box'); code = sys.argv.pop(); exec(code)"
    yield Box(folder=folder, env={**local.env, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, python=(*command, start))
    shutil.rmtree(folder / "box")


def test_every_helper_works_with_a_stock_python_alone(server: Server, inside: Box, session: Session) -> None:
    told = inside.run(ALL).answer
    assert {"dev", "etc", "home", "proc", "mnt"}.isdisjoint(told["there"])
    assert told["tool"][1] == ""
    assert told["model"] == ["hello", ""]
    assert told["search"][1] == ""
    assert told["proxy"][0] is None
    assert "github" in told["proxy"][1]
    assert told["upload"][1] == ""
    assert told["zip"][1] == ""
    assert [text.strip() for text in told["text"]] == ["the notes", ""]
    assert told["link"][0].startswith(server.url)
    assert told["key"] == [told["upload"][0]["s3key"], ""]
    names = [one.mount_relative_path for one in session.files.list().items]
    assert names == ["uploads/files.zip", "uploads/notes.txt"]
    assert session.files.download("uploads/notes.txt").text() == "the notes"
