"""`workbench image`: what is there, and what is refused with the next step."""

from __future__ import annotations

import json
from pathlib import Path

from tests.host.conftest import settings
from tests.host.support import output_of, workbench

from workbench.model.image import Image
from workbench.settings import Settings

__all__ = ["settings"]


def test_what_is_built_is_listed_with_its_packages_and_its_late_part(settings: Settings, image: Image) -> None:
    code, out, err = output_of(workbench(settings, "image", "list"))
    assert code == 0, err
    (row,) = [line for line in out.splitlines() if f" {image.digest} " in line]
    version = json.loads(Path(image.late).read_text())["version"]
    assert "in use" in row
    assert f"torch {version}" in row
    assert "added: nothing" in out
    code, out, err = output_of(workbench(settings, "image", "list", "--packages"))
    names = {line.split()[0] for line in out.splitlines()}
    assert {"pandas", "scipy", "scikit_learn", "pyarrow", "opencv_python_headless"} <= names
    assert "tabulate" not in names, "what sessions install themselves is not there before"


def test_one_that_was_built_is_chosen_and_left_again(settings: Settings, image: Image) -> None:
    code, out, err = output_of(workbench(settings, "image", "use", image.digest))
    assert (code, out) == (0, f"image python {image.digest} is in use, from the next sandbox on\n"), err
    assert (settings.data_dir / "image/python/in-use").read_text() == image.digest
    assert output_of(workbench(settings, "image", "use", "python"))[0] == 0
    assert not (settings.data_dir / "image/python/in-use").exists()


def test_what_cannot_be_done_is_refused_with_the_next_step(settings: Settings) -> None:
    for words, said in (
        (("use", "nosuch"), "no built image is called 'nosuch'; there are: python"),
        (("add", "pandas"), "is in the image as it is shipped"),
        (("build", "cobol"), "no recipe for image 'cobol'; there are: python"),
    ):
        code, _, err = output_of(workbench(settings, "image", *words))
        assert code != 0
        assert said in err, words
