"""Images: found when complete, named by what went into them, and honest about a build that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.errors import NotFound, SandboxUnavailable
from workbench.images.build import build_image, find_image, image_folder
from workbench.images.recipe import Recipe, load_recipe


def recipe(folder: Path, lock: str, preload: tuple[str, ...] = ("json",)) -> Recipe:
    path = folder / "requirements.lock"
    path.write_text(lock)
    return Recipe(name="tiny", lock=path, preload=preload)


def test_an_image_is_built_once_and_then_found(tmp_path: Path) -> None:
    tiny = recipe(tmp_path, "")
    told: list[str] = []
    built = build_image(tmp_path / "images", tiny, told.append)
    assert told
    told.clear()
    assert build_image(tmp_path / "images", tiny, told.append) == built == find_image(tmp_path / "images", tiny)
    assert not told, "the second call has nothing to do"
    assert Path(built.python).exists()
    assert image_folder(tmp_path / "images", tiny).name == f"tiny-{tiny.digest}"


def test_another_lock_or_preload_is_another_image(tmp_path: Path) -> None:
    digests = {recipe(tmp_path, lock, preload).digest for lock in ("", "# x") for preload in (("json",), ("csv",))}
    assert len(digests) == 4


def test_a_building_that_was_broken_off_is_not_an_image(tmp_path: Path) -> None:
    tiny = recipe(tmp_path, "")
    folder = image_folder(tmp_path, tiny)
    (folder / "bin").mkdir(parents=True)
    with pytest.raises(NotFound, match="workbench image build"):
        find_image(tmp_path, tiny)
    (folder / ".image.json").write_text(json.dumps({}))
    with pytest.raises(NotFound):
        find_image(tmp_path, tiny)


def test_a_failed_install_says_what_pip_said_and_leaves_no_image(tmp_path: Path) -> None:
    broken = recipe(tmp_path, "not a requirement\n")
    with pytest.raises(SandboxUnavailable, match="pip install"):
        build_image(tmp_path / "images", broken, lambda _: None)
    with pytest.raises(NotFound):
        find_image(tmp_path / "images", broken)


def test_an_unknown_recipe_lists_those_there_are() -> None:
    assert load_recipe("python").preload
    with pytest.raises(NotFound, match="no recipe for image 'cobol'; there are: python"):
        load_recipe("cobol")
