"""What `workbench doctor` makes of a machine that refuses."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from workbench.doctor import examine as examine_module
from workbench.doctor import remedies
from workbench.errors import IsolationTooWeak
from workbench.model.image import Image

_IMAGE = Image(name="i", digest="d", python="/srv/image/bin/python", roots=(), preload=())


async def test_apparmor_is_told_of_the_interpreter_that_makes_the_namespace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The host's own, by the path that AppArmor sees, and not a link in a virtual environment."""
    link = tmp_path / "python"
    link.symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "switch").write_text("1")
    monkeypatch.setattr(sys, "executable", str(link))
    monkeypatch.setattr(remedies, "_APPARMOR_SYSCTL", tmp_path / "switch")
    monkeypatch.setattr(examine_module, "find_image", lambda *_: _IMAGE)

    @asynccontextmanager
    async def refused(image: Image, _work_dir: Path) -> AsyncIterator[Image]:
        if image is _IMAGE:
            raise IsolationTooWeak("no", {"step": "make a user namespace", "error": "EPERM"})
        yield image

    monkeypatch.setattr(examine_module, "started_engine", refused)
    found = await examine_module.examine(tmp_path, tmp_path)
    assert found.level == "none"
    assert f"profile workbench {os.path.realpath(link)} flags=(unconfined)" in found.findings[-1].remedy
