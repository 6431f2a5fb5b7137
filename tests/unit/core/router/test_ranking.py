"""The tools that share most with a task come first, and those that share nothing do not come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from workbench.core.router.ranking import BY_WORDS, Ranking, Task
from workbench.core.router.wording import sentence_of, words_of
from workbench.model.toolkit import Tool, Toolkit


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


async def slugs(tools: Sequence[Tool], query: str) -> list[str]:
    return [one.tool.slug for one in (await Ranking(tools).best([Task(words=query)], 10))[0]]


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
async def test_the_best_one_is_first(query: str, slug: str) -> None:
    assert (await slugs(TOOLS, query))[0] == slug


async def test_the_one_that_is_called_as_the_task_has_it_gains_by_that_and_no_other_does() -> None:
    tools = [*TOOLS, tool("GITHUB_GET_A_PULL_REQUEST_REVIEW", "A review of a pull request.")]
    task = [Task(words="get a pull request")]
    (with_it,) = await Ranking(tools).best(task, 10)
    (without,) = await Ranking(tools).best(task, 10, weights=replace(BY_WORDS, exact=0.0))
    before = {one.tool.slug: one.score for one in without}
    gained = {one.tool.slug for one in with_it if one.score > before[one.tool.slug]}
    assert gained == {"GITHUB_GET_A_PULL_REQUEST"}


@pytest.mark.parametrize("query", ["", "the of and", "bake bread", "one number among many words that nobody else said"])
async def test_what_shares_nothing_or_one_word_of_many_is_not_found(query: str) -> None:
    assert await slugs(TOOLS, query) == []
    assert await slugs([], query) == []


async def test_the_order_does_not_depend_on_how_they_were_given() -> None:
    assert await slugs(TOOLS, "send a message") == await slugs(TOOLS[::-1], "send a message")


async def test_a_tool_that_is_not_allowed_is_left_out_and_so_is_another_one_of_its_name() -> None:
    ranking = Ranking(TOOLS)
    mine = {one.slug: one for one in TOOLS[1:]}
    mine["SLACK_SEND_MESSAGE"] = replace(TOOLS[4], description="Another one.")
    found = (await ranking.best([Task(words="send an email or a message")], 10, mine))[0]
    assert "GMAIL_SEND_EMAIL" not in [one.tool.slug for one in found]
    assert "SLACK_SEND_MESSAGE" not in [one.tool.slug for one in found]


async def test_the_app_that_is_named_comes_before_others_that_do_the_same() -> None:
    assert (await slugs([*TOOLS, tool("TEAMS_SEND_MESSAGE", TOOLS[4].description)], "send a message by slack"))[0] == (
        "SLACK_SEND_MESSAGE"
    )
    assert (await slugs([*TOOLS, tool("TEAMS_SEND_MESSAGE", TOOLS[4].description)], "send a message in teams"))[0] == (
        "TEAMS_SEND_MESSAGE"
    )


async def test_who_wants_to_read_is_not_shown_first_what_deletes() -> None:
    about = [
        replace(tool("APP_GET_NOTE", "A note."), tags=("readOnlyHint",)),
        replace(tool("APP_DELETE_NOTE", "A note."), tags=("destructiveHint",)),
    ]
    assert (await slugs(about, "read a note"))[0] == "APP_GET_NOTE"
    assert (await slugs(about, "remove a note"))[0] == "APP_DELETE_NOTE"


async def test_a_tool_is_found_by_what_people_call_the_things_of_its_service() -> None:
    ours = Toolkit(slug="slack", name="Slack", terms={"conversation": "channel", "kick": "remove"})
    kick = tool("SLACK_CONVERSATION_KICK", "Kick somebody.")
    ranking = Ranking([*TOOLS, kick], {"slack": ours})
    assert "Slack: slack channel remove. remove somebody." in ranking.sentences()
    found = (await ranking.best([Task(words="remove Ann from the channel")], 3))[0]
    assert found[0].tool is kick


async def test_a_toolkit_is_found_by_what_it_says_of_itself() -> None:
    about = {
        one: Toolkit(slug=one, name=one, description=f"{one} is for {use}")
        for one, use in (("alpha", "shops"), ("beta", "schools"))
    }
    tools = [replace(tool(f"{one.upper()}_LIST_ITEMS", "Items."), toolkit=one) for one in about]
    found = (await Ranking(tools, about).best([Task(words="list the items of schools")], 2))[0]
    assert [one.tool.toolkit for one in found] == ["beta", "alpha"]


async def test_what_is_deprecated_comes_after_what_does_the_same() -> None:
    old = tool("APP_ADD_NOTE", "Deprecated. Adds a note.")
    new = tool("APP_ADD_NOTES", "Adds a note.")
    assert await slugs([old, new], "add a note") == ["APP_ADD_NOTES", "APP_ADD_NOTE"]


async def test_each_of_the_many_changes_that_one_tool_makes_is_found() -> None:
    kinds = {
        f"{verb}Chart": {"type": "object", "description": f"Will {verb} a chart. Really."}
        for verb in ["add", "sort", "fill", "hide", "cut"]
    }
    schema = {"properties": {"requests": {"type": "array", "items": {"properties": kinds}}}}
    many = replace(tool("APP_CHANGE", "Applies one or more updates."), name="Batch update sheets", input_schema=schema)
    ranking = Ranking([*TOOLS, many])
    assert "app: sort chart. will sort a chart." in ranking.sentences()
    assert (await ranking.best([Task(words="hide the chart")], 3))[0][0].tool is many


@pytest.mark.parametrize(
    "schema", [{}, {"properties": {"requests": {"items": True}}}, {"properties": {"requests": {}}}]
)
def test_a_tool_of_many_changes_without_a_list_of_them_is_one_sentence(schema: dict[str, object]) -> None:
    many = replace(tool("APP_CHANGE", "Applies updates."), name="Batch update sheets", input_schema=schema)
    assert len(Ranking([many]).sentences()) == 1


class Fixed:
    """A meaning that is told to it, text by text."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values = values
        self.asked: list[str] = []

    def why_not(self) -> str:
        return ""

    async def of(self, texts: Sequence[str]) -> Fixed:
        self.rows = [next((value for word, value in self.values.items() if word in text), 0.1) for text in texts]
        return self

    async def alike(self, questions: Sequence[str]) -> list[list[float]]:
        self.asked.extend(questions)
        return [self.rows for _ in questions]


async def test_what_is_near_in_meaning_is_found_without_a_word_in_common() -> None:
    ranking = Ranking(TOOLS)
    await ranking.learn(Fixed({"fetch emails": 0.7}))
    found = (await ranking.best([Task(words="did my aunt write")], 10))[0]
    assert [one.tool.slug for one in found] == ["GMAIL_FETCH_EMAILS"]


async def test_what_is_not_learned_yet_is_found_by_its_words() -> None:
    ranking = Ranking(TOOLS)
    await ranking.learn(Fixed({"": math.nan}))
    found = (await ranking.best([Task(words="send an email to bob")], 10))[0]
    assert found[0].tool.slug == "GMAIL_SEND_EMAIL"
    assert all(math.isfinite(one.score) for one in found)


async def test_known_fields_are_words_and_no_part_of_the_question() -> None:
    meaning = Fixed({})
    ranking = Ranking(TOOLS)
    await ranking.learn(meaning)
    await ranking.best([Task(words="send it", fields="channel_name: general")], 10)
    assert meaning.asked == ["send it"]


def test_words_have_a_common_form() -> None:
    assert words_of("Searching SEARCHES_searched, the search!") == ["search"] * 4


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Create a card. Adds a card to a list. More of it.", "Trello: create a card. Adds a card to a list."),
        ("Create a card: POST /cards/{idCard}", "Trello: create a card."),
        ("See [the manual](https://example.com/a).", "Trello: create a card. See the manual."),
        ("", "Trello: create a card."),
    ],
)
def test_a_tool_is_one_sentence_of_its_app_its_name_and_what_it_does(description: str, sentence: str) -> None:
    assert sentence_of("Trello", "Create a card", description) == sentence
