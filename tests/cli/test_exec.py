"""`workbench exec` as a user meets it: a real process, a real host, its output and its exit code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from tests.host.conftest import settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

pytestmark = pytest.mark.isolation
__all__ = ["settings"]


def run(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    return output_of(workbench(settings, "exec", *arguments))


def test_the_first_exec_starts_a_host_and_the_second_finds_it(settings: Settings) -> None:
    assert output_of(workbench(settings, "host", "status"))[0] == 1
    assert run(settings, "print(6 * 7)") == (0, "42\n", "")
    code, first, _ = output_of(workbench(settings, "host", "status"))
    assert code == 0
    assert run(settings, "import pandas; print(pandas.Series([1, 3]).mean())") == (0, "2.0\n", "")
    assert output_of(workbench(settings, "host", "status"))[1].split()[1] == first.split()[1]
    assert output_of(workbench(settings, "host", "stop"))[0] == 0
    assert output_of(workbench(settings, "host", "stop"))[0] == 125


def test_exit_codes_say_what_happened(settings: Settings) -> None:
    assert run(settings, "import sys; sys.exit(3)")[0] == 3
    assert run(settings, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")[0] == 128 + 9
    code, out, err = run(settings, "print('before', flush=True); 1/0")
    assert (code, out) == (1, "before\n")
    assert [line.strip() for line in err.splitlines()[1:]] == [
        'File "<code>", line 1, in <module>',
        "print('before', flush=True); 1/0",
        "~^~",
        "ZeroDivisionError: division by zero",
    ]


def test_a_time_limit_is_kept_and_told_even_against_code_that_ignores_signals(settings: Settings) -> None:
    deaf = "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)"
    stubborn = f"{deaf}\nprint('x', flush=True)\ntime.sleep(99)"
    code, out, err = run(settings, "--timeout", "0.5", stubborn)
    assert (code, out) == (124, "x\n")
    assert "time limit of 0.5 s reached" in err


def test_a_limit_that_was_met_is_named_with_the_next_step(settings: Settings) -> None:
    code, _, err = run(settings, "x = bytearray(3 << 30)\nfor n in range(0, len(x), 4096): x[n] = 1")
    assert code != 0
    assert "limit met: out of memory; --tier chooses a larger size" in err


def test_wrong_input_is_refused_in_one_line(settings: Settings) -> None:
    assert run(settings)[0] == 2
    assert run(settings, "--tier", "huge", "1")[0] == 2
    assert run(settings, "--env", "novalue", "1")[0] == 2
    code, _, err = run(settings, "--files", "../etc", "1")
    assert (code, err.count("\n")) == (125, 1)
    assert "not a mount id" in err


def test_code_comes_from_a_file_or_standard_input_and_variables_reach_it(settings: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "exec", "-e", "WHO=you", "-f", "-"],
        input=b"import os; print('hello', os.environ['WHO'])",
        env={**os.environ, **settings.to_env()}, capture_output=True, timeout=120, check=True)  # fmt: skip
    assert done.stdout == b"hello you\n"


def test_an_interrupt_reaches_the_code_and_its_output_is_kept(settings: Settings) -> None:
    code = "import time\nprint('go', flush=True)\ntry: time.sleep(99)\nexcept KeyboardInterrupt: print('stopped')"
    command = workbench(settings, "exec", code)
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(signal.SIGINT)
    eventually(lambda: command.poll() is not None, "it ends")
    out, _ = command.communicate()
    assert (command.returncode, out) == (0, b"stopped\n")


def test_a_misspelt_setting_is_refused_before_anything_starts(settings: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "exec", "1"],
        env={**os.environ, **settings.to_env(), "WORKBENCH_POOLSIZE": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 125
    assert b"did you mean WORKBENCH_POOL_SIZE?" in done.stderr
    assert not settings.data_dir.exists()


def test_a_reader_that_comes_late_gets_every_byte(settings: Settings) -> None:
    command = workbench(settings, "exec", "for n in range(1_000_000): print('line', n)")
    assert command.stdout is not None
    assert command.stdout.read(1) == b"l"
    with contextlib.suppress(subprocess.TimeoutExpired):
        # The code ends within this time; what it printed waits for us, in a pipe and in the spool.
        command.wait(6)
    rest = command.stdout.read()
    assert b"l" + rest == b"".join(b"line %d\n" % n for n in range(1_000_000))
    output_of(command)
    assert command.returncode == 0


def test_a_reader_that_has_seen_enough_ends_the_code_without_noise(settings: Settings) -> None:
    command = workbench(settings, "exec", "import time\nwhile True: print('x' * 1000)")
    assert command.stdout is not None
    command.stdout.read(10)
    command.stdout.close()
    eventually(lambda: command.poll() is not None, "it ends")
    assert command.stderr is not None
    said = command.stderr.read().decode()
    command.stderr.close()
    assert command.returncode == 128 + 15
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_ends_its_sandbox(settings: Settings, number: signal.Signals) -> None:
    command = workbench(settings, "exec", "import time; print('go', flush=True); time.sleep(1000)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(number)
    assert output_of(command)[0] == 128 + 15
    status = json.loads(output_of(workbench(settings, "host", "status", "--json"))[1])
    assert status[0]["sandboxes"] == 0


def test_a_sandbox_that_someone_left_can_be_seen_resized_and_closed(settings: Settings) -> None:
    command = workbench(settings, "exec", "import time; print('go', flush=True); time.sleep(1000)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.kill()
    output_of(command)
    sandbox = re.findall(r"sb-[0-9a-f]+", output_of(workbench(settings, "host", "status"))[1])[0]
    assert output_of(workbench(settings, "host", "tier", sandbox, "medium")) == (0, f"{sandbox} is medium\n", "")
    assert output_of(workbench(settings, "host", "close", sandbox))[0] == 0
    code, _, err = output_of(workbench(settings, "host", "close", sandbox))
    assert code == 125
    assert "no sandbox" in err
