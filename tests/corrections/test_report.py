"""What is told and counted, and how it is switched off."""

from __future__ import annotations

import json

import httpx2
import pytest
from tests.corrections.asking import Notebook
from tests.server.running import Running

from workbench.model.corrections import SWITCHES
from workbench_guest.corrections.rules import RULES

_ALL_OFF = dict.fromkeys(SWITCHES, False)
# Of each layer, several times, on several lines, and more than are told one by one.
_MANY = "\n".join(
    ["rows = tool([{'aB': n} for n in range(3)])", *(f"x{n} = [r['a_b'] for r in rows]" for n in range(25))]
)


def _counts(client: httpx2.Client) -> dict[str, dict[str, int]]:
    answer = client.get("/v1/corrections")
    assert answer.status_code == 200, answer.text
    return {one["rule"]: one for one in answer.json()["items"]}


def _since(client: httpx2.Client, before: dict[str, dict[str, int]], rule: str) -> dict[str, int]:
    now = _counts(client).get(rule, {})
    whats = ("acted", "declined", "hinted", "repeated", "undone")
    return {what: now.get(what, 0) - before.get(rule, {}).get(what, 0) for what in whats}


def test_as_many_firings_are_told_as_there_were(own_notebook: Notebook) -> None:
    """By a count of its own: the functions that note a firing, and what the result says."""
    watch = (
        "import sys\n_desk = sys.modules['workbench_guest.corrections.desk'].desk\n_fired = []\n_note = _desk._note\n"
        "_desk._note = lambda *told: (_fired.append(told[2]), _note(*told))[0]"
    )
    assert own_notebook.run(watch).ok
    client, before = own_notebook.client, _counts(own_notebook.client)
    cells = (
        "print(tool({'aB': 1})['a_b'], math.pi > 3)",
        "```python\nprint(\u201ca\u201d, \u201cb\u201d)\n```",
        "return np.sum([1])",
        "tool({'data': {'x': 1}})['x'] + tool({'x': 1}).x",
        "no_such = {'k_k': 1}['kK']",
    )
    told, left_out = 0, 0
    for cell in cells:
        result = own_notebook.run(cell)
        told += sum(one["times"] for one in result.items)
        left_out += result.result["corrections_left_out"]
    fired = json.loads(own_notebook.run("import json; print(json.dumps(_fired))").stdout)
    assert len(fired) == told + left_out > 8
    for rule in set(fired):
        counted = _since(client, before, rule)
        assert counted["acted"] + counted["hinted"] == fired.count(rule)


def test_twenty_are_told_one_by_one_and_the_rest_is_counted(own_notebook: Notebook) -> None:
    before = _counts(own_notebook.client)
    told = own_notebook.run(_MANY)
    assert len(told.items) == 20
    assert {one["times"] for one in told.items} == {3}
    # Each of the other five lines fires three times.
    assert told.result["corrections_left_out"] == 15
    assert _since(own_notebook.client, before, "key-convention")["acted"] == 75


def test_a_report_has_the_rule_the_line_what_was_written_and_what_was_used(own_notebook: Notebook) -> None:
    told = own_notebook.run("\n\nd = tool({'apiKey': 1})\nprint(d['api_key'])")
    (one,) = told.items
    assert (one["kind"], one["rule"], one["line"]) == ("corrected", "key-convention", 4)
    assert one["text"] == "line 4: ['api_key'] -> ['apiKey']"
    assert told.result["receipt"]["corrections"] == [one["text"]]


def test_a_traceback_has_the_lines_of_the_cell_as_it_was_written(own_notebook: Notebook) -> None:
    told = own_notebook.run("Here:\n```python\nx = 1\n1 / 0\n```")
    assert told.error == "ZeroDivisionError"
    assert "line 4" in told.traceback


def test_nothing_runs_twice(own_notebook: Notebook) -> None:
    told = own_notebook.run("```python\ncount = globals().get('count', 0) + 1\n```")
    assert told.rules("corrected") == {"fence"}
    assert own_notebook.run("count").value == "1"
    assert own_notebook.run("print(len(In))").ok


def test_a_cell_can_be_run_as_it_is(own_notebook: Notebook) -> None:
    before = _counts(own_notebook.client)
    assert own_notebook.run("print(tool({'aB': 1})['a_b'])").ok
    told = own_notebook.run("# sandbox: as-is\nprint(tool({'aB': 1})['a_b'])")
    assert (told.error, told.items) == ("KeyError", [])
    told = own_notebook.run("\n\n# sandbox: as-is\r\nprint(math.pi)")
    assert (told.error, told.items) == ("NameError", [])
    told = own_notebook.run("# sandbox: as-is\nimport asyncio\nasync def f(): pass\nasyncio.run(f())")
    assert (told.error, told.items) == ("RuntimeError", [])
    assert _since(own_notebook.client, before, "key-convention")["undone"] == 1


def test_the_same_again_and_what_was_declined_are_counted(own_notebook: Notebook) -> None:
    before = _counts(own_notebook.client)
    for _ in range(3):
        own_notebook.run("tool({'aB': 1})['a_b']")
    own_notebook.run("tool({'aB': 1, 'ab': 2})['a_b']")
    counted = _since(own_notebook.client, before, "key-convention")
    assert (counted["acted"], counted["repeated"], counted["declined"]) == (3, 2, 1)


def test_a_name_that_the_next_cell_binds_otherwise_is_undone(own_notebook: Notebook) -> None:
    before = _counts(own_notebook.client)
    assert own_notebook.run("print(json.dumps(1))").rules("corrected") == {"missing-name"}
    assert own_notebook.run("json = 'mine'").ok
    assert _since(own_notebook.client, before, "missing-name")["undone"] == 1


def test_with_all_switches_off_it_is_plain(client: httpx2.Client) -> None:
    book = Notebook.made(client, corrections=_ALL_OFF)
    try:
        for cell, error in (
            ("```python\n1\n```", "SyntaxError"),
            ("np.ones(1)", "NameError"),
            ("tool({'aB': 1})['a_b']", "KeyError"),
            ("import asyncio\nasync def f(): pass\nasyncio.run(f())", "RuntimeError"),
            ("import pandas\npandas.DataFrame().append", "AttributeError"),
            ("return 1", "SyntaxError"),
        ):
            told = book.run(cell)
            assert (told.error, told.items) == (error, []), cell
        assert book.run("import json; type(json.loads('{}')) is dict").value == "True"
        assert (
            book.run("print(json.loads.__module__, asyncio.run.__code__.co_filename[-10:])").stdout == "json runners.py"
        )
        # The session lives on all the same, and the cell is told so as it was before.
        assert "[sandbox] exit()" in book.run("exit()").result["stderr"]["text"]
    finally:
        book.delete()


_BROKEN = {
    "source": ("```python\n1\n```", "fence"),
    "names": ("np.ones(1)", "missing-name"),
    "keys": ("tool({'aB': 1})['a_b']", "key-convention"),
    "wrappers": ("tool({'data': {'x': 1}})['x']", "wrapper-down"),
    "attributes": ("tool({'x': 1}).x", "attribute-access"),
    "json_text": ("tool({'x': '{\"y\": 1}'})['x']['y']", "json-string"),
    "tuples": ("tool_call({'x': 1}, '')['x']", "tuple-not-unpacked"),
    "removed_api": ("import numpy\nnumpy.float", "removed-api"),
    "runtime": ("import asyncio\nasync def f(): pass\nasyncio.run(f())", "asyncio-run"),
    "single_element": ("tool({'x': [{'y': 1}]})['x']['y']", "single-element"),
    "hints": ("k = {'k_k': 1}\nk['kK']", "missing-key"),
}


def test_each_switch_turns_off_its_own_rules_and_no_others(client: httpx2.Client) -> None:
    """One session with the first half on and one with the other half, so that each is seen both on and off."""
    names = list(SWITCHES)
    for on in (names[:6], names[6:]):
        book = Notebook.made(client, corrections={name: name in on for name in names})
        try:
            for name, (cell, rule) in _BROKEN.items():
                told = book.run(cell)
                seen = told.rules("corrected") | told.rules("hint")
                assert (rule in seen) == (name in on), (name, told.items)
        finally:
            book.delete()


def test_a_switch_that_there_is_not_is_refused_with_the_nearest(client: httpx2.Client) -> None:
    answer = client.post("/v1/sessions", json={"user_id": "t", "sandbox": {"corrections": {"key": False}}})
    assert answer.status_code in {400, 422}
    assert "did you mean 'keys'" in answer.text


def test_metrics_have_them_by_rule(own_notebook: Notebook, server: Running) -> None:
    assert own_notebook.run("tool({'aB': 1})['a_b']").ok
    with server.client() as client:
        text = client.get("/metrics").text
    assert 'workbench_corrections_total{rule="key-convention",what="acted"}' in text


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_has_a_switch_that_there_is(rule: str) -> None:
    assert next(one.switch for one in RULES if one.id == rule) in SWITCHES


def test_data_of_tools_is_read_as_before_after_an_undo_and_in_a_branch_and_is_plain_in_a_copy(
    client: httpx2.Client,
) -> None:
    book = Notebook.made(client, snapshots=True)
    branches = []
    try:
        assert book.run("made = tool({'aB': 1, 'rows': [{'cD': 2}]})").ok
        assert book.run("made = None").ok
        assert client.post(f"/v1/sessions/{book.name}/undo").status_code == 200
        for copied in (False, True):
            made = client.post(f"/v1/sessions/{book.name}/branch", json={"copy": copied})
            assert made.status_code == 201, made.text
            branches.append(Notebook(client, made.json()["session"]["id"]))
        for one in (book, branches[0]):
            told = one.run("print(made['a_b'], made['rows'][0]['c_d'])")
            assert (told.stdout, told.rules("corrected")) == ("1 2", {"key-convention"}), told.result
        # What was carried over as a pickle is plain.
        told = branches[1].run("print(made, type(made) is dict)\nmade['a_b']")
        assert (told.stdout, told.error) == ("{'aB': 1, 'rows': [{'cD': 2}]} True", "KeyError"), told.result
    finally:
        for one in (book, *branches):
            one.delete()
