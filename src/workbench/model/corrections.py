"""Which mistakes of code are corrected: the switches of servers and sessions, the rules, and how often each had to act.

What the rules do is the guest's: it has the same names, and tests compare the two.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields, replace

from workbench.errors import InvalidRequest
from workbench.model.execution import CellResult, CommandResult, CorrectionKind, RuleCount

SWITCHES = (
    "source", "names", "keys", "wrappers", "attributes", "json_text", "tuples", "removed_api", "runtime",
    "single_element", "hints",
)  # fmt: skip
OFF_BY_DEFAULT = frozenset({"single_element"})
DEFAULT_SWITCHES = frozenset(SWITCHES) - OFF_BY_DEFAULT
RULES = frozenset(
    [
        "fence",
        "unicode",
        "tabs",
        "dedent",
        "colon",
        "escaped",
        "html",
        "linenos",
        "language-word",
        "return-outside-function",
        "missing-name",
        "key-convention",
        "wrapper-down",
        "wrapper-up",
        "attribute-access",
        "json-string",
        "tuple-not-unpacked",
        "single-element",
        "removed-api",
        "asyncio-run",
        "exit-call",
        "large-data",
        "python-suggestion",
        "close-name",
        "missing-key",
        "missing-column",
        "not-by-name",
        "missing-file",
        "input",
    ]
)
"""that a guest may tell of; those about packages are the host's own"""
VARIABLE = "WORKBENCH_CORRECTIONS"
"""by which a kernel is told which switches are on"""
DEFAULT_TEXT = "default"
_ALONE = ("all", "none", DEFAULT_TEXT)


def switches_of(text: str) -> frozenset[str]:
    """Which switches a list means: `all`, `none`, `default` and names, each with `-` in front to turn it off.

    Raises:
        InvalidRequest: there is no such switch; the message names the nearest.
    """
    parts = [part.strip().lower().replace("-", "_") for part in text.split(",") if part.strip()]
    on: set[str] = set()
    if not parts or parts[0].startswith("_"):
        on |= DEFAULT_SWITCHES
    for part in parts:
        name, off = part.removeprefix("_"), part.startswith("_")
        if name not in (*SWITCHES, *_ALONE) or (off and name in _ALONE):
            raise _unknown(part.replace("_", "-", 1) if off else part)
        named = {"all": frozenset(SWITCHES), "none": frozenset[str](), DEFAULT_TEXT: DEFAULT_SWITCHES}
        of_name = named.get(name, frozenset({name}))
        on = on - of_name if off else set() if name == "none" else on | of_name
    return frozenset(on)


def _unknown(name: str) -> InvalidRequest:
    near = difflib.get_close_matches(name.removeprefix("-"), [*SWITCHES, *_ALONE], n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join((*_ALONE, *SWITCHES))}"
    return InvalidRequest(f"no such switch of corrections: {name!r}{hint}", {"switch": name})


def text_of(on: Iterable[str]) -> str:
    """As a kernel is told, and as `switches_of` reads it; in the order of the switches."""
    chosen = frozenset(on)
    return ",".join(one for one in SWITCHES if one in chosen) or "none"


def switched(text: str, changes: dict[str, bool]) -> frozenset[str]:
    """A list of the server's, as a session has changed it."""
    on = set(switches_of(text))
    for name, yes in changes.items():
        if name not in SWITCHES:
            raise _unknown(name)
        (on.add if yes else on.discard)(name)
    return frozenset(on)


def counts_of(result: CellResult | CommandResult) -> tuple[RuleCount, ...]:
    """How often each rule had something to do with it: as the guest says of its own, and the host of those it has."""
    told = {one.rule: one for one in result.rules} if isinstance(result, CellResult) else {}
    for one in result.corrections:
        if one.rule not in RULES:
            before = told.get(one.rule, RuleCount(rule=one.rule))
            hinted = one.kind is CorrectionKind.HINT
            told[one.rule] = replace(before, acted=before.acted + (not hinted), hinted=before.hinted + hinted)
    return tuple(told.values())


WHATS = tuple(one.name for one in fields(RuleCount) if one.name != "rule")
"""that are counted of each"""
