"""What arrives after an image: from where pip is configured first, whole or not at all, and seen at once."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.images.wheels import configure_pip, index, wheel

from workbench.errors import SandboxUnavailable
from workbench.images.build import build_image, find_image
from workbench.images.late import bring_late, late_folder, late_mark, late_state, make_room
from workbench.images.recipe import LatePart, Recipe
from workbench.model.image import Image

NOWHERE = "file:///nonexistent/index"


@pytest.fixture
def part(tmp_path: Path) -> LatePart:
    """A torch that needs a helper, which is pinned."""
    digest = wheel(tmp_path / "pinned", "tinyhelper", "1.0")
    lock = tmp_path / "late.lock"
    lock.write_text(f"tinyhelper==1.0 --hash=sha256:{digest}\n")
    return LatePart(requirement="torch==2.0", module="torch", lock=lock)


@pytest.fixture
def pip_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "found"
    configure_pip(monkeypatch, folder)
    wheel(folder, "tinyhelper", "1.0")
    return folder


def bring(images: Path, part: LatePart, where: str = NOWHERE) -> list[str]:
    told: list[str] = []
    bring_late(images, "tiny", part, python=sys.executable, index=where, tell=told.append)
    return told


def imported(images: Path, part: LatePart) -> str:
    packages = late_folder(images, "tiny", part) / "packages"
    code = f"import sys; sys.path.append({str(packages)!r}); import torch; print(torch.where, torch.__file__)"
    done = subprocess.run([sys.executable, "-I", "-B", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def torch(folder: Path, where: str, *requires: str) -> None:
    wheel(
        folder, "torch", "2.0+cpu", requires=("tinyhelper", *requires), code=f"import tinyhelper\nwhere = {where!r}\n"
    )


def test_who_is_too_early_is_told_that_it_arrives_and_later_it_is_there(
    tmp_path: Path, part: LatePart, pip_finds: Path
) -> None:
    torch(pip_finds, "configured")
    make_room(tmp_path / "images", "tiny", part)
    early = imported(tmp_path / "images", part)
    assert "ImportError: torch is part of this image and is still arriving" in early
    assert "workbench image list" in early
    told = bring(tmp_path / "images", part)
    assert "torch 2.0+cpu is there" in told[-1]
    assert imported(tmp_path / "images", part).startswith("configured")
    folder = late_folder(tmp_path / "images", "tiny", part)
    assert sorted(one.name for one in folder.iterdir()) == ["late.json", "packages"], "nothing else is left"
    assert not (folder / "packages/torch.py").exists()
    assert bring(tmp_path / "images", part) == [], "the second call has nothing to do"


def test_a_build_for_graphics_cards_is_passed_over_for_the_index_of_the_setting(
    tmp_path: Path, part: LatePart, pip_finds: Path
) -> None:
    wheel(pip_finds, "nvidia_things", "1")
    wheel(pip_finds, "torch", "2.0", requires=("nvidia-things",), code="where = 'cuda'\n")
    torch(tmp_path / "other", "cpu index")
    told = bring(tmp_path / "images", part, index(tmp_path / "index", "torch", tmp_path / "other"))
    assert any("graphics cards" in line for line in told)
    assert imported(tmp_path / "images", part).startswith("cpu index")


def test_where_it_cannot_be_had_the_error_says_what_to_do_and_what_was_fetched_is_kept(
    tmp_path: Path, part: LatePart, pip_finds: Path
) -> None:
    with pytest.raises(SandboxUnavailable, match=r"(?s)torch==2.0 could not be brought.*WORKBENCH_TORCH_INDEX"):
        bring(tmp_path / "images", part)
    assert not late_mark(tmp_path / "images", "tiny", part).exists()
    kept = late_folder(tmp_path / "images", "tiny", part) / ".work/wheels"
    assert [one.name for one in kept.iterdir()] == ["tinyhelper-1.0-py3-none-any.whl"]
    torch(pip_finds, "configured")
    bring(tmp_path / "images", part)
    assert imported(tmp_path / "images", part).startswith("configured")


def test_what_does_not_import_or_lacks_something_never_comes_into_sight(
    tmp_path: Path, part: LatePart, pip_finds: Path
) -> None:
    torch(pip_finds, "configured", "something-else>=3")
    wheel(pip_finds, "something_else", "3.0")
    with pytest.raises(SandboxUnavailable, match="needs also: something-else>=3"):
        bring(tmp_path / "images", part)
    assert "still arriving" in imported(tmp_path / "images", part)


def test_what_was_pinned_and_comes_with_another_hash_is_refused(
    tmp_path: Path, part: LatePart, pip_finds: Path
) -> None:
    torch(pip_finds, "configured")
    wheel(pip_finds, "tinyhelper", "1.0", code="evil = True\n")
    with pytest.raises(SandboxUnavailable, match="DO NOT MATCH THE HASHES"):
        bring(tmp_path / "images", part)


def test_an_image_knows_its_late_part_and_whether_it_is_there(tmp_path: Path, part: LatePart, pip_finds: Path) -> None:
    images = tmp_path / "images"
    lock = tmp_path / "requirements.lock"
    lock.write_text("")
    recipe = Recipe(name="tiny", lock=lock, preload=("json",), late=part)
    image = build_image(images, recipe, lambda _: None)
    assert image == find_image(images, recipe)
    assert str(late_folder(images, "tiny", part)) in image.roots
    assert _state(images, image) == ("", False)
    with (images / ".tiny-late.lock").open("w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        assert _state(images, image) == ("", True)
    done = subprocess.run([image.python, "-I", "-c", "import torch"], capture_output=True, text=True, check=False)
    assert "still arriving" in done.stderr, "on the path of the image's own Python"
    late_mark(images, "tiny", part).write_text('{"version": "2.0+cpu"}')
    assert _state(images, image) == ("2.0+cpu", False)


def _state(images: Path, image: Image) -> tuple[str, bool]:
    state = late_state(images, image)
    assert state is not None
    return state.version, state.arriving
