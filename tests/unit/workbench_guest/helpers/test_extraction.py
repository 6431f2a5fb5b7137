"""`smart_file_extract`, with a script in the place of the real extractor: what it says, and how it can end."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.workbench_guest.helpers.answering import PATIENCE_S

import workbench_guest
from workbench_guest.helpers import extraction, smart_file_extract

Extractor = Callable[[str], Path]


@pytest.fixture
def extractor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Extractor:
    """Called with a program: it is what runs; the document that it is given is told."""

    def make(program: str) -> Path:
        package = tmp_path / "elsewhere" / "workbench_guest"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "extract.py").write_text("import json, os, sys, time\n" + textwrap.dedent(program))
        monkeypatch.setattr(workbench_guest, "__path__", [str(package)])
        document = tmp_path / "document.pdf"
        document.write_text("the document")
        monkeypatch.chdir(tmp_path)
        return document

    return make


GOOD = "print(json.dumps({'text': open(sys.argv[1]).read() * 100, 'error': '', 'pages': 1, 'kind': 'pdf'}))"


def test_the_text_is_the_result_and_a_preview_is_printed(
    extractor: Extractor, capsys: pytest.CaptureFixture[str]
) -> None:
    document = extractor(GOOD)
    assert smart_file_extract(str(document)) == ("the document" * 100, "")
    text = "the document" * 100
    assert capsys.readouterr().out == f"{text[:500]}…\n[1,200 characters in all]\n"
    assert smart_file_extract("document.pdf", show_preview=False) == (text, "")
    assert capsys.readouterr().out == ""


def test_what_libraries_print_is_not_taken_for_the_answer(extractor: Extractor) -> None:
    document = extractor("print('warning: {odd}')\nsys.stderr.write('noise')\n" + GOOD)
    assert smart_file_extract(document, False) == ("the document" * 100, "")


def test_the_agents_own_modules_do_not_get_into_it(extractor: Extractor, tmp_path: Path) -> None:
    document = extractor(GOOD)
    (tmp_path / "json.py").write_text("raise SystemExit('mine')")
    assert smart_file_extract(document, False)[1] == ""


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print(json.dumps({'text': '', 'error': 'it has a password'}))", "it has a password"),
        ("sys.exit('no way')", "the extraction ended with code 1 and without a text: no way"),
        ("pass", "the extraction ended with code 0 and without a text"),
        ("print('[1]')", "the extraction ended with code 0 and without a text"),
        ("os.kill(os.getpid(), 11)", "the extraction ended by signal 11 and without a text"),
        ("os.kill(os.getpid(), 9)", "ran out of memory: choose a larger tier or split the file"),
        ("raise MemoryError", "ran out of memory: choose a larger tier or split the file"),
    ],
)
def test_every_other_end_is_an_error(
    extractor: Extractor, capsys: pytest.CaptureFixture[str], program: str, problem: str
) -> None:
    document = extractor(program)
    assert smart_file_extract(document) == ("", f"{document}: {problem}")
    assert capsys.readouterr().out == ""


HANGS = """
import subprocess
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
with open(os.path.dirname(sys.argv[1]) + '/pids.new', 'w') as file: file.write(f'{os.getpid()} {child.pid}')
os.rename(os.path.dirname(sys.argv[1]) + '/pids.new', os.path.dirname(sys.argv[1]) + '/pids')
time.sleep(600)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_at_the_limit_it_ends_with_all_that_it_started(extractor: Extractor, tmp_path: Path) -> None:
    document = extractor(HANGS)
    assert extraction.extract("document.pdf", True, 2.0) == (
        "", "no text of document.pdf within 2 s: split the file, or read a part of it with a library"
    )  # fmt: skip
    for pid in (tmp_path / "pids").read_text().split():
        until(lambda number=int(pid): gone(number))  # type: ignore[misc]
    assert document.exists()


def test_an_interrupt_passes_through_and_ends_it(extractor: Extractor, tmp_path: Path) -> None:
    extractor(HANGS)

    def interrupt() -> None:
        until((tmp_path / "pids").exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        smart_file_extract("document.pdf")
    thread.join()
    for pid in (tmp_path / "pids").read_text().split():
        until(lambda number=int(pid): gone(number))  # type: ignore[misc]


def test_a_wrong_path_is_told_and_nothing_runs(extractor: Extractor, tmp_path: Path) -> None:
    extractor("open('ran', 'w')")
    assert smart_file_extract("documnet.pdf") == ("", "no such file: documnet.pdf; near it: document.pdf")
    assert "is a folder" in smart_file_extract(str(tmp_path))[1]
    assert smart_file_extract(None)[1] == "sandbox_file_path has to be a path, not NoneType"  # type: ignore[arg-type]
    assert smart_file_extract("")[1] == "sandbox_file_path is empty"
    assert not list(tmp_path.rglob("ran"))
