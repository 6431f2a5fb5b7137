"""Approvals: which calls a person is asked about first, how the question is put, and which answers hold.

A question is about calls to the letter: tools, arguments and accounts. What is handed out with it is signed, holds for
ten minutes, in this session, for these calls, and once. The answer is brought by whoever has a key, or by the client
that a person sits at; code in a sandbox asks nobody. Its calls are refused and written down, and with the next cell
that is sent to the session a person is asked about all of them at once; what they allow is let through once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.clock import Clock
from workbench.contracts.storage import ToolMemory
from workbench.core.router.catalogue import is_asked_first
from workbench.errors import Denied, InvalidRequest
from workbench.model.approval import (
    EVERY_TOOL,
    NO_ACCOUNT,
    ApprovalMark,
    Decision,
    DefaultPolicy,
    InputRequired,
    MarkState,
    Policy,
)
from workbench.model.configuration import SessionConfig, is_named
from workbench.model.session import Session
from workbench.model.toolkit import Json, Tool, ToolCall

REQUEST = "approval"
_ACCEPT = "accept"
_ACTIONS = (_ACCEPT, "decline", "cancel")
_READ_ONLY = "readOnlyHint"
# Another one with every change of what is signed.
_VERSION = "workbench-approval-1"
# How long a question can be answered, a call of code's waits, an approval of it is good, and one for the session.
_ANSWER_S, _WAITING_S, _GRANTED_S, _SESSION_S = 600.0, 3600.0, 600.0, 30 * 86400.0
# Calls of code's that wait in a session.
_MOST_WAITING = 50
_MOST_STATE = 2000
# Of arguments: in a question about one call, in all of a question, and of a call that waits.
_MOST_OF_A_CALL, _MOST_OF_A_MESSAGE, _MOST_OF_A_WAITING = 4000, 10_000, 300
_MOST_OF_AN_ACCOUNT = 100
_WAITING, _TOOL, _ANSWER = "call:", "tool:", "answer:"
_DECISION = "decision"
_STRICTEST = (Policy.ALWAYS_DENY, Policy.ASK_ALWAYS, Policy.ASK_ONCE, Policy.ALWAYS_ALLOW)
_SCHEMA: Json = {
    "type": "object",
    "properties": {
        _DECISION: {
            "type": "string",
            "title": "Decision",
            "description": "allow_once: these calls, now. allow_session: and these tools without asking until the "
            "session ends. deny: none of them.",
            "enum": [str(one) for one in Decision],
            "default": str(Decision.ALLOW_ONCE),
        }
    },
    "required": [_DECISION],
}


@dataclass(frozen=True, slots=True)
class Considered:
    """A call that could be made, and the tool that it is of."""

    call: ToolCall
    tool: Tool
    whose: tuple[str, ...] = ()
    """what the account that it would be made with is called, however the call names it"""

    def policy(self, config: SessionConfig) -> Policy:
        """What a session of this configuration does with it."""
        return policy_for(config, self.tool, self.call.account, self.whose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What came back with a call that was asked about."""

    state: str = field(default="", repr=False)
    responses: Mapping[str, Json] = field(default_factory=dict)

    @property
    def are_there(self) -> bool:
        """Whether anything did."""
        return bool(self.state or self.responses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """On several calls."""

    asks: InputRequired | None = None
    """then none of them is made now"""
    refused: Mapping[int, str] = field(default_factory=dict)
    """why not, by the number of the call"""


def policy_for(config: SessionConfig, tool: Tool, account: str, whose: Sequence[str] = ()) -> Policy:
    """What a session of this configuration does with a call of a tool; `whose` are other names of the account."""
    names = {account or NO_ACCOUNT, *whose}
    overrides = config.permissions.overrides
    # BARRIER: another tool that does the same would do what is denied or asked about by one name; held by
    # tests/unit/core/router/test_approving.py.
    exact = {key: policy for key, policy in overrides.items() if not key.startswith(EVERY_TOOL)}
    others = [_said(config, tool, other, exact, names) or Policy.ALWAYS_ALLOW for other in tool.acts_as]
    own = _said(config, tool, tool.slug, overrides, names) or _usual(config, tool)
    return min((own, *others), key=_STRICTEST.index)


def _said(
    config: SessionConfig, tool: Tool, name: str, overrides: Mapping[str, Policy], whose: Set[str]
) -> Policy | None:
    """What the configuration says of that name, of a tool or of another that does the same; None if nothing."""
    override = _override(overrides, name, whose)
    if override is Policy.ALWAYS_DENY:
        return Policy.ALWAYS_DENY
    if any(one.tools.asks_first(name) for one in config.tools_of(tool.toolkit)):
        return override if override is Policy.ASK_ONCE else Policy.ASK_ALWAYS
    return override


def _usual(config: SessionConfig, tool: Tool) -> Policy:
    if is_asked_first(config, tool):
        return Policy.ASK_ALWAYS
    if _READ_ONLY in tool.tags or config.permissions.default is DefaultPolicy.ALLOW_ALL:
        return Policy.ALWAYS_ALLOW
    return Policy.ASK_ONCE if config.permissions.default is DefaultPolicy.ASK_ONCE else Policy.ASK_ALWAYS


def _override(overrides: Mapping[str, Policy], slug: str, whose: Set[str]) -> Policy | None:
    """The most exact one; of those that are as exact, the strictest."""
    # BARRIER: what is ruled out for an account would be done by its alias, or by naming none; held by
    # tests/unit/core/router/test_approving.py.
    for names in ([f"{slug}:{one}" for one in whose], [slug], [f"{EVERY_TOOL}:{one}" for one in whose], [EVERY_TOOL]):
        found = [policy for name, policy in overrides.items() if is_named(name, names)]
        if found:
            return min(found, key=_STRICTEST.index)
    return None


class Approvals:
    """Asks, and knows what was answered."""

    def __init__(self, *, memory: ToolMemory, clock: Clock, key: Callable[[], bytes]) -> None:
        self._memory = memory
        self._clock = clock
        self._key = key

    async def consider(self, session: Session, calls: Sequence[Considered], answers: Answers) -> Verdict:
        """Whether they may be made: all that need it are asked about at once.

        Raises:
            InvalidRequest: what came back is no answer to this question.
        """
        policies = [one.policy(session.spec.config) for one in calls]
        refused = {
            number: denied_words(one.call.slug)
            for number, (one, policy) in enumerate(zip(calls, policies, strict=True))
            if policy is Policy.ALWAYS_DENY
        }
        allowed = await self._allowed_tools(session) if any(one in _ASKING for one in policies) else frozenset()
        asked = {
            number: one
            for number, (one, policy) in enumerate(zip(calls, policies, strict=True))
            if policy in _ASKING and not (policy is Policy.ASK_ONCE and _subject(one) in allowed)
        }
        if not asked:
            return Verdict(refused=refused)
        digest = _digest_of([_digest(one) for one in asked.values()])
        if not answers.are_there:
            lines = _lines(list(asked.values()))
            return Verdict(asks=self._question(session, digest, _asking(lines)), refused=refused)
        decision = await self._decided(session, digest, answers)
        if decision is Decision.DENY:
            words = "a person was asked about this call and did not allow it; do not try again unless they ask for it"
            return Verdict(refused={**refused, **dict.fromkeys(asked, words)})
        once = {_subject(one) for number, one in asked.items() if policies[number] is Policy.ASK_ONCE}
        if decision is Decision.ALLOW_SESSION:
            once |= {_subject(one) for one in asked.values()}
        for subject in sorted(once):
            await self._put(session, subject, MarkState.GRANTED, _SESSION_S)
        return Verdict(refused=refused)

    async def check_inside(self, session: Session, one: Considered) -> None:
        """For a call of code in the session's sandbox.

        Raises:
            Denied: it is not allowed, or somebody has to be asked first: then it is written down.
        """
        policy = one.policy(session.spec.config)
        if policy is Policy.ALWAYS_DENY:
            raise Denied(denied_words(one.call.slug), {"tool": one.call.slug})
        if policy not in _ASKING:
            return
        if policy is Policy.ASK_ONCE and _subject(one) in await self._allowed_tools(session):
            return
        subject = f"{_WAITING}{_digest(one)}"
        now = self._clock.now_iso()
        # BARRIER: what was allowed once is done once; held by tests/unit/core/router/test_approving.py.
        if await self._memory.take(session.spec.id, subject, now):
            return
        waiting = [mark for mark in await self._memory.marks(session.spec.id, now) if mark.state is MarkState.WAITING]
        if len(waiting) < _MOST_WAITING:
            mark = ApprovalMark(
                subject=subject,
                state=MarkState.WAITING,
                words=_line(one, _MOST_OF_A_WAITING),
                until=self._clock.after(_WAITING_S),
            )
            await self._memory.keep(session.spec.id, mark, now)
        raise Denied(
            f"{one.call.slug} was not run: a person has to approve it, and code cannot ask one. The call is written "
            f"down (at most {_MOST_WAITING} are). Make the other calls that need approval too, and end the cell; with "
            "the next cell a person is asked about all of them at once. Then make exactly the same calls again",
            {"tool": one.call.slug, "approval": "required"},
        )

    async def before_cell(self, session: Session, answers: Answers) -> InputRequired | None:
        """About the calls of the session's code that wait, before it is given more to do; None if none does.

        Raises:
            InvalidRequest: what came back is no answer to this question.
        """
        now = self._clock.now_iso()
        waiting = [mark for mark in await self._memory.marks(session.spec.id, now) if mark.state is MarkState.WAITING]
        if not waiting:
            return None
        digest = _digest_of([mark.subject for mark in waiting])
        if not answers.are_there:
            head = "Code in the sandbox wants to make these calls, once each. Approving lets exactly them through:"
            return self._question(session, digest, _asking([mark.words for mark in waiting], head))
        decision = await self._decided(session, digest, answers)
        if decision is Decision.DENY:
            await self._memory.drop(session.spec.id, [mark.subject for mark in waiting])
            return None
        for mark in waiting:
            await self._put(session, mark.subject, MarkState.GRANTED, _GRANTED_S)
        return None

    async def _allowed_tools(self, session: Session) -> frozenset[str]:
        marks = await self._memory.marks(session.spec.id, self._clock.now_iso())
        return frozenset(one.subject for one in marks if one.state is MarkState.GRANTED)

    async def _put(self, session: Session, subject: str, state: MarkState, seconds: float) -> None:
        mark = ApprovalMark(subject=subject, state=state, until=self._clock.after(seconds))
        await self._memory.put(session.spec.id, mark, self._clock.now_iso())

    def _question(self, session: Session, digest: str, message: str) -> InputRequired:
        said = {"n": secrets.token_urlsafe(12), "until": self._clock.after(_ANSWER_S), "calls": digest}
        body = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
        return InputRequired(message=message, schema=_SCHEMA, state=f"{body}.{self._signature(session, body)}")

    def _signature(self, session: Session, body: str) -> str:
        # The time that the session was made at: another of the same name is another session.
        parts = (_VERSION, session.spec.project, session.spec.id, session.created_at, body)
        text = "".join(f"{len(part.encode())}:{part}" for part in parts)
        made = hmac.digest(self._key(), text.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(made).rstrip(b"=").decode()

    async def _decided(self, session: Session, digest: str, answers: Answers) -> Decision:
        """BARRIER: who could make an answer up, or use one again or for other calls, would act without anybody's
        approval; held by tests/unit/core/router/test_approving.py.
        """
        state = answers.state[:_MOST_STATE]
        body, _, signature = state.partition(".")
        if not hmac.compare_digest(self._signature(session, body).encode(), signature.encode("utf-8", "replace")):
            raise _no_answer("`request_state` is not what this session was given")
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if said["until"] <= self._clock.now_iso():
            raise _no_answer("the question was asked too long ago")
        if said["calls"] != digest:
            raise _no_answer("the calls are not those that were asked about: tools, arguments and accounts must be")
        decision = _decision(answers.responses)
        mark = ApprovalMark(subject=f"{_ANSWER}{said['n']}", state=MarkState.USED, until=said["until"])
        if not await self._memory.keep(session.spec.id, mark, self._clock.now_iso()):
            raise _no_answer("this answer was used already, and one answer is good for one time")
        return decision


_ASKING = frozenset({Policy.ASK_ONCE, Policy.ASK_ALWAYS})


def _decision(responses: Mapping[str, Json]) -> Decision:
    response = responses.get(REQUEST)
    if response is None:
        raise _no_answer(f"`input_responses` has no answer to {REQUEST!r}")
    action, content = response.get("action"), response.get("content") or {}
    if action not in _ACTIONS:
        raise _no_answer(f"`input_responses.{REQUEST}.action` has to be one of {', '.join(_ACTIONS)}")
    if action != _ACCEPT:
        return Decision.DENY
    decided = content.get(_DECISION, Decision.ALLOW_ONCE) if isinstance(content, dict) else None
    if not isinstance(decided, str) or decided not in set(Decision):
        raise _no_answer(f"`input_responses.{REQUEST}.content.{_DECISION}` has to be one of {', '.join(Decision)}")
    return Decision(decided)


def _no_answer(why: str) -> InvalidRequest:
    return InvalidRequest(
        f"{why}; nothing was run. Send the call without `request_state` and `input_responses` to be asked again",
        {"field": "request_state"},
    )


def denied_words(slug: str) -> str:
    """For a tool that is never run."""
    return f"{slug} is never run in this session: its `permissions` say always_deny"


def _subject(one: Considered) -> str:
    # With the toolkit: raw calls to all services have one name.
    return f"{_TOOL}{one.tool.toolkit}:{one.call.slug}:{_account(one) or NO_ACCOUNT}"


def _digest(one: Considered) -> str:
    return _digest_of([one.tool.toolkit, one.call.slug, one.call.arguments, one.call.account, _account(one)])


def _account(one: Considered) -> str:
    """BARRIER: what was approved for the account that is the usual one now would be done with another that was
    connected since; held by tests/unit/core/router/test_approving.py.
    """
    return one.whose[0] if one.whose else one.call.account


def _digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _line(one: Considered, room: int = _MOST_OF_A_CALL) -> str:
    given = json.dumps(one.call.arguments, ensure_ascii=False)
    shown = given if len(given) <= room else f"{given[:room]}… ({len(given):,} characters in all)"
    account = f" as {_account(one)[:_MOST_OF_AN_ACCOUNT]}" if _account(one) else ""
    return _visible(f"{one.call.slug}{account}: {shown}")


def _visible(text: str) -> str:
    """BARRIER: characters that are not seen, or turn the direction of writing around, would show a person another call
    than they approve; held by tests/unit/core/router/test_approving.py.
    """
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def _lines(calls: Sequence[Considered]) -> list[str]:
    """One for each: whoever approves sees all of them, and as much of each as there is room for."""
    room = min(_MOST_OF_A_CALL, _MOST_OF_A_MESSAGE // max(1, len(calls)))
    return [_line(one, room) for one in calls]


def _asking(lines: Sequence[str], head: str = "") -> str:
    head = head or ("Run this tool?" if len(lines) == 1 else f"Run these {len(lines)} tools?")
    return "\n".join([head, *(f"{number}. {line}" for number, line in enumerate(lines, 1))])
