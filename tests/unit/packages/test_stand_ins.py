"""Builds that only the image has can be planned with."""

from __future__ import annotations

import zipfile
from pathlib import Path

from workbench.packages.stand_ins import stand_in_for_local_builds


def _has(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: sympy\n\nText\n"
    (folder / "METADATA").write_text(told, encoding="utf-8")


def test_what_no_index_has_gets_one_that_tells_what_it_needs(tmp_path: Path) -> None:
    _has(tmp_path / "site", "Own_Build", "2.13.0+cpu")
    _has(tmp_path / "site", "sympy", "1.13")
    folder = stand_in_for_local_builds([tmp_path / "site"], tmp_path / "kept")
    assert folder is not None
    (wheel,) = folder.iterdir()
    assert wheel.name == "own_build-2.13.0+cpu-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as opened:
        told = opened.read("own_build-2.13.0+cpu.dist-info/METADATA").decode()
    assert "Requires-Dist: sympy\n" in told
    before = wheel.stat().st_mtime_ns
    assert stand_in_for_local_builds([tmp_path / "site"], tmp_path / "kept") == folder
    assert wheel.stat().st_mtime_ns == before


def test_what_the_index_has_needs_none(tmp_path: Path) -> None:
    _has(tmp_path / "site", "sympy", "1.13")
    assert stand_in_for_local_builds([tmp_path / "site"], tmp_path / "kept") is None
    assert not (tmp_path / "kept").exists()
