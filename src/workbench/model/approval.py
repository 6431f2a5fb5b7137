"""Whether a person is asked before a tool runs, and what they answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NO_ACCOUNT = "__none__"
"""in the name of an override: for calls that no account is named for"""
EVERY_TOOL = "*"


class Policy(StrEnum):
    """What is done with a call of a tool."""

    ALWAYS_ALLOW = "always_allow"
    ALWAYS_DENY = "always_deny"
    ASK_ONCE = "ask_once"
    """the answer holds for the tool until the session ends"""
    ASK_ALWAYS = "ask_always"


class DefaultPolicy(StrEnum):
    """What is done with tools that nobody named. Those that only read are run without asking."""

    ALLOW_ALL = "allow_all"
    ASK_ONCE = "ask_once_per_session"
    ASK_ALWAYS = "ask_every_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Of a session."""

    default: DefaultPolicy = DefaultPolicy.ALLOW_ALL
    overrides: dict[str, Policy] = field(default_factory=dict)
    """by `SLUG`, `SLUG:account` or `*:account`; the most exact one counts"""


class Decision(StrEnum):
    """What somebody said to it."""

    ALLOW_ONCE = "allow_once"
    ALLOW_SESSION = "allow_session"
    """and ask no more for these tools until the session ends"""
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """Nothing was carried out: somebody has to answer first, and the same call is to be sent again with the answer."""

    message: str
    """what is asked, for a person"""
    schema: Mapping[str, Any]
    """of the form that is filled in"""
    state: str = field(repr=False)
    """to be sent back as it is"""
    request: str = "approval"
    """by which the answer is known"""


class MarkState(StrEnum):
    """Of what is kept about the approvals of a session."""

    GRANTED = "granted"
    WAITING = "waiting"
    """code asked for it, and nobody has answered"""
    USED = "used"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalMark:
    """One thing that is kept: that a tool may be run, that a call waits, or that an answer was used."""

    subject: str
    """which tool, call or answer"""
    state: MarkState
    words: str = ""
    """of a call that waits, for a person"""
    until: str
    """when it is forgotten; ISO 8601, UTC"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenShape:
    """What answers of a tool looked like: keys and kinds, and no value."""

    tool: str
    calls: int
    """that it was seen in"""
    shape: str = field(repr=False)
    """JSON, as `core.router.shapes` writes it"""
    at: str
    """the latest"""
