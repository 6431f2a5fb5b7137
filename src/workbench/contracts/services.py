"""LanguageModel and WebSearch: what the server asks of others on behalf of code in a sandbox.

For the author of the next one: whoever asks is not trusted, and waits. So every call is bounded in time and in size,
and sends nothing but what it was given. Credentials belong to the adapter: none may be in an error, a repr or a log,
and what the other side says is quoted only in part, with the credential taken out. Calls may run side by side. They
raise:

* `NotConfigured`: there is no such service, or it has no key; the message names what to set.
* `InvalidRequest`: nothing was sent.
* `UpstreamUnavailable`: it does not answer, or not in time, or broke off.
* `UpstreamLimited`: it wants to be asked less often.
* `UpstreamRefused`: it does not take our key, or what we asked.
* `UpstreamBadAnswer`: the answer is too large, or makes no sense.

`testing.services_contract` is what each has to pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from workbench.errors import InvalidRequest

MOST_QUERY_CHARACTERS = 200_000
"""of a question to a model: some 50,000 tokens, which today's models take"""
MOST_SEARCH_CHARACTERS = 2_000
"""of what is searched for; most engines take less, and say so"""
MOST_FOUND = 10
"""of one search"""
MOST_FOUND_CHARACTERS = 2_000
"""of the text of one thing that was found"""
EFFORTS = ("", "low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked. One that cannot be asked cannot be made. Raises: InvalidRequest."""

    query: str = field(repr=False)
    reasoning_effort: str = ""
    """`low`, `medium` or `high`; empty for what the model does by itself"""
    system: str = field(default="", repr=False)
    """what it is told about its task beforehand, in the place that its service has for that; empty for nothing"""

    def __post_init__(self) -> None:
        check_query(self.query, "query", MOST_QUERY_CHARACTERS)
        if self.system:
            check_query(self.system, "the system's message", MOST_QUERY_CHARACTERS - len(self.query))
        if self.reasoning_effort not in EFFORTS:
            raise InvalidRequest(
                f"reasoning_effort must be one of {', '.join(EFFORTS[1:])}, or be left out; "
                f"not {self.reasoning_effort[:40]!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model answered."""

    text: str = field(repr=False)
    """without a fence around the whole of it"""
    model: str
    """by the name that the service gives it"""
    prompt_tokens: int
    """as the service counts; 0 if it does not"""
    completion_tokens: int
    cut_short: bool = False
    """it reached the limit of tokens, and would have gone on"""


class LanguageModel(Protocol):
    """Owned by who wired it. Nothing is opened or started before the first question."""

    async def complete(self, question: Question) -> Completion:
        """Its answer. May be cancelled; then nothing of the question goes on here."""
        ...

    async def aclose(self) -> None:
        """End connections and processes. May be called twice, and without a question before; none is asked after."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One page that a search found. All of it is somebody else's words."""

    title: str
    link: str
    """http or https"""
    text: str
    """plain, without markup; a part of the page or a summary; may be empty"""


class WebSearch(Protocol):
    """Owned by who wired it. Nothing is opened before the first search."""

    async def search(self, query: str) -> tuple[Found, ...]:
        """At most MOST_FOUND, the best first; empty if there is nothing. May be cancelled."""
        ...

    async def aclose(self) -> None:
        """End connections. May be called twice, and without a search before; none is made after."""
        ...


def check_query(query: str, name: str, most: int) -> None:
    """Raises: InvalidRequest, with the numbers."""
    if not query.strip():
        raise InvalidRequest(f"{name} is empty; say what is asked for")
    if len(query) > most:
        raise InvalidRequest(
            f"{name} has {len(query):,} characters, and {most:,} may be asked at once; shorten it, or ask in parts",
            {"characters": str(len(query)), "most": str(most)},
        )
    try:
        query.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise InvalidRequest(f"{name} is no text: half of a character at {problem.start}") from None
