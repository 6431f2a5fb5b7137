"""Settings: read once, refused when misspelt or out of range."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.errors import InvalidSetting
from workbench.model.capability import Level
from workbench.settings import Settings


def test_without_variables_everything_has_a_default() -> None:
    settings = Settings.from_env({"HOME": "/home/someone"})
    expected = Path("/var/lib/workbench") if os.geteuid() == 0 else Path("/home/someone/.local/share/workbench")
    assert settings.data_dir == expected
    assert settings.images_dir == expected / "images"
    assert settings.engine == "namespace"
    assert settings.min_level is Level.ISOLATED


def test_settings_survive_the_way_through_an_environment() -> None:
    settings = Settings.from_env(
        {"WORKBENCH_DATA_DIR": "/x", "WORKBENCH_POOL_SIZE": "7", "WORKBENCH_MIN_LEVEL": "strict"}
    )
    assert Settings.from_env(settings.to_env()) == settings


def test_a_misspelt_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidSetting, match="no such setting: WORKBENCH_POOLSIZE; did you mean WORKBENCH_POOL_SIZE"):
        Settings.from_env({"WORKBENCH_POOLSIZE": "3"})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("WORKBENCH_DATA_DIR", "here", "absolute path"),
        ("WORKBENCH_ENGINE", "docker", "one of namespace, process"),
        ("WORKBENCH_MIN_LEVEL", "paranoid", "one of strict, isolated, open"),
        ("WORKBENCH_POOL_SIZE", "-1", "from 0 to 1000"),
        ("WORKBENCH_POOL_SIZE", "\u0663", "from 0 to 1000"),
        ("WORKBENCH_SPOOL_MAX_MIB", "0", "from 1 to"),
        ("WORKBENCH_CELL_LIMIT_MAX_S", "0", "from 1 to 604800"),
        ("WORKBENCH_LOG_LEVEL", "loud", "one of debug"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as caught:
        Settings.from_env({name: value})
    assert name in caught.value.message
