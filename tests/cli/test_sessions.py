"""`workbench sessions` and `workbench attach` as a user and a script meet them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.cli.one_host import settings, shared_settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

__all__ = ["settings", "shared_settings"]


def run(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    return output_of(workbench(settings, *arguments))


def sessions(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    return run(settings, "sessions", *arguments)


def told(settings: Settings, *arguments: str) -> Any:
    code, out, err = sessions(settings, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_session_is_made_shown_listed_and_deleted(settings: Settings, tmp_path: Path) -> None:
    start_up = tmp_path / "start.py"
    start_up.write_text("import os\nwho = os.environ['WHO']\n", encoding="utf-8")
    made = sessions(settings, "create", "mine", "--env", "WHO=you", "--tier", "medium", "--cwd", "/mnt/files/work",
                    "--start-up", str(start_up))  # fmt: skip
    assert made == (0, "mine\n", "")
    assert run(settings, "exec", "-s", "mine", "who, os.getcwd()") == (0, "('you', '/mnt/files/work')\n", "")
    shown = told(settings, "show", "mine")
    assert (shown["tier"], shown["state"], shown["epoch"], shown["env"]) == ("medium", "idle", 1, ["WHO"])
    assert shown["memory_bytes"] > 0
    for command in (("ls",), (), ("show", "mine")):
        code, out, err = sessions(settings, *command)
        assert (code, err) == (0, "")
        assert "mine" in out
        assert "you" not in out
    assert sessions(settings, "rm", "mine") == (0, "", "")
    assert told(settings, "ls") == []
    code, _, err = sessions(settings, "rm", "mine")
    assert (code, err.count("\n")) == (125, 1)
    assert "`workbench sessions ls`" in err
    assert list((settings.data_dir / "files").iterdir()) == []


def test_a_name_that_is_taken_and_start_up_code_that_fails_are_told(settings: Settings, tmp_path: Path) -> None:
    wrong = tmp_path / "start.py"
    wrong.write_text("1/0", encoding="utf-8")
    code, out, err = sessions(settings, "create", "mine", "--start-up", str(wrong))
    assert (code, out) == (1, "mine\n")
    assert "ZeroDivisionError" in err
    assert "ZeroDivisionError" in told(settings, "show", "mine")["start_up_error"]
    code, _, err = sessions(settings, "create", "mine")
    assert code == 125
    assert "there is a session 'mine' already" in err


def test_variables_processes_and_restart(settings: Settings) -> None:
    assert run(settings, "exec", "-s", "mine", "numbers = [1, 2, 3]; word = 'x' * 10_000")[0] == 0
    assert run(settings, "bash", "-s", "mine", "nohup sleep 1000 >/dev/null 2>&1 & echo started")[1] == "started\n"
    variables = {one["name"]: one for one in told(settings, "vars", "mine")}
    assert (variables["numbers"]["type"], variables["numbers"]["preview"]) == ("list", "[1, 2, 3]")
    assert len(variables["word"]["preview"]) < 1000
    assert "sleep 1000" in [one["command"] for one in told(settings, "ps", "mine")]
    assert "sleep 1000" in sessions(settings, "ps", "mine")[1]
    assert sessions(settings, "restart", "mine") == (0, "mine has a new memory, epoch 2\n", "")
    assert told(settings, "vars", "mine") == []
    assert "sleep 1000" in [one["command"] for one in told(settings, "ps", "mine")]
    code, _, err = run(settings, "exec", "-s", "mine", "1")
    assert code == 0
    assert err.startswith("[workbench] variables lost, now epoch 2: ")


def test_the_queue_is_seen_a_waiting_cell_cancelled_and_the_running_one_interrupted(settings: Settings) -> None:
    first = workbench(settings, "exec", "-s", "mine", "import time; print('go', flush=True); time.sleep(1000)")
    assert first.stdout is not None
    assert first.stdout.readline() == b"go\n"
    second = workbench(settings, "exec", "-s", "mine", "print('never')")
    third = workbench(settings, "exec", "-s", "mine", "print('at last')")
    eventually(lambda: len(told(settings, "queue", "mine")) == 3, "all are there")
    cells = told(settings, "queue", "mine")
    assert [one["running"] for one in cells] == [True, False, False]
    never = next(one["cell"] for one in cells if one["first_line"] == "print('never')")
    assert sessions(settings, "cancel", "mine", never) == (0, "", "")
    code, out, err = output_of(second)
    assert (code, out) == (125, "")
    assert "out of the queue" in err
    code, _, err = sessions(settings, "cancel", "mine", cells[0]["cell"])
    assert code == 125
    assert "interrupt" in err
    assert sessions(settings, "interrupt", "mine") == (0, "", "")
    assert output_of(first)[0] == 130
    assert output_of(third) == (0, "at last\n", "")


def test_a_tier_changes_on_a_living_session_and_its_memory_stays(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = 5")
    assert sessions(settings, "tier", "mine", "medium") == (0, "mine is medium\n", "")
    assert run(settings, "exec", "-s", "mine", "x") == (0, "5\n", "")
    assert told(settings, "show", "mine")["tier"] == "medium"
    assert sessions(settings, "tier", "mine", "huge")[0] == 2


def test_sessions_can_be_seen_and_deleted_without_a_host(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = 5")
    assert run(settings, "host", "stop")[0] == 0
    assert [one["state"] for one in told(settings, "ls")] == ["lost"]
    assert told(settings, "vars", "mine") == []
    assert sessions(settings, "interrupt", "mine")[0] == 0
    assert sessions(settings, "rm", "mine") == (0, "", "")
    assert run(settings, "host", "status")[0] == 1
    assert list((settings.data_dir / "files").iterdir()) == []


def test_deleting_a_session_ends_what_runs_in_it_and_its_caller_is_told(settings: Settings) -> None:
    command = workbench(settings, "exec", "-s", "mine", "import time; print('go', flush=True); time.sleep(1000)")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    assert sessions(settings, "rm", "mine") == (0, "", "")
    code, _, err = output_of(command)
    assert code == 126
    assert "[workbench] " in err
    assert told(settings, "ls") == []


def test_many_commands_at_once_share_a_session_that_none_of_them_made_before(settings: Settings) -> None:
    commands = [workbench(settings, "exec", "-s", "mine", f"n{n} = {n}; {n}") for n in range(6)]
    assert [output_of(command) for command in commands] == [(0, f"{n}\n", "") for n in range(6)]
    names = [one["name"] for one in told(settings, "vars", "mine")]
    assert names == [f"n{n}" for n in range(6)]


def test_attach_prints_where_and_how(settings: Settings) -> None:
    assert run(settings, "attach", "mine")[0] == 125
    run(settings, "exec", "-s", "mine", "x = 5")
    code, out, err = run(settings, "attach", "mine")
    assert (code, err) == (0, "")
    point = json.loads(run(settings, "attach", "mine", "--json")[1])
    file = Path(point["connection_file"])
    assert json.loads(file.read_text(encoding="utf-8"))["key"] == point["info"]["key"]
    assert f"jupyter console --existing {file}" in out
    assert f"--ServerApp.external_connection_dir={file.parent}" in out


def test_a_command_has_its_own_exit_code_streams_and_limit(settings: Settings) -> None:
    assert run(settings, "bash", "echo out; echo err >&2; exit 7") == (7, "out\n", "err\n")
    code, out, err = run(settings, "bash", "--timeout", "0.5", "echo x; sleep 1000")
    assert (code, out) == (124, "x\n")
    assert "time limit of 0.5 s reached" in err
    result = json.loads(run(settings, "bash", "--json", "pwd; printf 'a\\nb\\n' >&2; exit 3")[1])
    assert (result["stdout"], result["exit_code"], result["stderr_lines"]) == ("/home/user\n", 3, 2)


def test_an_interrupt_ends_a_command_and_all_in_its_group(settings: Settings) -> None:
    command = workbench(settings, "bash", "-s", "mine", "echo go; sleep 1000; echo never")
    assert command.stdout is not None
    assert command.stdout.readline() == b"go\n"
    command.send_signal(signal.SIGINT)
    code, out, _ = output_of(command)
    assert (code, out) == (130, "")
    assert told(settings, "ps", "mine") == []
