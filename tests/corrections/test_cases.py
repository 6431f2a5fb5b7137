"""Every pair, for real: through REST, in a sandbox."""

from __future__ import annotations

import pytest
from tests.corrections.asking import DEFINE, Notebook
from tests.corrections.cases import PAIRS, Case

from workbench_guest.corrections.rules import RULES

# What a case before it bound is none of the next one's.
_FORGET = """
for _name in [_one for _one in globals() if not _one.startswith("_") and _one not in (
    "In", "Out", "exit", "quit", "get_ipython", "open", "tool", "tool_call")]:
    if not callable(globals()[_name]) or getattr(globals()[_name], "__module__", "") in ("__main__", None, "builtins",
            "time", "math", "pathlib", "datetime", "collections", "typing", "dataclasses", "abc"):
        del globals()[_name]
"""


@pytest.mark.parametrize("name", PAIRS)
def test_a_mistake_is_corrected_and_its_twin_is_left_alone(notebook: Notebook, name: str) -> None:
    for case in PAIRS[name]:
        assert notebook.run(f"# sandbox: as-is\n{_FORGET}{DEFINE}\n{case.before}").ok
        _check(notebook, case)


def _check(notebook: Notebook, case: Case) -> None:
    told = notebook.run(case.code)
    assert (told.rules("corrected"), told.rules("hint")) == (set(case.did.split()), set(case.hints.split())), told.items
    assert told.error == case.error, told.result["error"]
    assert case.out is None or told.stdout == case.out
    assert case.value is None or told.value == case.value
    assert case.says in (told.traceback if case.says else "")
    # What is told in words is told once: nothing of it is in the streams.
    assert "[sandbox]" not in told.result["stderr"]["text"]


def test_every_rule_has_a_pair_that_it_acts_or_speaks_in() -> None:
    seen = {rule for pair in PAIRS.values() for case in pair for rule in f"{case.did} {case.hints}".split()}
    # These need a session of their own, or much data.
    assert {rule.id for rule in RULES} - seen == {"single-element", "large-data"}
