"""`workbench exec` as a user meets it: a real process, a real host, its output and its exit code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.one_host import settings, shared_settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

pytestmark = pytest.mark.isolation
__all__ = ["settings", "shared_settings"]


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
    assert run(settings, "import sys; sys.exit()")[0] == 0
    code, _, err = run(settings, "import sys; sys.exit('no such file')")
    assert code == 1
    assert "no such file" in err.splitlines()
    code, out, err = run(settings, "print('before'); import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (code, out) == (126, "before\n")
    assert "killed by signal 9" in err
    code, out, err = run(settings, "print('before', flush=True); 1/0")
    assert (code, out) == (1, "before\n")
    assert err.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "----> 1 print('before', flush=True); 1/0" in err
    assert "workbench" not in err


def test_the_last_value_is_printed_as_in_a_notebook(settings: Settings) -> None:
    assert run(settings, "print('said'); 6 * 7") == (0, "said\n42\n", "")
    assert run(settings, "x = 1") == (0, "", "")
    code, out, err = run(settings, "import matplotlib.pyplot as plt; plt.plot([1, 2]); None")
    assert (code, out) == (0, "")
    assert re.fullmatch(r"\[workbench\] image/png, \d+x\d+, \d+ KB; --json has it\n", err)


def test_a_program_that_draws_has_the_fonts_of_the_image_and_nothing_to_say(settings: Settings) -> None:
    code, out, err = run(settings, "!python -c 'import matplotlib.pyplot' && ls -l ~/.config/matplotlib")
    assert (code, err) == (0, "")
    assert re.search(r"fontlist-\S+ -> /\S+/matplotlib/fontlist-", out)
    assert "not a writable directory" not in out


def test_libraries_are_not_imported_beforehand_where_a_setting_says_so(settings: Settings) -> None:
    assert not settings.preload
    assert run(settings, "import sys; 'pandas' in sys.modules") == (0, "False\n", "")


@pytest.mark.long
def test_libraries_are_imported_beforehand(settings: Settings, short_dir: Path) -> None:
    mine = replace(settings, data_dir=short_dir / "data", preload=True)
    try:
        assert run(mine, "import sys; 'pandas' in sys.modules") == (0, "True\n", "")
    finally:
        assert output_of(workbench(mine, "host", "stop"))[0] == 0


def test_json_is_one_object_with_the_whole_result(settings: Settings) -> None:
    code, out, _ = run(settings, "--json", "print('said'); import sys; print('warned', file=sys.stderr); 6 * 7")
    told = json.loads(out)
    assert code == 0
    assert (told["outcome"], told["results"], told["stdout"], told["stderr"]) == ("ok", "42", "said\n", "warned\n")
    assert told["session"] is None
    assert (told["receipt"]["epoch"], told["receipt"]["state"]) == (1, "intact")
    code, out, _ = run(settings, "--json", "1/0")
    told = json.loads(out)
    assert (code, told["outcome"], told["error"]["name"]) == (1, "raised", "ZeroDivisionError")


def test_a_named_session_keeps_its_variables_and_files_and_a_fresh_one_leaves_nothing(settings: Settings) -> None:
    assert run(settings, "-s", "mine", "x = 5; open('/mnt/files/a', 'w').write('kept')") == (0, "4\n", "")
    assert run(settings, "-s", "mine", "x, open('/mnt/files/a').read()") == (0, "(5, 'kept')\n", "")
    code, _, err = run(settings, "x")
    assert code == 1
    assert "NameError: name 'x' is not defined" in err
    listed = json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])
    assert [one["session"] for one in listed] == ["mine"]
    assert [path.name for path in (settings.data_dir / "files").iterdir()] == ["mine"]
    assert [path.name for path in (settings.data_dir / "mounts").iterdir()] == ["mine.lock"]


def test_options_that_would_have_no_effect_on_a_session_are_refused(settings: Settings) -> None:
    assert run(settings, "-s", "mine", "--env", "A=b", "--cwd", "/mnt/files/w", "1")[0] == 0
    out = run(settings, "-s", "mine", "--env", "A=b", "import os; os.environ['A'], os.getcwd()")[1]
    assert out == "('b', '/mnt/files/w')\n"
    for options in (("--tier", "large"), ("--env", "A=c"), ("--cwd", "/tmp")):
        code, _, err = run(settings, "-s", "mine", *options, "1")
        assert (code, err.count("\n")) == (125, 1)


def test_a_host_that_is_killed_costs_the_variables_and_says_so(settings: Settings) -> None:
    run(settings, "-s", "mine", "x = 5; open('/mnt/files/a', 'w').write('kept')")
    command = workbench(settings, "exec", "-s", "mine", "import time; print('go', flush=True); time.sleep(99)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    status = json.loads(output_of(workbench(settings, "host", "status", "--json"))[1])
    os.kill(status[0]["pid"], signal.SIGKILL)
    code, _, err = output_of(command)
    assert code == 126
    assert "the workbench host that it lived in has ended" in err
    code, out, err = run(settings, "-s", "mine", "open('/mnt/files/a').read(), 'x' in dir()")
    assert (code, out) == (0, "('kept', False)\n")
    told = json.loads(output_of(workbench(settings, "sessions", "show", "mine", "--json"))[1])
    assert (told["epoch"], told["state"]) == (2, "idle")


def test_a_host_that_ended_between_two_cells_is_told_with_the_next(settings: Settings) -> None:
    run(settings, "-s", "mine", "x = 5")
    assert output_of(workbench(settings, "host", "stop"))[0] == 0
    described = json.loads(output_of(workbench(settings, "sessions", "show", "mine", "--json"))[1])
    assert described["state"] == "lost"
    code, out, err = run(settings, "-s", "mine", "6 * 7")
    assert (code, out) == (0, "42\n")
    assert err.startswith("[workbench] variables lost, now epoch 2: ")
    assert run(settings, "-s", "mine", "1") == (0, "1\n", "")


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
    assert from_stdin(settings, b"").returncode == 2
    assert from_stdin(settings, b"\xff").returncode == 2
    assert run(settings, "--tier", "huge", "1")[0] == 2
    assert run(settings, "--env", "novalue", "1")[0] == 2
    for wrong in (("-s", "../etc", "1"), ("-s", "tmp-x", "1"), ("--timeout", "1e9", "1"), ("--cwd", "here", "1")):
        code, out, err = run(settings, *wrong)
        assert (code, out, err.count("\n")) == (125, "", 1)
    assert output_of(workbench(settings, "sessions", "ls", "--json"))[1] == "[]\n"


def test_code_comes_from_a_file_or_standard_input_and_variables_reach_it(settings: Settings) -> None:
    code = b"import os; print('hello', os.environ['WHO'])"
    for options in (("-f", "-"), ()):
        assert from_stdin(settings, code, "-e", "WHO=you", *options).stdout == b"hello you\n"


def from_stdin(settings: Settings, code: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "workbench", "exec", *arguments],
        input=code, env={**os.environ, **settings.to_env()}, capture_output=True, timeout=120, check=False)  # fmt: skip


def test_an_interrupt_reaches_the_code_and_its_output_is_kept(settings: Settings) -> None:
    code = "import time\nprint('go', flush=True)\ntry: time.sleep(99)\nexcept KeyboardInterrupt: print('stopped')"
    command = workbench(settings, "exec", code)
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(signal.SIGINT)
    assert output_of(command)[:2] == (0, "stopped\n")
    assert run(settings, "-s", "mine", "x = 5")[0] == 0
    command = workbench(settings, "exec", "-s", "mine", "import time; print('go', flush=True); time.sleep(99)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(signal.SIGINT)
    ended, _, err = output_of(command)
    assert ended == 130
    assert "KeyboardInterrupt" in err
    assert run(settings, "-s", "mine", "x") == (0, "5\n", "")


def test_an_interrupt_of_a_cell_that_waits_takes_it_out_of_the_queue(settings: Settings) -> None:
    first = workbench(settings, "exec", "-s", "mine", "import time; print('go', flush=True); time.sleep(99)")
    assert first.stdout is not None
    assert first.stdout.readline() == b"go\n"
    second = workbench(settings, "exec", "-s", "mine", "print('never')")
    eventually(lambda: len(queue(settings)) == 2, "it waits")
    second.send_signal(signal.SIGINT)
    code, out, err = output_of(second)
    assert (code, out) == (130, "")
    assert "out of the queue" in err
    assert [one["running"] for one in queue(settings)] == [True]
    first.send_signal(signal.SIGINT)
    assert output_of(first)[0] == 130


def queue(settings: Settings) -> list[dict[str, object]]:
    told = output_of(workbench(settings, "sessions", "queue", "mine", "--json"))[1]
    return list(json.loads(told)) if told else []


def test_a_second_interrupt_stops_the_waiting_and_the_cell_goes_on(settings: Settings) -> None:
    # Deaf from its first word on, wherever the interrupt meets it.
    deaf = "import time\nword = 'go'\nwhile True:\n try:\n  if word: print(word, flush=True); word = ''\n"
    deaf += "  time.sleep(99)\n except KeyboardInterrupt: word = 'no'"
    command = workbench(settings, "exec", "-s", "mine", deaf)
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(signal.SIGINT)
    assert command.stdout.readline() == b"no\n"
    command.send_signal(signal.SIGINT)
    code, _, err = output_of(command)
    assert code == 130
    assert "`workbench sessions interrupt mine`" in err
    assert [one["running"] for one in queue(settings)] == [True]


def test_a_misspelt_setting_is_refused_before_anything_starts(settings: Settings, short_dir: Path) -> None:
    settings = replace(settings, data_dir=short_dir / "data")
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
    command = workbench(settings, "exec", "for n in range(200_000): print('line', n)")
    assert command.stdout is not None
    assert command.stdout.read(1) == b"l"
    with contextlib.suppress(subprocess.TimeoutExpired):
        # The code ends within this time; what it printed waits for us, in a pipe and in the spool.
        command.wait(6)
    rest = command.stdout.read()
    assert b"l" + rest == b"".join(b"line %d\n" % n for n in range(200_000))
    output_of(command)
    assert command.returncode == 0


def test_a_reader_that_stands_still_keeps_neither_the_limit_nor_an_end_from_working(settings: Settings) -> None:
    command = workbench(settings, "exec", "-s", "mine", "--timeout", "1", "while True: print('x' * 1000)")
    assert command.stdout is not None
    assert command.stdout.read(1) == b"x"
    eventually(lambda: not queue(settings), "the limit ends the cell")
    command.send_signal(signal.SIGTERM)
    eventually(lambda: command.poll() is not None, "it ends although nobody reads")
    assert output_of(command)[0] == 128 + 15


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
    assert output_of(workbench(settings, "sessions", "ls", "--json"))[1] == "[]\n"


def test_a_sandbox_that_someone_left_can_be_seen_resized_and_closed(settings: Settings) -> None:
    command = workbench(settings, "exec", "import time; print('go', flush=True); time.sleep(1000)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.kill()
    output_of(command)
    sandbox = re.findall(r"sb-[0-9a-f]+", output_of(workbench(settings, "host", "status"))[1])[0]
    assert output_of(workbench(settings, "host", "tier", sandbox, "medium")) == (0, f"{sandbox} is medium\n", "")
    name = json.loads(output_of(workbench(settings, "sessions", "ls", "--json"))[1])[0]["session"]
    assert output_of(workbench(settings, "host", "close", sandbox))[0] == 0
    assert output_of(workbench(settings, "sessions", "rm", name)) == (0, "", "")
    code, _, err = output_of(workbench(settings, "host", "close", sandbox))
    assert code == 125
    assert "no sandbox" in err
