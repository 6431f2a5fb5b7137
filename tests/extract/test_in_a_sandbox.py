"""The program where it belongs: inside a sandbox of the standard tier, without a network, beside a kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bench.documents import SCANS, Made, draw, font_file, make_docx, save_scan, scanned
from bench.extract import mount_folder, read_all
from tests.extract.conftest import SOURCE

from workbench.model.image import Image
from workbench.settings import Settings

pytestmark = pytest.mark.timeout(180)


async def test_a_document_and_a_scan_are_read_inside_with_room_to_spare() -> None:
    folder, mount = mount_folder()
    try:
        words = make_docx(mount / "a.docx", 1)
        files = [Made(name="a.docx", path=mount / "a.docx", words=tuple(words)), scanned(mount, SCANS[2])]
        seen = await read_all(Settings.from_env(os.environ), files, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert [one.error for one in seen] == ["", ""]
    assert all(one.share >= 0.9 for one in seen)
    assert max(one.peak_kib for one in seen) <= 400 * 1024


async def test_a_language_that_the_session_brings_is_found(image: Image) -> None:
    folder, mount = mount_folder()
    try:
        (mount / "tessdata").mkdir()
        # Not Greek, but data all the same: what is asked is whether it is looked at.
        there = Path(image.python).parent.parent / "share" / "tessdata" / "deu.traineddata"
        shutil.copy(there, mount / "tessdata" / "ell.traineddata")
        lines = ["столица страны является крупнейшим городом", "население города растёт каждый год"] * 12
        save_scan(draw(lines, font_file("DejaVuSans"), 200), mount / "a.png", 200)
        file = Made(name="a.png", path=mount / "a.png", words=("столица",))
        (seen,) = await read_all(Settings.from_env(os.environ), [file], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert "looks like Cyrillic" in seen.error
    assert "ell" in seen.error.partition("there is: ")[2]


def test_importing_it_loads_none_of_its_libraries(image: Image) -> None:
    code = (
        "import sys, workbench_guest.extract.reading, workbench_guest.extract.dispatch, workbench_guest.zygote\n"
        "print(sorted({'PIL', 'pypdfium2', 'tesserocr', 'email', 'csv'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [image.python, "-I", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{code}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"
    assert not {name.split(".")[0] for name in image.preload} & {
        "pypdfium2",
        "tesserocr",
        "tessdata",
        "workbench_guest",
    }
