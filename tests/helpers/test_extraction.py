"""Text out of files: by the helper inside, and from outside, in the session's sandbox or in one that is thrown away."""

from __future__ import annotations

import pytest
from tests.helpers.serving import ran, value
from tests.restart.server import Server

from workbench import Session, Workbench
from workbench.errors import InvalidRequest, NotFound, SandboxUnavailable
from workbench.host_client.find import connect_or_start
from workbench.wire import host as wire

_SCAN = """\
from PIL import Image, ImageDraw, ImageFont
import matplotlib
font = ImageFont.truetype(f'{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf', 40)
page = Image.new('L', (1200, 400), 255)
ImageDraw.Draw(page).text((60, 60), 'Invoice number 4711\\nTotal amount 99 Euro', font=font, fill=0)
page.save('/mnt/files/scan.png')
"""


async def sandboxes(server: Server) -> int:
    async with await connect_or_start(server.settings, {}) as host:
        return len((await host.ask(wire.ListSandboxes(), wire.SandboxList)).sandboxes)


def test_a_scan_is_read_inside_with_a_preview(session: Session) -> None:
    ran(session, _SCAN)
    result = ran(
        session, "text, error = smart_file_extract('/mnt/files/scan.png')\nerror, 'Invoice number 4711' in text"
    )
    assert result.results == "('', True)"
    assert "Invoice number" in result.stdout


def test_what_cannot_be_read_is_told_inside(session: Session) -> None:
    ran(session, "open('/tmp/blob.bin', 'wb').write(bytes(range(256)) * 100)")
    text, error = value(session, "smart_file_extract('/tmp/blob.bin', show_preview=False)")
    assert text == ""
    assert "blob.bin" in error


async def test_a_session_without_a_sandbox_has_its_file_read_in_one_that_is_thrown_away(
    bench: Workbench, server: Server
) -> None:
    before = await sandboxes(server)
    cold = bench.create("cold")
    cold.files.upload(b"name,amount\nann,3\n", remote_path="data/in.csv")
    assert "ann" in cold.files.extract_text("data/in.csv")
    assert cold.describe().state == "cold"
    assert await sandboxes(server) == before
    cold.delete()


def test_a_session_with_a_sandbox_has_it_read_there_and_keeps_its_variables(session: Session) -> None:
    ran(session, f"kept = 7\n{_SCAN}")
    assert "4711" in session.files.extract_text("/mnt/files/scan.png")
    assert ran(session, "kept").results == "7"


def test_a_long_text_comes_as_a_whole_and_leaves_nothing_behind(session: Session) -> None:
    words = " ".join(f"word{n}" for n in range(20_000))
    session.files.upload(words.encode(), remote_path="long.txt")
    before = {one.mount_relative_path for one in session.files.iter()}
    assert session.files.extract_text("long.txt").split() == words.split()
    assert {one.mount_relative_path for one in session.files.iter()} == before


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [("none.pdf", NotFound, "none.pdf"), ("../x", InvalidRequest, "x"), ("broken.pdf", InvalidRequest, "broken.pdf")],
)
def test_what_cannot_be_read_is_refused_with_its_name(
    session: Session, path: str, error: type[Exception], words: str
) -> None:
    session.files.upload(b"%PDF-1.7 and nothing more", remote_path="broken.pdf")
    with pytest.raises(error, match=words):
        session.files.extract_text(path)


def test_a_python_that_the_guest_has_bent_is_not_believed(bench: Workbench) -> None:
    """By the session's own variables, which the programs of its sandbox have."""
    bent = bench.create("bent", sandbox={"env": {"PYTHONPATH": "/mnt/files/bent"}})
    bent.files.upload(b"print('[1, 2]'); import os; os._exit(0)", remote_path="bent/workbench_helper.py")
    bent.files.upload(b"a", remote_path="a.txt")
    assert bent.files.extract_text("a.txt").strip() == "a", "what is thrown away has none of them"
    ran(bent, "1")
    with pytest.raises(SandboxUnavailable, match="does not tell"):
        bent.files.extract_text("a.txt")
    bent.delete()
