"""Settings: read once, refused when misspelt or out of range."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.errors import InvalidSetting
from workbench.mcp.families import Family, chosen_families
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
        {
            "WORKBENCH_DATA_DIR": "/x",
            "WORKBENCH_POOL_SIZE": "7",
            "WORKBENCH_MIN_LEVEL": "strict",
            "WORKBENCH_ALLOW_PLAIN_HTTP": "true",
            "WORKBENCH_DATABASE_URL": "postgresql://someone:secret@db/records",
            "WORKBENCH_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8",
        }
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
        ("WORKBENCH_DATABASE_URL", "mysql://db", "begin with postgresql://"),
        ("WORKBENCH_LISTEN_HOST", "http://0.0.0.0", "an address or a host name"),
        ("WORKBENCH_LISTEN_HOST", "", "an address or a host name"),
        ("WORKBENCH_LISTEN_PORT", "65536", "from 0 to 65535"),
        ("WORKBENCH_PUBLIC_URL", "workbench.example.com", "like https://"),
        ("WORKBENCH_PUBLIC_URL", "https://a.example:port", "like https://"),
        ("WORKBENCH_PUBLIC_URL", "https://key@a.example", "like https://"),
        ("WORKBENCH_TLS_CERT", "cert.pem", "absolute path"),
        ("WORKBENCH_ALLOW_PLAIN_HTTP", "yes", "one of true, false"),
        ("WORKBENCH_TRUSTED_PROXIES", "127.0.0.1, proxy", "not 'proxy'"),
        ("WORKBENCH_MAX_BODY_MIB", "0", "from 1 to 1024"),
        ("WORKBENCH_MCP_TOOLS", "workbench,all", "workbench, sandbox, kernel, by commas, or `all`"),
        ("WORKBENCH_MCP_TOOLS", " , ", "by commas"),
        ("WORKBENCH_FREEZE_AFTER_S", "soon", "from 0 to"),
        ("WORKBENCH_END_AFTER_S", "-1", "from 0 to"),
        ("WORKBENCH_KEEP_CELLS_DAYS", "x", "from 0 to 36500"),
        ("WORKBENCH_KEEP_AUDIT_DAYS", "x", "from 0 to 36500"),
        ("WORKBENCH_MEMORY_RESERVE_PERCENT", "91", "from 0 to 90"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as caught:
        Settings.from_env({name: value})
    assert name in caught.value.message


def test_the_password_of_a_database_is_in_no_error_no_repr_and_no_host() -> None:
    with pytest.raises(InvalidSetting) as caught:
        Settings.from_env({"WORKBENCH_DATABASE_URL": "mysql://someone:secret@db"})
    assert "secret" not in caught.value.message
    settings = Settings.from_env({"WORKBENCH_DATABASE_URL": "postgresql://someone:secret@db/records"})
    assert "secret" not in repr(settings)
    assert "secret" not in str(settings.host_env())
    assert Settings.from_env(settings.host_env()).database_url == ""


@pytest.mark.parametrize("text", [*Family, "all", " Kernel, workbench ,kernel"])
def test_the_families_of_tools_are_those_there_are(text: str) -> None:
    settings = Settings.from_env({"WORKBENCH_MCP_TOOLS": text})
    assert chosen_families(settings.mcp_tools) == chosen_families(text)


def test_a_public_url_has_no_slash_at_its_end() -> None:
    assert Settings.from_env({"WORKBENCH_PUBLIC_URL": "https://a.example/wb/"}).public_url == "https://a.example/wb"
