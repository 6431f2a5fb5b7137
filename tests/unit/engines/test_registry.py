"""Engines by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.engines.options import EngineOptions
from workbench.engines.registry import KNOWN, make_engine
from workbench.errors import InvalidSetting
from workbench.model.image import Image

OPTIONS = EngineOptions(
    image=Image(name="i", digest="d", python="/no/python", roots=(), preload=()),
    run_dir=Path("/no/run"),
    files_root=Path("/no/files"),
    packages_root=Path("/no/packages"),
    group_name="g",
    pool_size=0,
)


@pytest.mark.parametrize("name", KNOWN)
async def test_an_engine_is_made_by_its_name_and_touches_nothing_yet(name: str) -> None:
    assert make_engine(name, OPTIONS).name == name
    assert not OPTIONS.run_dir.exists()


@pytest.mark.parametrize("name", ["", "Namespace", "docker", "process "])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidSetting, match="namespace, process"):
        make_engine(name, OPTIONS)
