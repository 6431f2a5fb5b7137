"""Wheels of a few bytes, and a pip that finds those and nothing else."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest


def wheel(folder: Path, name: str, version: str, *, requires: tuple[str, ...] = (), code: str = "x = 1\n") -> str:
    """Make one; its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", code)
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def index(folder: Path, name: str, wheels: Path) -> str:
    """A folder laid out like a package index; its address."""
    page = folder / name
    page.mkdir(parents=True)
    links = "".join(f'<a href="{one.as_uri()}">{one.name}</a>' for one in wheels.glob(f"{name}-*.whl"))
    (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    return folder.as_uri()


def configure_pip(monkeypatch: pytest.MonkeyPatch, found_in: Path) -> None:
    """As an operator would, for a machine without any index."""
    found_in.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", (found_in / "no-index").as_uri())
    monkeypatch.setenv("PIP_FIND_LINKS", str(found_in))
