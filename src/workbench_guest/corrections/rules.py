"""Which rules there are, and by which switch each is turned off. What they do is left to the other modules."""

from __future__ import annotations

from dataclasses import dataclass

BEFORE, DURING, AFTER = "before", "during", "after"
# By it a memory is told which switches are on, names by commas; without it all are that are on by default.
VARIABLE = "WORKBENCH_CORRECTIONS"
SWITCHES = (
    "source", "names", "keys", "wrappers", "attributes", "json_text", "tuples", "removed_api", "runtime",
    "single_element", "hints",
)  # fmt: skip
OFF_BY_DEFAULT = frozenset({"single_element"})
DEFAULT = frozenset(SWITCHES) - OFF_BY_DEFAULT


@dataclass(frozen=True, slots=True)
class Rule:
    """One mistake."""

    id: str
    switch: str
    layer: str
    says: str


RULES = (
    Rule("fence", "source", BEFORE, "a cell in a Markdown fence: its Python blocks are run, in order"),
    Rule("unicode", "source", BEFORE, "typographic quotes, spaces and signs outside of strings are those of Python"),
    Rule("tabs", "source", BEFORE, "tabs and spaces mixed, where all widths of a tab give the same program"),
    Rule("dedent", "source", BEFORE, "all of the code is indented, but not its comments"),
    Rule("colon", "source", BEFORE, "the colon at the end of a block's first line is missing"),
    Rule("escaped", "source", BEFORE, "a program on one line, with \\n written out"),
    Rule("html", "source", BEFORE, "&lt; &gt; &amp; &quot; outside of strings"),
    Rule("linenos", "source", BEFORE, "each line begins with its number"),
    Rule("language-word", "source", BEFORE, "the first line is the word python"),
    Rule("return-outside-function", "source", BEFORE, "return at top level shows its value, or ends the cell"),
    Rule("missing-name", "names", BEFORE, "a well-known name that was never imported"),
    Rule("key-convention", "keys", DURING, "a field of tool data in another spelling: case, _, - and space"),
    Rule("wrapper-down", "wrappers", DURING, "a field that is one or two wrappers further down"),
    Rule("wrapper-up", "wrappers", DURING, "`data` of an answer that has no wrapper"),
    Rule("attribute-access", "attributes", DURING, "a field of tool data read as an attribute"),
    Rule("json-string", "json_text", DURING, "a field of a text that is JSON"),
    Rule("tuple-not-unpacked", "tuples", DURING, "a field of a helper's (data, error)"),
    Rule("single-element", "single_element", DURING, "a field of a list of one"),
    Rule("removed-api", "removed_api", DURING, "what a library removed, by its exact equivalent"),
    Rule("asyncio-run", "runtime", DURING, "asyncio.run and run_until_complete while a loop runs"),
    Rule("exit-call", "runtime", DURING, "exit() and sys.exit() end the cell, and the session lives on"),
    Rule("large-data", "hints", DURING, "parsed data that is too large to be read forgivingly"),
    Rule("python-suggestion", "hints", AFTER, "what Python itself suggests"),
    Rule("close-name", "hints", AFTER, "names that look like one that is not defined"),
    Rule("missing-key", "hints", AFTER, "keys that a dict does have"),
    Rule("missing-column", "hints", AFTER, "columns that a table does have"),
    Rule("not-by-name", "hints", AFTER, "a list, a text, None or a tuple that was indexed by a name"),
    Rule("missing-file", "hints", AFTER, "files that are in that folder"),
    Rule("input", "hints", AFTER, "input() that nobody can answer"),
)
BY_ID = {rule.id: rule for rule in RULES}


def switches_of(text: str | None) -> frozenset[str]:
    """Those that are on, by the value of the variable; what is unknown is nothing."""
    if text is None:
        return DEFAULT
    return frozenset(SWITCHES) & {part.strip() for part in text.split(",")}
