"""The Python program of the page about the sandbox, run as it is printed, and the table of methods below it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.product_documents.conftest import Program

from workbench import ComposioSession

# As printed, to the letter; nothing here is to be made to fit.
SNIPPET = """\
session = composio.create("user_123")
# Upload a local file; the sandbox sees it at /mnt/files/sales.csv
uploaded = session.experimental.files.upload("./sales.csv")
print(uploaded.sandbox_mount_prefix, uploaded.mount_relative_path)
# /mnt/files sales.csv
# After the agent writes a result in the sandbox, download it
report = session.experimental.files.download("/report.pdf")
report.save("./report.pdf")"""
_AGENT_WRITES = "# After the agent writes a result in the sandbox, download it\n"
_BEFORE = "from workbench import Composio\n\ncomposio = Composio()\n"
# What an agent does where the page says so: it reads the file, and makes a report of it.
_AGENT = """
import csv
from reportlab.pdfgen.canvas import Canvas

with open("/mnt/files/sales.csv") as file:
    total = sum(int(row["total"]) for row in csv.DictReader(file))
page = Canvas("/mnt/files/report.pdf")
page.drawString(72, 720, f"sales: {total}")
page.save()
total
"""
_AT_WORK = f"""
answer = session.execute("COMPOSIO_REMOTE_WORKBENCH", {{"code_to_execute": {_AGENT!r}}})
assert answer.successful and not answer.data["error"], answer
assert "30" in answer.data["results"], answer
"""
_AFTER = "\nsession.delete()\ncomposio.close()\n"


def test_the_printed_program_moves_files_in_and_out(program: Program, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("region,total\nwest,10\neast,20\n", encoding="utf-8")
    first, second = SNIPPET.split(_AGENT_WRITES)
    said = program(_BEFORE + first + _AT_WORK + _AGENT_WRITES + second + _AFTER)
    assert said == "/mnt/files sales.csv\n"
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.pdf", "sales.csv"]


def test_every_method_of_the_mount_does_what_the_table_says(session: ComposioSession, tmp_path: Path) -> None:
    files = session.experimental.files
    (tmp_path / "in.csv").write_bytes(b"a\n")
    uploaded = [
        files.upload(str(tmp_path / "in.csv")),
        files.upload(b"buffer", remote_path="data/buffer.bin"),
        files.upload(io.BytesIO(b"file"), remote_path="data/file.bin"),
    ]
    assert [one.mount_relative_path for one in uploaded] == ["in.csv", "data/buffer.bin", "data/file.bin"]
    first = files.list(path="data", limit=1)
    assert [one.mount_relative_path for one in first.items] == ["data/buffer.bin"]
    rest = files.list(path="data", cursor=first.next_cursor)
    assert [one.mount_relative_path for one in rest.items] == ["data/file.bin"]
    fetched = files.download("data/file.bin", mount_id="files")
    assert (fetched.text(), fetched.buffer()) == ("file", b"file")
    assert Path(fetched.save(tmp_path / "out.bin")).read_bytes() == b"file"
    assert fetched.download_url.startswith("http")
    assert fetched.expires_at
    files.delete("in.csv")
    files.delete("data")
    assert files.list().items == []


def test_what_lies_in_the_mount_is_there_after_another_size(session: ComposioSession) -> None:
    wrote = {"code_to_execute": "open('/mnt/files/kept.txt', 'w').write('kept')"}
    assert session.execute("COMPOSIO_REMOTE_WORKBENCH", wrote).successful
    session.update(sandbox={"sandbox_size": "medium"})
    read = session.execute("COMPOSIO_REMOTE_BASH_TOOL", {"command": "cat /mnt/files/kept.txt"})
    assert read.data["stdout"] == "kept"
    assert session.experimental.files.download("kept.txt").text() == "kept"


@pytest.mark.parametrize("size", ["standard", "medium", "large", "xlarge"])
def test_every_size_of_the_table_can_be_asked_for(program: Program, size: str) -> None:
    said = program(
        f"{_BEFORE}session = composio.create('user_123', sandbox={{'sandbox_size': {size!r}}})\n"
        "print(session.sandbox.sandbox_size, session.workbench.sandbox_size)\nsession.delete()\n"
    )
    assert said == f"{size} {size}\n"
