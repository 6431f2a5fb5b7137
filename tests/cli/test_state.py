"""Undo, branches, copies and snapshots as a user and a script meet them, on real sandboxes."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.one_host import settings, shared_settings
from tests.host.support import output_of, workbench

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


def value(settings: Settings, session: str, expression: str) -> str:
    code, out, err = run(settings, "exec", "-s", session, expression)
    assert code == 0, err
    return out.strip()


def test_cells_are_undone_and_what_cannot_be_is_told(settings: Settings) -> None:
    for cell in ("x = [1]", "x.append(2)", "x = None"):
        assert run(settings, "exec", "-s", "mine", cell)[0] == 0
    code, out, _ = sessions(settings, "undo", "mine")
    assert (code, out) == (0, "mine has its memory from before the last cell, epoch 2\n")
    assert value(settings, "mine", "x") == "[1, 2]"
    assert told(settings, "undo", "mine", "2")["epoch"] == 3
    assert value(settings, "mine", "x") == "[1]"
    code, _, err = sessions(settings, "undo", "mine", "500")
    assert (code, err.count("\n")) == (125, 1)
    assert value(settings, "mine", "x") == "[1]"


def test_a_session_without_a_memory_says_so_and_what_to_do(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = 1")
    assert run(settings, "host", "stop")[0] == 0
    for command in (("undo", "mine"), ("branch", "mine", "other"), ("branch", "mine", "other", "--copy")):
        code, _, err = sessions(settings, *command)
        assert code == 125
        assert "no memory" in err
        assert "run in it what is needed" in err
    assert [one["session"] for one in told(settings, "ls")] == ["mine"]


def test_a_branch_shares_files_but_not_variables_and_outlives_its_parent(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = [1]; _ = open('/mnt/files/a', 'w').write('before')")
    assert sessions(settings, "branch", "mine", "other")[:2] == (0, "other\n")
    run(settings, "exec", "-s", "other", "x.append(2); _ = open('/mnt/files/a', 'w').write('after')")
    assert value(settings, "mine", "x, open('/mnt/files/a').read()") == "([1], 'after')"
    shown = told(settings, "show", "other")
    assert (shown["parent"], shown["shared_with"], shown["mount"]) == ("mine", ["mine"], "mine")
    assert sessions(settings, "tier", "other", "medium")[0] == 0
    assert told(settings, "show", "mine")["tier"] == "medium"
    assert sessions(settings, "rm", "mine") == (0, "", "")
    assert value(settings, "other", "x, open('/mnt/files/a').read()") == "([1, 2], 'after')"
    code, _, err = sessions(settings, "create", "mine")
    assert code == 125
    assert "still those of its branches" in err
    assert sessions(settings, "rm", "other") == (0, "", "")
    assert list((settings.data_dir / "files").iterdir()) == []
    assert [one["sandboxes"] for one in json.loads(run(settings, "host", "status", "--json")[1])] == [0]


def test_a_family_meets_again_after_its_host_ended(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "_ = open('/mnt/files/a', 'w').write('kept')")
    assert sessions(settings, "branch", "mine", "other")[0] == 0
    assert run(settings, "host", "stop")[0] == 0
    for name in ("other", "mine"):
        code, out, err = run(settings, "exec", "-s", name, "open('/mnt/files/a').read()")
        assert (code, out) == (0, "'kept'\n")
        assert "variables lost, now epoch 2" in err
    assert told(settings, "show", "mine")["sandbox"] == told(settings, "show", "other")["sandbox"]


def test_a_copy_has_its_own_files_and_variables(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = [1]; _ = open('/mnt/files/a', 'w').write('before'); g = (n for n in x)")
    made = told(settings, "branch", "mine", "other", "--copy")
    assert (made["parent"], made["mount"], made["shared_with"]) == ("mine", "other", [])
    assert "x" in made["carried"]
    assert "g" in made["not_carried"]
    run(settings, "exec", "-s", "other", "x.append(2); _ = open('/mnt/files/a', 'w').write('after')")
    assert value(settings, "mine", "x, open('/mnt/files/a').read()") == "([1], 'before')"
    assert sessions(settings, "rm", "mine") == (0, "", "")
    assert value(settings, "other", "x, open('/mnt/files/a').read()") == "([1, 2], 'after')"


def test_a_killed_kernel_is_restored_unless_snapshots_are_off(settings: Settings) -> None:
    run(settings, "exec", "-s", "mine", "x = 5")
    assert told(settings, "show", "mine")["snapshots"]["kept"] >= 1
    code, _, err = run(settings, "exec", "-s", "mine", "import os; os._exit(3)")
    assert code == 126
    assert "variables restored from a snapshot, now epoch 2" in err
    assert value(settings, "mine", "x") == "5"
    assert sessions(settings, "snapshots", "mine", "off")[:2] == (0, "mine snapshots: off\n")
    assert run(settings, "exec", "-s", "mine", "import os; os._exit(3)")[0] == 126
    assert run(settings, "exec", "-s", "mine", "x")[0] == 1
    assert sessions(settings, "create", "without", "--no-snapshots")[0] == 0
    assert told(settings, "show", "without")["snapshots"]["on"] is False
