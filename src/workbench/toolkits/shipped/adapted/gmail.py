"""Gmail by the names that people know: mails are written and read here, so that nobody has to encode one."""

from __future__ import annotations

import asyncio
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, ToolResult
from workbench.toolkits.shipped.adapted.adaptation import (
    READS,
    REPLACES,
    Adaptation,
    Given,
    Step,
    a_file,
    adapted,
    flag,
    number,
    passed,
    text,
    texts,
)
from workbench.toolkits.shipped.adapted.mails import Mail, encoded, header, told

_SEND, _DRAFT = "GMAIL_USERS_MESSAGES_SEND", "GMAIL_USERS_DRAFTS_CREATE"
_GET, _LIST, _THREAD = "GMAIL_USERS_MESSAGES_GET", "GMAIL_USERS_MESSAGES_LIST", "GMAIL_USERS_THREADS_GET"
_MODIFY = "GMAIL_USERS_MESSAGES_MODIFY"
# Above this a message is uploaded instead of being a text in JSON.
_MOST_INLINE = 3 * 2**20
_EML = "message.eml"
_MOST_FETCHED, _AT_ONCE = 100, 8
_USER = text("Whose mailbox; `me` for the account's own.", default="me")
_WRITTEN: dict[str, Json] = {
    "recipient_email": text("To whom: `ada@example.com`, or `Ada <ada@example.com>`."),
    "subject": text("The subject."),
    "body": text("What the mail says; plain text unless `is_html`."),
    "extra_recipients": texts("More of those it is to."),
    "cc": texts("Who gets a copy."),
    "bcc": texts("Who gets a copy without the others seeing it."),
    "is_html": flag("Whether the body is HTML."),
    "attachment": a_file("A file of the session's mount to attach."),
    "from_email": text("An alias of the account to send as."),
    "user_id": _USER,
}
_MESSAGE: Json = {
    "type": "object",
    "properties": {
        "messageId": text("Its id."),
        "threadId": text("Of the conversation."),
        "labelIds": texts("Its labels."),
        "messageTimestamp": text("When it came, in milliseconds since 1970."),
        "sender": text("From whom."),
        "to": text("To whom."),
        "subject": text("Its subject."),
        "preview": text("How it begins."),
        "messageText": text("What it says."),
        "attachmentList": {"type": "array", "items": {"type": "object"}, "description": "What is attached."},
    },
}


async def _send(step: Step, given: Given) -> ToolResult:
    return await _sent(step, given, _mail(given, given.text("body")), {})


async def _draft(step: Step, given: Given) -> ToolResult:
    content = _mail(given, given.text("body")).as_bytes()
    message: Json = {"raw": encoded(content)}
    if thread := given.text("thread_id"):
        message["threadId"] = thread
    return await step(_DRAFT, {"userId": _user(given), "message": message})


async def _reply(step: Step, given: Given) -> ToolResult:
    """An answer belongs to a conversation by its headers as well as by its thread."""
    thread = given.needed("thread_id")
    asked = {"userId": _user(given), "id": thread, "format": "metadata"}
    found = await step(_THREAD, asked)
    if found.error:
        return found
    last = next((one for one in reversed(_listed(found.data, "messages")) if isinstance(one, dict)), {})
    payload = last.get("payload") if isinstance(last.get("payload"), dict) else {}
    subject = header(payload or {}, "Subject")
    mail = _mail(
        given,
        given.text("message_body"),
        subject=subject if subject.lower().startswith("re:") else f"Re: {subject}".strip(),
        answers=header(payload or {}, "Message-ID"),
        earlier=header(payload or {}, "References"),
    )
    return await _sent(step, given, mail, {"threadId": thread})


def _mail(given: Given, body: str, *, subject: str = "", answers: str = "", earlier: str = "") -> Mail:
    to = [*given.texts("recipient_email"), *given.texts("extra_recipients")]
    cc, bcc = given.texts("cc"), given.texts("bcc")
    if not (to or cc or bcc):
        raise InvalidRequest(
            "`recipient_email` is missing: nobody would get this mail", {"argument": "recipient_email"}
        )
    return Mail(
        to=to,
        cc=cc,
        bcc=bcc,
        subject=subject or given.text("subject"),
        body=body,
        sender=given.text("from_email"),
        is_html=given.flag("is_html"),
        attachment=given.file("attachment"),
        # Headers of others may be folded.
        answers=" ".join(answers.split()),
        earlier=" ".join(earlier.split()),
    )


async def _sent(step: Step, given: Given, mail: Mail, more: Json) -> ToolResult:
    content = mail.as_bytes()
    arguments = {"userId": _user(given), **more}
    if len(content) <= _MOST_INLINE:
        return await step(_SEND, {**arguments, "raw": encoded(content)})
    upload = {"name": _EML, "mimetype": "message/rfc822", "s3key": _EML}
    return await step(_SEND, {**arguments, "file_to_upload": upload}, {_EML: content})


async def _fetch(step: Step, given: Given) -> ToolResult:
    asked: dict[str, Any] = {"userId": _user(given), "maxResults": given.number("max_results", 10, 1, _MOST_FETCHED)}
    if query := given.text("query"):
        asked["q"] = query
    if labels := given.texts("label_ids"):
        asked["labelIds"] = labels
    if page := given.text("page_token"):
        asked["pageToken"] = page
    if given.flag("include_spam_trash"):
        asked["includeSpamTrash"] = True
    found = await step(_LIST, asked)
    if found.error:
        return found
    ids = [str(one["id"]) for one in _listed(found.data, "messages") if isinstance(one, dict) and "id" in one]
    rest = {"nextPageToken": found.data.get("nextPageToken", ""), "resultSizeEstimate": len(ids)}
    if isinstance(found.data.get("resultSizeEstimate"), int):
        rest["resultSizeEstimate"] = found.data["resultSizeEstimate"]
    if given.flag("ids_only"):
        return ToolResult(data={"messages": _listed(found.data, "messages"), **rest}, http_status=found.http_status)
    full = "full" if given.flag("verbose", usual=True) else "metadata"
    messages, broken = await _messages(step, _user(given), ids, full, with_payload=given.flag("include_payload"))
    if broken is not None and not messages:
        return broken
    if broken is not None:
        rest["not_fetched"] = f"{len(ids) - len(messages)} of {len(ids)}: {broken.error}"
    return ToolResult(data={"messages": messages, **rest}, http_status=found.http_status)


async def _messages(
    step: Step, user: str, ids: list[str], form: str, *, with_payload: bool
) -> tuple[list[Json], ToolResult | None]:
    """In order, some at once; and the first that failed."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(message: str) -> ToolResult:
        async with turns:
            return await step(_GET, {"userId": user, "id": message, "format": form})

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(message)) for message in ids]
    results = [task.result() for task in tasks]
    good = [told(result.data, with_payload=with_payload) for result in results if not result.error]
    return good, next((result for result in results if result.error), None)


async def _one(step: Step, given: Given) -> ToolResult:
    form = given.text("format", "full")
    found = await step(_GET, {"userId": _user(given), "id": given.needed("message_id"), "format": form})
    if found.error:
        return found
    data = {**told(found.data, with_payload=True), **({"raw": found.data["raw"]} if "raw" in found.data else {})}
    return ToolResult(data=data, http_status=found.http_status)


async def _thread(step: Step, given: Given) -> ToolResult:
    found = await step(_THREAD, {"userId": _user(given), "id": given.needed("thread_id"), "format": "full"})
    if found.error:
        return found
    messages = [told(one) for one in _listed(found.data, "messages") if isinstance(one, dict)]
    return ToolResult(data={"threadId": given.text("thread_id"), "messages": messages}, http_status=found.http_status)


def _user(given: Given) -> str:
    return given.text("user_id") or "me"


def _listed(data: Json, name: str) -> list[Any]:
    value = data.get(name)
    return value if isinstance(value, list) else []


_ID = text("Of the message.")
_THREAD_ID = text("Of the conversation.")

GMAIL: tuple[Adaptation, ...] = (
    adapted(
        "GMAIL_SEND_EMAIL",
        "Send an e-mail, as plain text or HTML, to one or more people, with cc, bcc and an attachment.",
        _WRITTEN,
        _send,
        required=("recipient_email", "subject", "body"),
        answers={"type": "object", "properties": {"id": _ID, "threadId": _THREAD_ID, "labelIds": texts("Its labels.")}},
    ),
    adapted(
        "GMAIL_CREATE_EMAIL_DRAFT",
        "Write an e-mail and keep it as a draft, without sending it; with `thread_id` as an answer in a conversation.",
        {**_WRITTEN, "thread_id": text("Of the conversation that it belongs to.")},
        _draft,
        required=("recipient_email", "subject", "body"),
    ),
    adapted(
        "GMAIL_REPLY_TO_THREAD",
        "Answer in an e-mail conversation; the subject and the references are those of its last message.",
        {
            "thread_id": _THREAD_ID,
            "message_body": text("What the answer says; plain text unless `is_html`."),
            **{name: one for name, one in _WRITTEN.items() if name not in {"subject", "body"}},
        },
        _reply,
        required=("thread_id", "recipient_email", "message_body"),
    ),
    adapted(
        "GMAIL_FETCH_EMAILS",
        "Fetch e-mails of the mailbox, newest first, with sender, subject, text and attachments; by a search query as "
        "in Gmail's search box (`from:ada@example.com is:unread newer_than:2d`) and by labels.",
        {
            "query": text("What to look for, as in Gmail's search box. Everything without."),
            "max_results": number("How many.", default=10, minimum=1, maximum=_MOST_FETCHED),
            "label_ids": texts("Only messages that have all of these labels: `INBOX`, `UNREAD`, `STARRED`."),
            "page_token": text("`nextPageToken` of the answer before."),
            "include_spam_trash": flag("Whether spam and what was thrown away is looked through as well."),
            "include_payload": flag("Whether all headers and parts are told."),
            "ids_only": flag("Whether only ids are told, which is fast."),
            "verbose": flag("Whether what the messages say is told.", default=True),
            "user_id": _USER,
        },
        _fetch,
        tags=READS,
        answers={
            "type": "object",
            "properties": {
                "messages": {"type": "array", "items": _MESSAGE},
                "nextPageToken": text("For the next page; empty if there is none."),
                "resultSizeEstimate": number("About how many there are."),
            },
        },
    ),
    adapted(
        "GMAIL_FETCH_MESSAGE_BY_MESSAGE_ID",
        "Read one e-mail by its id.",
        {"message_id": _ID, "format": text("How much of it.", enum=["full", "metadata", "minimal", "raw"]),
         "user_id": _USER},
        _one,
        required=("message_id",),
        tags=READS,
        answers=_MESSAGE,
    ),
    adapted(
        "GMAIL_FETCH_MESSAGE_BY_THREAD_ID",
        "Read all e-mails of one conversation.",
        {"thread_id": _THREAD_ID, "user_id": _USER},
        _thread,
        required=("thread_id",),
        tags=READS,
        answers={"type": "object", "properties": {"messages": {"type": "array", "items": _MESSAGE}}},
    ),
    adapted(
        "GMAIL_ADD_LABEL_TO_EMAIL",
        "Put labels on an e-mail, and take labels off it: archive it by removing `INBOX`, mark it as read by removing "
        "`UNREAD`.",
        {
            "message_id": _ID,
            "add_label_ids": texts("Ids of labels to put on it; GMAIL_LIST_LABELS has them."),
            "remove_label_ids": texts("Ids of labels to take off it."),
            "user_id": _USER,
        },
        passed(
            _MODIFY,
            {
                "message_id": "id",
                "add_label_ids": "addLabelIds",
                "remove_label_ids": "removeLabelIds",
                "user_id": "userId",
            },
            userId="me",
        ),
        required=("message_id",),
        tags=REPLACES,
    ),
)  # fmt: skip
