"""What a task asks for, apart from what it is about: `text Ann that dinner is ready` is about a message to a person.

People say names, numbers and whole letters along with what they want; tools say none of these. What is left is compared
with tools. In common English, of no one service.
"""

from __future__ import annotations

import re
from collections.abc import Set

from workbench.core.router.wording import VERBS, Intent, stem

_NO_NAMES = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december in
"""
_BEFORE = """
please can could you i want to need just now go and would like we have let lets me help
"""
_ASKING = """
what which who whom whose when where why how is are am was were do does did has have
"""
_NOUNS = """
list message post draft log schedule comment review change set label mark search query check end stop open text note
look read start
"""
# What is written in a form of its own tells what kind of thing it is.
_FORMS = (
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r"[\"“”«»][^\"“”«»]{1,200}[\"“”«»]|(?<!\w)'[^']{2,80}'(?!\w)"), " "),
    (re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b"), " "),
    (re.compile(r"(?<![\w&])#[a-zA-Z][\w-]*"), " channel "),
    (re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d+\b"), " ticket "),
    (
        re.compile(
            r"\b[\w-]+\.(pdf|docx?|xlsx?|pptx?|csv|txt|md|json|ya?ml|png|jpe?g|gif|svg|zip|mp[34]|html?|py|js|ts)\b",
            re.IGNORECASE,
        ),
        " file ",
    ),
    (re.compile(r"\+\d[\d ()-]{6,}\d"), " phone number "),
    (re.compile(r"\b[A-Z]{1,2}\d{1,4}(?:(?::| to | through | and )[A-Z]{1,2}\d{1,4})+\b"), " cells "),
    # What a thing is to be called.
    (
        re.compile(
            r"\b(called|named|titled|labelled)\s+(?:[A-Z0-9][\w'.-]*|[a-z0-9]+(?:-[a-z0-9]+)+)"
            r"(?:\s+(?:[A-Z0-9][\w'.-]*|of|the|and)(?=\s|$|\b))*"
        ),
        " ",
    ),
    # What is to be said.
    (re.compile(r"\b(saying|that says|asking (?:for|if|whether|about)|telling (?:them|him|her|people))\b.*$"), " "),
    (
        re.compile(
            r"^((?:please )?(?:comment|reply|post|text|tell|message|answer|note|write|respond)\b.*?)\s+that\s.*$"
        ),
        r"\1",
    ),
    (re.compile(r":\s.+$"), " "),
    (re.compile(r"[$€£]?\b\d[\d.,:%-]*(st|nd|rd|th|am|pm)?\b"), " "),
    (re.compile(r"\b(channel|ticket|file|cells)(\s+\1)+\b"), r"\1"),
)  # fmt: skip
_PERSON = re.compile(
    r"\b(add|remove|invite|ask|tell|assign|kick|take|message|email|text|remind|make|let|to|from|with|for|by|and|give|send)"
    r"(?: (?:Mr|Mrs|Ms|Dr)\.?)? ([A-Z][a-z]+(?:'s)?(?: [A-Z][a-z]+(?:'s)?)*)"
)
_DAYS = frozenset(_NO_NAMES.split())
_LEAST_LEFT = 2

_FILLING = frozenset(_BEFORE.split())
_QUESTION = frozenset(_ASKING.split())
_ASKED_TO = re.compile(r"(can|could|would|will) you\b")
# Verbs of two words, which may have others between them.
_BETWEEN = r"(?:[\w'@.-]+ )"
_OF_TWO = tuple(
    (re.compile(pattern), frozenset(intents))
    for pattern, intents in (
        (r"\bget(ting)? rid of\b", {Intent.DELETE}),
        (rf"\bthrow(ing)? {_BETWEEN}{{0,4}}?(away|out)\b", {Intent.DELETE}),
        (rf"\btake {_BETWEEN}{{0,4}}?(off|away|out|down)\b", {Intent.DELETE}),
        (r"\bkick off\b", {Intent.CREATE, Intent.CHANGE}),
        (rf"\bkick {_BETWEEN}{{0,4}}?(off|out)\b", {Intent.DELETE}),
        (r"\bcall off\b", {Intent.DELETE}),
        (rf"\b(spin|set|sign) {_BETWEEN}{{0,3}}?up\b", {Intent.CREATE}),
        (r"\bfill (in|out)\b", {Intent.CHANGE}),
        (rf"\b(tick|check) {_BETWEEN}{{0,3}}?off\b", {Intent.CHANGE}),
        (rf"\bhand {_BETWEEN}{{0,5}}?over\b", {Intent.CHANGE}),
        (rf"\bpass {_BETWEEN}{{0,3}}?on\b", {Intent.SEND}),
        (r"\blook (up|for|through)\b", {Intent.LIST}),
        (rf"\bturn {_BETWEEN}{{0,3}}?(on|off|up|down)\b", {Intent.CHANGE}),
    )
)
# Verbs of tasks alone: tools have others.
_ALSO_VERBS = {
    Intent.READ: "pull",
    Intent.CREATE: "give share fork star pin save store copy duplicate comment leave invite link attach stick tag "
    "charge refund rerun run restart subscribe remind ask react follow report",
    Intent.CHANGE: "swap rewrite fix switch reopen approve decline protect void archive complete snooze sort format "
    "pause skip play",
    Intent.DELETE: "revoke unfollow",
    Intent.SEND: "text call tell",
}
# These are things as often: they are verbs where they come first.
_THINGS = frozenset(_NOUNS.split())
_WORD = re.compile(r"[a-z0-9']+")


def _verbs() -> dict[str, frozenset[Intent]]:
    found = dict(VERBS)
    for intent, verbs in _ALSO_VERBS.items():
        for verb in verbs.split():
            for form in (verb, stem(verb)):
                found[form] = found.get(form, frozenset()) | {intent}
    return found


_VERBS = _verbs()


def asked_for(task: str, apps: Set[str] = frozenset()) -> str:
    """The task without what is only about this one time. `apps` are words of names of apps: these are no people."""

    def somebody(found: re.Match[str]) -> str:
        names = [word.removesuffix("'s").lower() for word in found[2].split()]
        if any(name in _DAYS or name in apps for name in names):
            return found[0]
        return f"{found[1]} a person{chr(39) + 's' if found[2].endswith(chr(39) + 's') else ''}"

    said = task
    for pattern, instead in _FORMS:
        said = pattern.sub(instead, said)
    said = " ".join(_PERSON.sub(somebody, said).split())
    return said if len(said.split()) >= _LEAST_LEFT else task


def wanted(task: str) -> frozenset[Intent]:
    """What is to become of things, by the first verb; empty where none says."""
    said = task.lower().strip()
    for pattern, intents in _OF_TWO:
        if pattern.search(said):
            return intents
    words = _WORD.findall(said)
    if words and _is_question(said, words[0]):
        return frozenset({Intent.READ, Intent.LIST})
    begin = next((at for at, word in enumerate(words) if word not in _FILLING), len(words))
    if words[begin : begin + 1] == ["open"]:
        is_new = words[begin + 1 : begin + 2] in (["a"], ["an"], ["new"])
        return frozenset({Intent.CREATE}) if is_new else frozenset({Intent.READ, Intent.CREATE, Intent.CHANGE})
    first = _intents(words[begin]) if begin < len(words) else frozenset()
    others = (_intents(word) for word in words[begin + 1 :] if word not in _THINGS and word not in _FILLING)
    return first or next(filter(None, others), frozenset())


def _is_question(said: str, first: str) -> bool:
    return (first.removesuffix("'s") in _QUESTION or said.endswith("?")) and not _ASKED_TO.match(said)


def _intents(word: str) -> frozenset[Intent]:
    return _VERBS.get(word) or _VERBS.get(stem(word)) or frozenset()
