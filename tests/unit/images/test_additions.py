"""What an operator adds to an image: kept with its lock, used from then on, and nothing is lost where it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.unit.images.wheels import configure_pip, wheel

from workbench.errors import InvalidRequest, NotFound, SandboxUnavailable
from workbench.images import additions as module
from workbench.images.additions import ChosenImage, pins_of
from workbench.images.recipe import Recipe


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChosenImage]:
    """An image that is shipped with one package, in version 1, and built; pip finds two more."""
    folder = tmp_path_factory.mktemp("additions")
    found = folder / "found"
    with pytest.MonkeyPatch.context() as patch:
        configure_pip(patch, found)
        digest = wheel(found, "shipped", "1.0")
        wheel(found, "extra", "1.0", requires=("shipped", "below"))
        wheel(found, "below", "0.5")
        wheel(found, "newer", "1.0", requires=("shipped>=2",))
        wheel(found, "shipped", "2.0")
        lock = folder / "requirements.lock"
        lock.write_text(f"shipped==1.0 \\\n    --hash=sha256:{digest}\n")
        patch.setattr(module, "load_recipe", lambda name: Recipe(name=name, lock=lock, preload=("json",)))
        one = ChosenImage(folder / "data", folder / "images", "tiny")
        one.build(silent)
        yield one


def silent(_line: str) -> None:
    pass


def imports(python: str, *names: str) -> bool:
    return (
        subprocess.run([python, "-I", "-c", f"import {', '.join(names)}"], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.timeout(300)
def test_added_gone_back_from_removed_and_made_anew(chosen: ChosenImage) -> None:
    shipped = chosen.find()
    added = chosen.add(("extra",), silent)
    assert chosen.find() == added
    assert added.digest != shipped.digest
    assert imports(added.python, "extra", "below", "shipped")
    assert chosen.additions.requirements == ("extra",)
    assert chosen.use(shipped.digest) == chosen.find() == shipped
    assert chosen.use("tiny") == chosen.find() == added
    assert [one.digest for one in chosen.built()] == [added.digest, shipped.digest]
    # Who looks later finds what was written down, and builds nothing.
    told: list[str] = []
    assert chosen.build(told.append) == added
    assert told == []
    assert chosen.remove(("Extra",), silent) == chosen.find() == shipped
    anew = chosen.rebuild(silent)
    assert chosen.find() == anew != shipped
    assert chosen.use(shipped.digest) == shipped, "the one before stays"


@pytest.mark.parametrize("impossible", ["nosuchthing", "newer", "extra==9.9"])
def test_what_cannot_be_had_changes_nothing(chosen: ChosenImage, impossible: str) -> None:
    before = chosen.find(), chosen.additions
    with pytest.raises(SandboxUnavailable, match=rf"(?s){impossible}.*the image stays as it is"):
        chosen.add((impossible,), silent)
    assert (chosen.find(), chosen.additions) == before


@pytest.mark.parametrize(
    "wrong", ["--index-url=x", "a b", "../x", "extra>=1", "", "x" * 200, "git+https://example.com/x"]
)
def test_what_is_no_name_is_refused(chosen: ChosenImage, wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="not a package"):
        chosen.add((wrong,), silent)


def test_what_is_shipped_can_be_neither_added_nor_removed(chosen: ChosenImage) -> None:
    with pytest.raises(InvalidRequest, match=r"shipped 1\.0 is in the image as it is shipped"):
        chosen.add(("shipped==2.0",), silent)
    with pytest.raises(NotFound, match="shipped is shipped with the image and stays; what can be removed: nothing"):
        chosen.remove(("shipped",), silent)
    with pytest.raises(NotFound, match="other was never added"):
        chosen.remove(("other",), silent)


def test_an_image_that_is_not_there_is_not_used_and_those_there_are_are_named(chosen: ChosenImage) -> None:
    known = chosen.built()[0].digest
    for wrong in ("abc", "other-abc"):
        with pytest.raises(NotFound, match=f"no built image is called '{wrong}'; there are: tiny .*{known}"):
            chosen.use(wrong)
    with pytest.raises(NotFound):
        chosen.use("")
    before = chosen.chosen
    chosen._write("in-use", "abc")
    with pytest.raises(NotFound, match=r"image tiny abc, chosen by .* `workbench image use tiny`"):
        chosen.find()
    chosen._write("in-use", before)


def test_pins_are_read_of_lines_that_pin() -> None:
    lock = "# x\nA_b==1.0 ; python_version < '3.12' \\\n    --hash=sha256:0\n    # via x\nc==2\nd==3 --hash=sha256:1\n"
    assert pins_of(lock) == {"a-b": "1.0", "c": "2", "d": "3"}
