"""Services of others by the names that people know."""

from __future__ import annotations

from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, ToolResult
from workbench.toolkits.shipped.adapted.adaptation import (
    READS,
    REMOVES,
    Adaptation,
    Given,
    Step,
    adapted,
    flag,
    number,
    passed,
    text,
    texts,
)


async def _say(step: Step, given: Given) -> ToolResult:
    words = given.text("markdown_text") or given.text("text")
    if not words and not given.arguments.get("blocks") and not given.arguments.get("attachments"):
        raise InvalidRequest("`text` is missing: there is nothing to say", {"argument": "text"})
    asked: dict[str, Any] = {"channel": given.needed("channel")}
    if words:
        asked["text"] = words
    for name in ("thread_ts", "blocks", "attachments", "username", "icon_emoji", "unfurl_links", "unfurl_media"):
        if given.arguments.get(name) is not None:
            asked[name] = given.arguments[name]
    return await step("SLACK_CHAT_POST_MESSAGE", asked)


async def _channels(step: Step, given: Given) -> ToolResult:
    asked = {"limit": 1000, "exclude_archived": given.flag("exclude_archived", usual=True), "types": _ALL_CHANNELS}
    found = await step("SLACK_LIST_ALL_CHANNELS", asked)
    return found if found.error else _matching(found, "channels", given)


async def _people(step: Step, given: Given) -> ToolResult:
    found = await step("SLACK_LIST_ALL_USERS", {"limit": 1000})
    return found if found.error else _matching(found, "members", given)


def _matching(found: ToolResult, kind: str, given: Given) -> ToolResult:
    """Slack looks for none of them itself: of one long page, those with the words somewhere in their names."""
    words = given.needed("search_query").strip().lstrip("#@").casefold()
    page = [one for one in found.data.get(kind) or () if isinstance(one, dict)]
    hits = [one for one in page if words in " ".join(_names(one)).casefold()]
    rest = found.data.get("response_metadata") or {}
    told: Json = {kind: hits[: given.number("limit", 50, 1, 1000)], "looked_through": len(page)}
    if isinstance(rest, dict) and rest.get("next_cursor"):
        told["note"] = "There are more than were looked through: list them page by page, if it is not among these."
    return ToolResult(data=told, http_status=found.http_status)


def _names(one: Json) -> list[str]:
    about = one.get("profile") if isinstance(one.get("profile"), dict) else {}
    told = [one.get("name"), one.get("real_name"), *((about or {}).get(name) for name in _NAMES)]
    return [value for value in told if isinstance(value, str)]


async def _issue(step: Step, given: Given) -> ToolResult:
    fields: dict[str, Any] = {
        "project": {"key": given.needed("project_key")},
        "summary": given.needed("summary"),
        "issuetype": {"name": given.text("issue_type") or "Task"},
    }
    if words := given.text("description"):
        fields["description"] = document(words)
    if labels := given.texts("labels"):
        fields["labels"] = labels
    if who := given.text("assignee"):
        fields["assignee"] = {"accountId": who}
    if urgency := given.text("priority"):
        fields["priority"] = {"name": urgency}
    if until := given.text("due_date"):
        fields["duedate"] = until
    if parent := given.text("parent"):
        fields["parent"] = {"key": parent}
    return await step("JIRA_CREATE_ISSUE_WITH_FIELDS", {"fields": fields})


async def _comment(step: Step, given: Given) -> ToolResult:
    asked = {"issueIdOrKey": given.needed("issue_id_or_key"), "body": document(given.needed("comment"))}
    return await step("JIRA_ADD_COMMENT_AS_DOCUMENT", asked)


def document(words: str) -> Json:
    """A text as Jira has them, a paragraph for each line."""
    lines = [[{"type": "text", "text": line}] if line else [] for line in words.splitlines()]
    return {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": line} for line in lines]}


_ALL_CHANNELS = "public_channel,private_channel"
_NAMES = ("display_name", "real_name", "email")
_QUERY: dict[str, Json] = {
    "search_query": text("A part of the name."),
    "limit": number("How many at most.", default=50, minimum=1, maximum=1000),
}

OTHERS: tuple[Adaptation, ...] = (
    adapted(
        "SLACK_SEND_MESSAGE",
        "Send a message to a channel, a group or a person; with `thread_ts` as an answer in a thread.",
        {
            "channel": text("Id or name of the channel, or id of the person: `C0123456789`, `#general`."),
            "text": text("What it says, in Slack's own markup."),
            "markdown_text": text("The same; counts instead of `text` if both are there."),
            "thread_ts": text("`ts` of the message that it answers."),
            "blocks": text("Blocks of Slack's own, as JSON."),
            "attachments": text("Attachments of Slack's own, as JSON."),
            "username": text("Under which name the bot speaks."),
            "icon_emoji": text("With which face: `:robot_face:`."),
            "unfurl_links": flag("Whether links are shown with what they lead to.", default=True),
            "unfurl_media": flag("Whether media are shown.", default=True),
        },
        _say,
        required=("channel",),
    ),
    adapted(
        "SLACK_FIND_CHANNELS",
        "Find channels by a part of their names.",
        {**_QUERY, "exclude_archived": flag("Whether archived ones are left out.", default=True)},
        _channels,
        required=("search_query",),
        tags=READS,
    ),
    adapted(
        "SLACK_FIND_USERS",
        "Find people of the team by a part of their names or e-mail addresses.",
        _QUERY,
        _people,
        required=("search_query",),
        tags=READS,
    ),
    adapted(
        "STRIPE_CANCEL_SUBSCRIPTION",
        "Cancel a subscription of a customer, at once.",
        {
            "subscription_id": text("Of the subscription: `sub_…`."),
            "invoice_now": flag("Whether what is open is billed now."),
            "prorate": flag("Whether what was paid and not used is given back."),
        },
        passed(
            "STRIPE_DELETE_SUBSCRIPTION",
            {"subscription_id": "subscription_exposed_id", "invoice_now": "invoice_now", "prorate": "prorate"},
        ),
        required=("subscription_id",),
        tags=REMOVES,
    ),
    adapted(
        "JIRA_CREATE_ISSUE",
        "Create an issue in a project.",
        {
            "project_key": text("Of the project: `ABC`."),
            "summary": text("What it is about, in one line."),
            "description": text("More about it; plain text."),
            "issue_type": text("What it is: `Task`, `Bug`, `Story`.", default="Task"),
            "priority": text("How urgent: `High`."),
            "labels": texts("Its labels."),
            "assignee": text("Account id of who does it."),
            "due_date": text("Until when: `2026-05-01`."),
            "parent": text("Key of the issue that it is part of."),
        },
        _issue,
        required=("project_key", "summary"),
    ),
    adapted(
        "JIRA_ADD_COMMENT",
        "Comment on an issue.",
        {"issue_id_or_key": text("Of the issue: `ABC-12`."), "comment": text("What it says; plain text.")},
        _comment,
        required=("issue_id_or_key", "comment"),
    ),
)
