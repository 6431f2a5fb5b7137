"""What guest and server call rules and switches is the same; the switches are read as they are written."""

from __future__ import annotations

import pytest

from workbench.errors import InvalidRequest
from workbench.model import corrections
from workbench_guest.corrections import rules


def test_both_sides_know_the_same_rules_and_switches() -> None:
    assert set(rules.BY_ID) == corrections.RULES
    assert rules.SWITCHES == corrections.SWITCHES
    assert rules.DEFAULT == corrections.DEFAULT_SWITCHES
    assert rules.VARIABLE == corrections.VARIABLE


def test_each_rule_has_one_switch_and_each_switch_a_rule() -> None:
    assert len(rules.BY_ID) == len(rules.RULES)
    assert {rule.switch for rule in rules.RULES} == set(rules.SWITCHES)


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("default", rules.DEFAULT),
        ("", rules.DEFAULT),
        ("all", frozenset(rules.SWITCHES)),
        ("none", frozenset()),
        ("all,-keys", frozenset(rules.SWITCHES) - {"keys"}),
        ("-hints", rules.DEFAULT - {"hints"}),
        ("source, json-text", frozenset({"source", "json_text"})),
        ("default,single_element,-tuples", (rules.DEFAULT | {"single_element"}) - {"tuples"}),
    ],
)
def test_a_list_of_switches(text: str, on: frozenset[str]) -> None:
    assert corrections.switches_of(text) == on
    assert rules.switches_of(corrections.text_of(on)) == on
    assert corrections.switches_of(corrections.text_of(on)) == on


@pytest.mark.parametrize(("text", "near"), [("key", "keys"), ("all,-wraper", "wrappers"), ("-none", "none")])
def test_an_unknown_switch_is_refused_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(InvalidRequest, match=f"did you mean '{near}'"):
        corrections.switches_of(text)


def test_a_session_changes_what_the_server_has() -> None:
    assert corrections.switched("all", {"keys": False}) == frozenset(rules.SWITCHES) - {"keys"}
    assert corrections.switched("none", {"hints": True}) == {"hints"}
    with pytest.raises(InvalidRequest, match="hints"):
        corrections.switched("all", {"hint": True})


def test_a_kernel_without_the_variable_has_the_usual_ones() -> None:
    assert rules.switches_of(None) == rules.DEFAULT
    assert rules.switches_of("none") == frozenset()
