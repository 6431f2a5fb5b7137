"""Settings: read once, refused when misspelt or out of range."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.errors import InvalidSetting
from workbench.mcp.families import Family, chosen_families
from workbench.model.capability import Level
from workbench.services.opening import ENGINES, PROVIDERS
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
            "WORKBENCH_FETCH_ALLOW": "10.1.2.0/24, fd00:1::5",
            "WORKBENCH_TOOLKITS_ALLOW": "10.1.2.0/24, jira.corp.example",
            "WORKBENCH_FILES_URL": "s3://bucket/some/where/",
            "WORKBENCH_FILES_ENDPOINT": "http://127.0.0.1:9000",
            "WORKBENCH_FILES_ACCESS_KEY": "key",
            "WORKBENCH_FILES_SECRET_KEY": "s3cret/with+signs=",
            "WORKBENCH_FILES_SESSION_TOKEN": "token",
            "WORKBENCH_LLM_PROVIDER": "openai",
            "WORKBENCH_LLM_URL": "https://models.example/v1/",
            "WORKBENCH_LLM_KEY": "sk-1",
            "WORKBENCH_LLM_MODEL": "openai/gpt-oss-120b",
            "WORKBENCH_LLM_TIMEOUT_S": "30",
            "WORKBENCH_LLM_MAX_TOKENS": "100",
            "WORKBENCH_SEARCH_ENGINE": "searxng",
            "WORKBENCH_SEARCH_URL": "http://127.0.0.1:8888",
            "WORKBENCH_SEARCH_KEY": "s-1",
        }
    )
    assert Settings.from_env(settings.to_env()) == settings
    assert Settings.from_env(Settings.from_env({}).to_env()) == Settings.from_env({})


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
        ("WORKBENCH_FILES_URL", "https://bucket", "like s3://bucket/prefix"),
        ("WORKBENCH_FILES_URL", "s3://", "like s3://bucket/prefix"),
        ("WORKBENCH_FILES_URL", "s3://bucket/../x", "like s3://bucket/prefix"),
        ("WORKBENCH_FILES_ENDPOINT", "s3.example.com", "like https://"),
        ("WORKBENCH_LISTEN_HOST", "http://0.0.0.0", "an address or a host name"),
        ("WORKBENCH_LISTEN_HOST", "", "an address or a host name"),
        ("WORKBENCH_LISTEN_PORT", "65536", "from 0 to 65535"),
        ("WORKBENCH_PUBLIC_URL", "workbench.example.com", "like https://"),
        ("WORKBENCH_PUBLIC_URL", "https://a.example:port", "like https://"),
        ("WORKBENCH_PUBLIC_URL", "https://key@a.example", "like https://"),
        ("WORKBENCH_LINKS_URL", "files.example.com", "like https://"),
        ("WORKBENCH_TLS_CERT", "cert.pem", "absolute path"),
        ("WORKBENCH_ALLOW_PLAIN_HTTP", "yes", "one of true, false"),
        ("WORKBENCH_TRUSTED_PROXIES", "127.0.0.1, proxy", "not 'proxy'"),
        ("WORKBENCH_FETCH_ALLOW", "10.0.0.0/8, intranet", "not 'intranet'"),
        ("WORKBENCH_FETCH_ALLOW", "10.0.0.1/8", "not '10.0.0.1/8'"),
        ("WORKBENCH_TOOLKITS_ALLOW", "jira.corp.example, 10.0.0.1/8", "not '10.0.0.1/8'"),
        ("WORKBENCH_TOOLKITS_ALLOW", "https://jira.example", "not 'https://jira.example'"),
        ("WORKBENCH_TOOLKITS_ALLOW", "10.0.0.300", "not '10.0.0.300'"),
        ("WORKBENCH_MAX_BODY_MIB", "0", "from 1 to 1024"),
        ("WORKBENCH_MCP_TOOLS", "workbench,all", "workbench, sandbox, kernel, router, by commas, or `all`"),
        ("WORKBENCH_MCP_TOOLS", " , ", "by commas"),
        ("WORKBENCH_FREEZE_AFTER_S", "soon", "from 0 to"),
        ("WORKBENCH_END_AFTER_S", "-1", "from 0 to"),
        ("WORKBENCH_KEEP_CELLS_DAYS", "x", "from 0 to 36500"),
        ("WORKBENCH_KEEP_AUDIT_DAYS", "x", "from 0 to 36500"),
        ("WORKBENCH_MEMORY_RESERVE_PERCENT", "91", "from 0 to 90"),
        ("WORKBENCH_LLM_PROVIDER", "gemini", "one of openai, anthropic, local, not 'gemini'"),
        ("WORKBENCH_LLM_URL", "api.example.com/v1", "like https://"),
        ("WORKBENCH_LLM_URL", "https://user:password@api.example.com", "like https://"),
        ("WORKBENCH_LLM_KEY", "sk-1\n", "one word"),
        ("WORKBENCH_LLM_MODEL", " m", "one word"),
        ("WORKBENCH_LLM_TIMEOUT_S", "0", "from 1 to 3600"),
        ("WORKBENCH_LLM_MAX_TOKENS", "0", "from 1 to 1000000"),
        ("WORKBENCH_SEARCH_ENGINE", "altavista", "one of searxng, brave, tavily, exa, duckduckgo, wikipedia, not"),
        ("WORKBENCH_SEARCH_URL", "searx", "like https://"),
        ("WORKBENCH_SEARCH_KEY", "s\t1", "one word"),
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


def test_credentials_of_an_object_store_are_in_no_error_no_repr_and_no_host() -> None:
    with pytest.raises(InvalidSetting) as caught:
        Settings.from_env({"WORKBENCH_FILES_SECRET_KEY": " hunter2"})
    assert "hunter2" not in caught.value.message
    given = {
        "WORKBENCH_FILES_URL": "s3://my-bucket/x",
        "WORKBENCH_FILES_ACCESS_KEY": "hunter1",
        "WORKBENCH_FILES_SECRET_KEY": "hunter2",
        "WORKBENCH_FILES_SESSION_TOKEN": "hunter3",
    }
    settings = Settings.from_env(given)
    assert not any(secret in repr(settings) for secret in ("hunter2", "hunter3"))
    assert "hunter" not in str(settings.host_env())
    assert Settings.from_env(settings.host_env()).files_url == ""


def test_what_is_not_set_for_an_object_store_comes_from_the_variables_of_amazon() -> None:
    amazon = {
        "AWS_ACCESS_KEY_ID": "theirs",
        "AWS_SECRET_ACCESS_KEY": "their secret's",
        "AWS_SESSION_TOKEN": "their token",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "https://s3.example.com",
    }
    settings = Settings.from_env({"WORKBENCH_FILES_URL": "s3://bucket", **amazon})
    assert (settings.files_access_key, settings.files_session_token) == ("theirs", "their token")
    assert (settings.files_region, settings.files_endpoint) == ("eu-central-1", "https://s3.example.com")
    ours = {"WORKBENCH_FILES_ACCESS_KEY": "ours", "WORKBENCH_FILES_SECRET_KEY": "our-secret"}
    settings = Settings.from_env({"WORKBENCH_FILES_URL": "s3://bucket", **ours, **amazon})
    assert (settings.files_access_key, settings.files_secret_key) == ("ours", "our-secret")
    assert settings.files_session_token == ""
    # Without a bucket nobody asks for them.
    assert Settings.from_env(amazon).files_access_key == ""


def test_keys_of_services_are_in_no_error_no_repr_and_no_host() -> None:
    for name in ("WORKBENCH_LLM_KEY", "WORKBENCH_SEARCH_KEY"):
        with pytest.raises(InvalidSetting) as caught:
            Settings.from_env({name: "hunter2 "})
        assert "hunter2" not in caught.value.message
    given = {
        "WORKBENCH_LLM_PROVIDER": "openai",
        "WORKBENCH_LLM_URL": "https://models.example/hunter4",
        "WORKBENCH_LLM_KEY": "hunter2",
        "WORKBENCH_LLM_MODEL": "hunter4",
        "WORKBENCH_SEARCH_ENGINE": "searxng",
        "WORKBENCH_SEARCH_URL": "https://search.example/hunter4",
        "WORKBENCH_SEARCH_KEY": "hunter3",
    }
    settings = Settings.from_env(given)
    assert not any(secret in repr(settings) for secret in ("hunter2", "hunter3"))
    assert "hunter" not in str(settings.host_env())
    assert Settings.from_env(settings.host_env()).llm_provider == ""
    assert Settings.from_env(settings.host_env()).search_engine == ""


def test_a_key_that_is_not_set_comes_from_the_providers_own_variable() -> None:
    theirs = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-anthropic"}
    assert Settings.from_env({"WORKBENCH_LLM_PROVIDER": "openai", **theirs}).llm_key == "sk-openai"
    assert Settings.from_env({"WORKBENCH_LLM_PROVIDER": "anthropic", **theirs}).llm_key == "sk-anthropic"
    ours = {"WORKBENCH_LLM_PROVIDER": "openai", "WORKBENCH_LLM_KEY": "sk-ours"}
    assert Settings.from_env({**ours, **theirs}).llm_key == "sk-ours"
    # Without a provider nobody asks for them, and a model of this machine needs none.
    assert Settings.from_env(theirs).llm_key == ""
    assert Settings.from_env({"WORKBENCH_LLM_PROVIDER": "local", **theirs}).llm_key == ""
    with pytest.raises(InvalidSetting, match="OPENAI_API_KEY must be one word") as caught:
        Settings.from_env({"WORKBENCH_LLM_PROVIDER": "openai", "OPENAI_API_KEY": "hunter2\n"})
    assert "hunter2" not in caught.value.message


def test_the_services_that_can_be_chosen_are_those_there_are() -> None:
    for one in ("", *PROVIDERS):
        assert Settings.from_env({"WORKBENCH_LLM_PROVIDER": one}).llm_provider == one
    for one in ("", *ENGINES):
        assert Settings.from_env({"WORKBENCH_SEARCH_ENGINE": one}).search_engine == one


@pytest.mark.parametrize("text", [*Family, "all", " Kernel, workbench ,kernel"])
def test_the_families_of_tools_are_those_there_are(text: str) -> None:
    settings = Settings.from_env({"WORKBENCH_MCP_TOOLS": text})
    assert chosen_families(settings.mcp_tools) == chosen_families(text)


def test_a_public_url_has_no_slash_at_its_end() -> None:
    assert Settings.from_env({"WORKBENCH_PUBLIC_URL": "https://a.example/wb/"}).public_url == "https://a.example/wb"
