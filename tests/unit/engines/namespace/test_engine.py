"""The watchdogs go on looking, whatever one look meets and however long another takes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from workbench.engines.namespace import engine as engine_module
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.options import EngineOptions
from workbench.model.image import Image

_LOOKS = ("_look_at_limits", "_look_at_files", "_retire_zygotes")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NamespaceEngine:
    """Not started; looks a thousand times a second."""
    for name in ("WATCH_INTERVAL_S", "FILES_INTERVAL_S", "ZYGOTES_INTERVAL_S"):
        monkeypatch.setattr(engine_module, name, 0.001)
    image = Image(name="i", digest="d", python="/no/python", roots=(), preload=())
    options = EngineOptions(
        image=image,
        run_dir=tmp_path,
        files_root=tmp_path,
        packages_root=tmp_path / "packages",
        group_name="g",
        pool_size=0,
    )
    return NamespaceEngine(options)


async def _nothing() -> None:
    pass


@pytest.mark.parametrize("failing", _LOOKS)
async def test_a_look_that_fails_is_logged_and_the_next_one_follows(
    engine: NamespaceEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: str
) -> None:
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            engine._stopping.set()
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "a name that is no text")

    for name in _LOOKS:
        monkeypatch.setattr(engine, name, look if name == failing else _nothing)
    engine._watch()
    await asyncio.wait_for(asyncio.gather(*engine._watching), 10)
    assert looks == 3
    assert caplog.text.count("a look at the sandboxes failed") == 3


async def test_files_that_take_long_to_count_do_not_put_off_the_look_at_memory(
    engine: NamespaceEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, let_go = threading.Event(), threading.Event()

    def count() -> None:
        counting.set()
        let_go.wait(10)

    async def look_at_files(_sandboxes: object) -> list[object]:
        await asyncio.to_thread(count)
        return []

    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += counting.is_set() and not let_go.is_set()
        if looks == 5:
            engine._stopping.set()
            let_go.set()

    monkeypatch.setattr(engine._files_watch, "look", look_at_files)
    monkeypatch.setattr(engine, "_look_at_limits", look)
    monkeypatch.setattr(engine, "_retire_zygotes", _nothing)
    engine._watch()
    await asyncio.wait_for(asyncio.gather(*engine._watching), 20)
    assert looks == 5, "five looks at memory while one at files went on"
