"""The watchdog goes on looking, whatever one look meets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from workbench.engines.namespace import engine as engine_module
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.model.image import Image


async def test_a_look_that_fails_is_logged_and_the_next_one_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine_module, "WATCH_INTERVAL_S", 0.001)
    image = Image(name="i", digest="d", python="/no/python", roots=(), preload=())
    options = EngineOptions(image=image, run_dir=tmp_path, files_root=tmp_path, group_name="g", pool_size=0)
    engine = NamespaceEngine(options)
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            engine._stopping.set()
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "a name that is no text")

    monkeypatch.setattr(engine, "_look_at_sandboxes", look)
    await asyncio.wait_for(engine._watch(), 10)
    assert looks == 3
    assert caplog.text.count("a look at the sandboxes failed") == 3
