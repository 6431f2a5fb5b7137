"""`invoke_llm` and `web_search`: a language model and a search of the web, both outside of the sandbox."""

from __future__ import annotations

from typing import Any

from workbench_guest.helpers.arguments import text_problem
from workbench_guest.helpers.dressing import dressed
from workbench_guest.helpers.retrying import ask_patiently

MOST_QUERY_CHARACTERS = 200_000
EFFORTS = ("low", "medium", "high")


def invoke_llm(query: str, reasoning_effort: str | None = None) -> tuple[str, str]:
    """Ask a language model: to sum up, to sort, to pull facts out of text, to write.

        answer, error = invoke_llm(f"One word, positive or negative: {review}")

    It sees the query and nothing else: no files, no images, no variables, nothing of earlier calls. For many texts ask
    from a pool of about ten threads, one text each.

    Args:
        query: all that it is to know, at most 200,000 characters.
        reasoning_effort: "low", "medium" or "high"; None leaves it to the model.

    Returns:
        `(answer, error)`: the model's text and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    problem = _query_problem(query)
    if not problem and reasoning_effort is not None and reasoning_effort not in EFFORTS:
        problem = f"reasoning_effort has to be one of {', '.join(EFFORTS)}, or None, not {reasoning_effort!r}"
    if problem:
        return "", problem
    return _text(ask_patiently("invoke_llm", {"query": query, "reasoning_effort": reasoning_effort}))


def web_search(query: str) -> tuple[str, str]:
    """Search the web, and get an answer in words, with its sources where there are any.

        answer, error = web_search("population of Bern in 2024")

    Args:
        query: what to look for, at most 200,000 characters.

    Returns:
        `(answer, error)`: a text and `""`, or `""` and what went wrong. Never raises for a failed call.
    """
    problem = _query_problem(query)
    if problem:
        return "", problem
    return _text(ask_patiently("web_search", {"query": query}))


def _query_problem(query: Any) -> str:
    if isinstance(query, str) and len(query) > MOST_QUERY_CHARACTERS:
        return f"query has {len(query):,} characters, and at most {MOST_QUERY_CHARACTERS:,} can be asked: split it"
    return text_problem("query", query)


def _text(answer: tuple[Any, str, str]) -> tuple[str, str]:
    result, error, _ = answer
    if error:
        return "", error
    return (
        dressed(result, "")
        if isinstance(result, str)
        else ("", f"the answer is a {type(result).__name__} and not a text")
    )
