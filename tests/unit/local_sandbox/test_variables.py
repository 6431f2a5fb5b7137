"""Variables of a box, and the file that they are written to."""

from __future__ import annotations

import subprocess

import pytest

from workbench.errors import InvalidRequest
from workbench.local_sandbox import env_file, variables

ENV = variables(address="http://[::1]:8787/", session="trs_1", mount="m-1", token="wbt_a_b-c_d")


def test_the_address_has_no_slash_at_its_end_and_the_token_is_there_by_both_names() -> None:
    assert ENV == {
        "BACKEND_URL": "http://[::1]:8787",
        "COMPOSIO_TOOLROUTER_SESSION_ID": "trs_1",
        "COMPOSIO_API_KEY": "wbt_a_b-c_d",
        "COMPOSIO_WORKBENCH_ACCESS_KEY": "wbt_a_b-c_d",
        "WORKBENCH_MOUNT_ID": "m-1",
    }


def test_a_shell_reads_from_the_file_what_was_written() -> None:
    script = f"set -a\n{env_file(ENV)}exec env"
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, timeout=30, check=True)
    assert ENV.items() <= dict(line.split("=", 1) for line in done.stdout.splitlines()).items()


@pytest.mark.parametrize("value", ["a b", "a\nB=1", "$(id)", "`id`", "a;b", "'", '"', "a\\b", "#x", "é"])
def test_a_value_that_a_shell_would_read_otherwise_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(InvalidRequest, match="COMPOSIO_API_KEY has characters") as refused:
        env_file({"COMPOSIO_API_KEY": value})
    assert value not in refused.value.message or value == "a"
