"""The words of tasks and of tools in a common form: what people say beside what services call it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from enum import StrEnum

from workbench.model.toolkit import Tool, Toolkit

_WORD = re.compile(r"[a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CALL = re.compile(r"(GET|POST|PUT|PATCH|DELETE|HEAD) /")
_END = re.compile(r"(?<=[.!?])\s")
# What generated names end with says which thing is meant, and nothing of what becomes of it.
_WHICH = re.compile(r" by ids?\b.*$")
# How documents of interfaces begin and end what they say.
_BEGIN = re.compile(
    r"^(this (endpoint|api|operation|method) (allows|enables|lets) you to|use this (api|endpoint|operation|method) to|"
    r"you can use this endpoint to|to) ",
    re.IGNORECASE,
)
_REQUEST = re.compile(r",? (by )?send(ing)? an? (GET|POST|PUT|PATCH|DELETE) .*$", re.IGNORECASE)
# A tool that does one of several things has them as the properties of what this argument lists.
_KINDS, _LEAST_KINDS, _MOST_KINDS = "requests", 5, 100
# Enough for the 64 parts of words that the model reads.
_MOST_SENTENCE = 250
_ENDINGS = ("ing", "es", "ed", "e", "s")
_LEAST_STEM = 3
_EMPTY_WORDS = """
a about again all already also an and any anybody anyone anything are as at be been by can could did do does don done
each everybody everyone everything for from give had has have he her him his how i if in into is it its let ll m
many me much my need no nobody now of off on one or our out please s she so some somebody someone something t than that
the their them then there these they this those to too up us use user used using want was we were what when where which
while who whom whose why will with would you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


class Intent(StrEnum):
    """What is to become of a thing."""

    READ = "read"
    LIST = "list"
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    SEND = "send"


_INTENTS = {
    Intent.READ: "get read show fetch retrieve view see download export look check details return describe tell",
    Intent.LIST: "list search find query all which who what browse every latest recent many everyone",
    Intent.CREATE: "create add new make insert append write start open schedule generate register put log invite post "
    "upload draft compose publish import attach buy",
    Intent.CHANGE: "update change edit modify set rename move patch replace mark close merge assign turn adjust",
    Intent.DELETE: "delete remove clear trash cancel erase drop unsubscribe stop empty kick ban detach destroy end",
    Intent.SEND: "send reply forward post notify message",
}
# What one says, and the words that names and descriptions of tools have for it. In common English, of no one service.
_SAID = """
mail: email message
email: mail message
inbox: mailbox message
sms: message
text: message
chat: message conversation
repo: repository
pr: pull request
ticket: issue
comment: note story reply
reply: send comment
tab: sheet
row: append value
cell: value range
spreadsheet: sheet
document: file doc
doc: document
pdf: export
appointment: event
meeting: event
office: vacation
share: permission acl
sharing: permission
person: user member
people: user member
colleague: user
developer: user
client: customer
buy: purchase
status: state
done: complete closed
owner: assignee
assign: assignee
spend: usage
pay: payment
discount: coupon
plan: subscription price
cart: checkout
mark: update
read: get retrieve
show: get list
see: get list
find: search list
look: search get
fetch: get
make: create
new: create
add: create insert append
write: create update
open: create
start: create
post: create send
put: add update
change: update edit
edit: update
move: update
remove: delete
cancel: delete
clear: delete
erase: delete
trash: delete
archive: close
upload: create add
download: get
webhook: hook
diff: change
change: diff
server: guild
remind: reminder
react: reaction emoji
follow: watch watcher subscribe
attach: attachment upload
pay: payment
subscribe: subscription
invite: invitation member
picture: image media photo
photo: image picture
song: track
access: permission
guest: attendee
promo: promotion
reboot: restart
bug: issue
crash: issue
colour: color
organisation: organization
folder: directory
bill: invoice
member: user
everybody: user member
link: url
"""


def sentence_of(toolkit: str, name: str, description: str) -> str:
    """What a tool does in one sentence, as it is compared by meaning. Vectors that are shipped are made of these."""
    return f"{toolkit}: {plain_name(name)}. {_told(name, description)}".strip()


def in_plain_terms(toolkit: Toolkit, sentence: str) -> str:
    """The sentence of a tool in other words than the service's; empty if it has no others."""
    own = sentence.removeprefix(f"{toolkit.name}: ").lower()
    said = _plainly(toolkit, own)
    return "" if said == own else said


def kinds_of(toolkit: Toolkit, tool: Tool) -> list[str]:
    """What a tool of many changes can do, one by one, in plain terms: `add chart. Adds a chart.`"""
    if not tool.name.lower().startswith("batch update"):
        return []
    items = tool.input_schema.get("properties", {}).get(_KINDS, {}).get("items", {})
    kinds: Mapping[str, Mapping[str, str]] = items.get("properties", {}) if isinstance(items, dict) else {}
    if len(kinds) < _LEAST_KINDS:
        return []
    told = {kind: (one.get("description") or "")[:_MOST_SENTENCE] for kind, one in list(kinds.items())[:_MOST_KINDS]}
    return [
        _plainly(toolkit, f"{plain_name(kind)}. {_END.split(said, maxsplit=1)[0]}".strip().lower())
        for kind, said in told.items()
    ]


def _plainly(toolkit: Toolkit, said: str) -> str:
    if not toolkit.terms:
        return said
    return _any_of(tuple(toolkit.terms)).sub(lambda found: toolkit.terms[found.group()], said)


def plain_name(name: str) -> str:
    """Of a tool, in small words: `addCardsByIdCard` adds cards."""
    return _WHICH.sub("", _CAMEL.sub(" ", name).replace("_", " ").strip().lower())


def _told(name: str, description: str) -> str:
    """What a description says of a tool first."""
    told = _LINK.sub(r"\1", description).strip()
    if told.lower().startswith(name.lower()) and told[len(name) :][:1] in ("", ".", ":"):
        # Descriptions often begin with the name; after it comes what it means, or the address that it calls.
        told = told[len(name) :].lstrip(" .:")
    if _CALL.match(told):
        return ""
    told = _END.split(told, maxsplit=1)[0][:_MOST_SENTENCE]
    if not _BEGIN.match(told):
        return told
    told = _REQUEST.sub("", _BEGIN.sub("", told))
    return told[:1].upper() + told[1:]


@functools.lru_cache(maxsize=200)
def _any_of(terms: tuple[str, ...]) -> re.Pattern[str]:
    """The longest that is there counts."""
    return re.compile(r"\b(" + "|".join(map(re.escape, sorted(terms, key=len, reverse=True))) + r")\b")


def words_of(text: str) -> list[str]:
    """Its words in a common form, without those that say nothing."""
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in _EMPTY]


def name_words(name: str) -> list[str]:
    """Of a name of a program's: `addCardsByIdCard()` has words in it."""
    return words_of(plain_name(name))


@functools.lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """`searches` and `searching` are both `search`: crude, and the same for both sides."""
    if word.endswith("ies") and len(word) > _LEAST_STEM + 1:
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


def _table(said: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in said.strip().splitlines():
        word, _, others = line.partition(":")
        found[stem(word)] = (*found.get(stem(word), ()), *map(stem, others.split()))
    return found


_ALSO = _table(_SAID)
VERBS = {
    form: frozenset(intent for intent, verbs in _INTENTS.items() if {form, form + "e"} & set(verbs.split()))
    for form in {form for verbs in _INTENTS.values() for verb in verbs.split() for form in (verb, stem(verb))}
}
"""what each verb may ask for, also by its stem"""


def also(word: str) -> tuple[str, ...]:
    """Other words for it, all in the common form."""
    return _ALSO.get(word, ())


def intents_of(text: str) -> list[frozenset[Intent]]:
    """What each of its verbs may ask for, in their order."""
    found = (VERBS.get(word) or VERBS.get(stem(word)) for word in _WORD.findall(_CAMEL.sub(" ", text).lower()))
    return [intents for intents in found if intents]
