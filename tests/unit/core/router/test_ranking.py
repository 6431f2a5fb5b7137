"""The tools that share most with a task come first, and those that share nothing do not come."""

from __future__ import annotations

import pytest

from workbench.core.router.ranking import Ranking, words_of
from workbench.model.toolkit import Tool


def tool(slug: str, description: str) -> Tool:
    name = slug.replace("_", " ").title()
    return Tool(slug=slug, name=name, description=description, toolkit=slug.split("_")[0].lower(), input_schema={})


TOOLS = [
    tool("GMAIL_SEND_EMAIL", "Send an email to one or more recipients."),
    tool("GMAIL_FETCH_EMAILS", "List messages of the mailbox, newest first."),
    tool("GITHUB_CREATE_AN_ISSUE", "Open an issue in a repository."),
    tool("GITHUB_GET_A_PULL_REQUEST", "A pull request of a repository by its number."),
    tool("SLACK_SEND_MESSAGE", "Send a message to a channel or person."),
    tool("GOOGLESHEETS_BATCH_UPDATE", "Write values into a range of a spreadsheet."),
]


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("send an email to bob", "GMAIL_SEND_EMAIL"),
        ("fetch unread emails", "GMAIL_FETCH_EMAILS"),
        ("create a github issue", "GITHUB_CREATE_AN_ISSUE"),
        ("creating issues", "GITHUB_CREATE_AN_ISSUE"),
        ("get pull request 12", "GITHUB_GET_A_PULL_REQUEST"),
        ("message the slack channel", "SLACK_SEND_MESSAGE"),
        ("update a spreadsheet", "GOOGLESHEETS_BATCH_UPDATE"),
    ],
)
def test_the_best_one_is_first(query: str, slug: str) -> None:
    assert Ranking(TOOLS).best(query)[0][0].slug == slug


@pytest.mark.parametrize("query", ["", "the of and", "bake bread", "one number among many words that nobody else said"])
def test_what_shares_nothing_or_one_word_of_many_is_not_found(query: str) -> None:
    assert Ranking(TOOLS).best(query) == []
    assert Ranking([]).best(query) == []


def test_the_order_does_not_depend_on_how_they_were_given() -> None:
    query = "send a message"
    orders = {tuple(one.slug for one, _ in Ranking(tools).best(query)) for tools in (TOOLS, TOOLS[::-1])}
    assert len(orders) == 1


def test_words_have_a_common_form() -> None:
    assert words_of("Searching SEARCHES_searched, the search!") == ["search"] * 4
