"""`workbench serve` as programs and people start it; what the server does then is in tests/server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace

import pytest
from tests.docs.server_process import serving
from tests.host.conftest import settings
from tests.host.support import WAIT_S, eventually, host_pids, output_of, run_folders, workbench

from workbench.settings import Settings

__all__ = ["settings"]


def embedded(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "workbench", "serve", "--embedded", *arguments],
        env={**os.environ, **settings.to_env()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def greeting(process: subprocess.Popen[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    told: dict[str, str] = json.loads(process.stdout.readline())
    return told


def status(url: str, key: str) -> int:
    request = urllib.request.Request(f"{url}/v1/sessions", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        code: int = answer.status
    return code


def test_an_embedded_server_ends_with_its_input_together_with_its_host_and_its_key(settings: Settings) -> None:
    process = embedded(settings)
    told = greeting(process)
    assert told["url"].startswith("http://127.0.0.1:")
    assert status(told["url"], told["key"]) == 200
    assert host_pids(settings)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert run_folders(settings) == []
    assert host_pids(settings) == []
    (key,) = json.loads(output_of(workbench(settings, "keys", "list", "--json"))[1])
    assert key["revoked_at"]


def test_an_embedded_server_leaves_a_host_alone_that_it_did_not_start(settings: Settings) -> None:
    assert output_of(workbench(settings, "exec", "-s", "mine", "x = 5"))[0] == 0
    process = embedded(settings)
    greeting(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_S)
    assert output_of(workbench(settings, "exec", "-s", "mine", "x")) == (0, "5\n", "")


def test_a_server_whose_input_ends_while_the_host_starts_leaves_nothing(settings: Settings) -> None:
    process = embedded(settings)
    eventually(lambda: (settings.data_dir / "host.log").exists(), "the host is being started")
    process.communicate(timeout=WAIT_S * 2)
    assert run_folders(settings) == []
    assert host_pids(settings) == []


def test_a_data_folder_that_is_kept_is_not_removed_as_one_that_a_killed_server_left(settings: Settings) -> None:
    settings.data_dir.mkdir()
    (settings.data_dir / "mine").write_text("kept")
    code, out, err = output_of(workbench(settings, "host", "stop", "--and-remove"))
    assert (code, out) == (125, "")
    assert "not a temporary data folder" in err
    assert (settings.data_dir / "mine").read_text() == "kept"


def test_a_host_whose_server_is_gone_before_it_starts_does_not_start(settings: Settings) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait(WAIT_S)
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "host", "run"],
        env={**os.environ, **settings.host_env(), "OPEN_WORKBENCH_HOST_ENDS_WITH": f"{gone.pid}:1"},
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert not settings.data_dir.exists()


def test_a_second_server_at_the_same_port_is_told_which_setting_to_change(settings: Settings) -> None:
    with serving(settings) as server:
        port = server.url.rpartition(":")[2]
        code, out, err = output_of(workbench(settings, "serve", "--port", port))
    assert (code, out) == (125, "")
    assert "WORKBENCH_LISTEN_PORT" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--host", "0.0.0.0"), 125, "WORKBENCH_ALLOW_PLAIN_HTTP"),
        (("--tls-cert", "/nonexistent.pem"), 125, "WORKBENCH_TLS_KEY"),
        (("--port", "many"), 125, "from 0 to 65535"),
        (("--public-url", "example.com"), 125, "like https://"),
        (("--embedded", "--port", "1"), 2, "takes no other option"),
        (("--temporary",), 2, "--embedded"),
        (("--embedded", "--temporary", "--data-dir", "/usr"), 2, "must be an empty folder"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    settings: Settings, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found, out, err = output_of(workbench(settings, "serve", *arguments))
    assert (found, out) == (code, "")
    assert words in err
    assert not settings.data_dir.exists()


def test_a_server_that_may_start_no_host_says_so(settings: Settings) -> None:
    alone = replace(settings, start_host=False)
    code, out, err = output_of(workbench(alone, "exec", "1"))
    assert (code, out) == (125, "")
    assert err.startswith("error: ")
    assert host_pids(settings) == []
