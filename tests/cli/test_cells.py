"""`workbench cells`, `sessions history`, `export`, `idle` and `keep` as a user and a script meet them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import nbformat
from tests.cli.one_host import settings, shared_settings
from tests.host.support import eventually, output_of, workbench

from workbench.settings import Settings

__all__ = ["settings", "shared_settings"]

SLOW = """
import time, pathlib
print('one', flush=True)
while not pathlib.Path('/mnt/files/go').exists():
    time.sleep(0.05)
print('two')
42
"""


def run(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    return output_of(workbench(settings, *arguments))


def told(settings: Settings, *arguments: str) -> Any:
    _, out, err = run(settings, *arguments, "--json")
    assert out, err
    return json.loads(out)


def let_go(settings: Settings, name: str = "mine") -> None:
    assert run(settings, "bash", "-s", name, "touch /mnt/files/go")[0] == 0


def test_a_cell_goes_on_when_its_starter_has_left_and_is_followed_by_others(settings: Settings) -> None:
    code, out, err = run(settings, "cells", "start", "-s", "mine", SLOW)
    assert (code, err) == (0, "")
    cell = out.strip()
    assert told(settings, "cells", "show", "-s", "mine", cell)["status"] == "pending"
    assert run(settings, "cells", "show", "-s", "mine", cell)[0] == 1
    follower = workbench(settings, "cells", "follow", "-s", "mine", cell)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"one\n"
    let_go(settings)
    assert output_of(follower) == (0, "two\n42\n", "")
    assert run(settings, "cells", "show", "-s", "mine", cell, "--wait", "30") == (0, "one\ntwo\n42\n", "")
    shown = told(settings, "cells", "show", "-s", "mine", cell)
    assert (shown["status"], shown["result"]["outcome"], shown["kind"]) == ("ended", "ok", "cell")


def test_a_follower_that_leaves_is_told_where_to_go_on(settings: Settings) -> None:
    cell = run(settings, "cells", "start", "-s", "mine", SLOW)[1].strip()
    follower = workbench(settings, "cells", "follow", "-s", "mine", cell)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"one\n"
    follower.send_signal(signal.SIGINT)
    code, _, err = output_of(follower)
    assert code == 130
    offset = err.rpartition("--offset ")[2].partition("`")[0]
    let_go(settings)
    code, out, _ = run(settings, "cells", "follow", "-s", "mine", cell, "--offset", offset)
    assert (code, out) == (0, "two\n42\n")


def test_a_reader_that_has_seen_enough_ends_the_following_and_not_the_cell(settings: Settings) -> None:
    flood = "for n in range(200_000): print('line', n)\n7"
    cell = run(settings, "cells", "start", "-s", "mine", flood)[1].strip()
    follower = workbench(settings, "cells", "follow", "-s", "mine", cell)
    assert follower.stdout is not None
    assert follower.stderr is not None
    follower.stdout.readline()
    follower.stdout.close()
    assert follower.wait(60) == 143
    assert follower.stderr.read() == b""
    follower.stderr.close()
    assert told(settings, "cells", "show", "-s", "mine", cell, "--wait", "60")["result"]["results"] == "7"


def test_a_command_is_started_stopped_and_shown(settings: Settings) -> None:
    command = run(settings, "cells", "start", "-s", "mine", "--command", "echo go; sleep 1000")[1].strip()
    follower = workbench(settings, "cells", "follow", "-s", "mine", command)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"go\n"
    assert run(settings, "cells", "stop", "-s", "mine", command) == (0, "", "")
    assert output_of(follower)[0] == 130
    assert told(settings, "cells", "show", "-s", "mine", command)["kind"] == "command"
    assert "had ended" in run(settings, "cells", "stop", "-s", "mine", command)[2]


def test_a_cell_that_raised_exits_as_exec_would_have(settings: Settings) -> None:
    cell = run(settings, "cells", "start", "-s", "mine", "print('x'); 1/0")[1].strip()
    code, out, err = run(settings, "cells", "show", "-s", "mine", cell, "--wait", "30")
    assert (code, out) == (1, "x\n")
    assert "ZeroDivisionError" in err
    assert run(settings, "cells", "follow", "-s", "mine", cell)[0] == 1


def test_a_cell_that_nobody_knows_is_not_found(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "1")
    for command in (("show",), ("follow",), ("stop",)):
        code, _, err = run(settings, "cells", *command, "-s", "mine", "c-nothing")
        assert (code, "c-nothing" in err) == (125, True)


def test_a_retry_with_the_same_idempotency_key_gets_the_kept_answer(settings: Settings) -> None:
    once = ("exec", "-s", "mine", "--idempotency-key", "step-1", "import random; n = random.random(); n")
    first = run(settings, *once)
    assert first[0] == 0
    assert run(settings, *once)[:2] == first[:2]
    assert run(settings, "exec", "-s", "mine", "--idempotency-key", "step-1", "another")[0] == 125
    assert run(settings, "exec", "--idempotency-key", "step-1", "1")[0] == 2


def test_what_was_thought_is_on_the_session_in_its_history_and_in_its_notebook(
    settings: Settings, tmp_path: Path
) -> None:
    said = ("--thought", "see what is there", "--step", "reading", "--metric", "1/3 files")
    assert run(settings, "exec", "-s", "mine", *said, "print('hello'); 6 * 7")[0] == 0
    shown = told(settings, "sessions", "show", "mine")
    assert shown["progress"]["current_step_metric"] == "1/3 files"
    assert "reading, 1/3 files" in run(settings, "sessions", "show", "mine")[1]
    assert run(settings, "bash", "-s", "mine", "--thought", "look around", "echo there")[0] == 0
    history = told(settings, "sessions", "history", "mine")
    assert [(one["kind"], one["thought"]) for one in history] == [
        ("cell", "see what is there"),
        ("command", "look around"),
    ]
    code, out, _ = run(settings, "sessions", "history", "mine")
    assert (code, "see what is there" in out, "echo there" in out) == (0, True, True)
    assert len(told(settings, "sessions", "history", "mine", "--limit", "1")) == 1
    file = tmp_path / "mine.ipynb"
    assert run(settings, "sessions", "export", "mine", str(file)) == (0, "", "")
    notebook = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert "see what is there" in file.read_text(encoding="utf-8")
    assert json.loads(run(settings, "sessions", "export", "mine", "-")[1])["nbformat"] == 4
    assert run(settings, "sessions", "export", "mine", str(tmp_path / "none" / "x.ipynb"))[0] == 1


def test_idle_limits_are_told_set_and_taken_back(settings: Settings) -> None:
    run(settings, "sessions", "create", "mine")
    assert run(settings, "sessions", "idle", "mine")[1] == (
        "frozen after: 15m (the server's)\nended after:  12h (the server's)\n"
    )
    changed = run(settings, "sessions", "idle", "mine", "--freeze-after", "1h", "--end-after", "never")
    assert changed == (0, "frozen after: 1h\nended after:  never\n", "")
    assert told(settings, "sessions", "idle", "mine", "--freeze-after", "default") == {
        "freeze_after_s": None,
        "end_after_s": 0,
    }
    assert run(settings, "sessions", "idle", "mine", "--end-after", "soon")[0] == 2


def test_keeping_a_session_counts_as_its_use(settings: Settings) -> None:
    run(settings, "sessions", "create", "mine")
    before = told(settings, "sessions", "show", "mine")["used_at"]
    assert run(settings, "sessions", "keep", "mine") == (0, "", "")
    eventually(lambda: told(settings, "sessions", "show", "mine")["used_at"] > before, "it was used", 10)
