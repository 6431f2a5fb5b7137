"""Mails, sent and fetched: what arrives is read as MIME by the standard library's parser, as a mail server would."""

from __future__ import annotations

import base64
import email
import email.message
import email.policy
import json
import re
from typing import Any

import pytest
from tests.toolkits.service import Asked
from tests.toolkits.shipped.world import VALUES, answering, shipped
from tests.unit.core.router.sources import session

from workbench.errors import Denied, InvalidRequest
from workbench.model.toolkit import ToolCall

PDF = b"%PDF-1.7\n\x00\xff\r\n.\r\nFrom me"
FILE = {"name": "Übersicht 1.pdf", "mimetype": "application/pdf", "s3key": "mount-1/out/a.pdf"}


def mail_of(asked: Asked) -> email.message.EmailMessage:
    raw = json.loads(asked.body)["raw"]
    return parsed(base64.urlsafe_b64decode(raw))


def parsed(content: bytes) -> email.message.EmailMessage:
    found = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(found, email.message.EmailMessage)
    assert not found.defects
    return found


async def test_a_mail_is_sent_as_it_was_written() -> None:
    async with shipped(answering({"id": "m1", "threadId": "t1", "labelIds": ["SENT"]})) as world:
        result = await world.run(
            "GMAIL_SEND_EMAIL",
            {
                "recipient_email": "Ada Lovelace <ada@example.com>",
                "extra_recipients": ["bob@example.com"],
                "cc": ["cleo@example.com"],
                "bcc": ["dan@example.com"],
                "subject": "Grüße — wie geht es? " + "lang " * 40,
                "body": "Zeile 1\n\nFrom here it goes on.\n.\n" + "x" * 2000,
            },
        )
        [asked] = world.service.seen
    assert result.data == {"id": "m1", "threadId": "t1", "labelIds": ["SENT"]}
    assert (asked.method, asked.path) == ("POST", "/gmail/gmail/v1/users/me/messages/send")
    assert asked.header("authorization") == f"Bearer {VALUES['access_token']}"
    mail = mail_of(asked)
    assert mail["To"] == "Ada Lovelace <ada@example.com>, bob@example.com"
    assert (mail["Cc"], mail["Bcc"]) == ("cleo@example.com", "dan@example.com")
    assert mail["Subject"] == "Grüße — wie geht es? " + ("lang " * 40)
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n") == "Zeile 1\n\nFrom here it goes on.\n.\n" + "x" * 2000 + "\n"


async def test_html_and_an_attachment_of_the_mount_arrive() -> None:
    async with shipped(answering({"id": "m1"})) as world:
        await world.run(
            "GMAIL_SEND_EMAIL",
            {
                "recipient_email": "ada@example.com",
                "subject": "Hi",
                "body": "<p>Hällo</p>",
                "is_html": True,
                "attachment": FILE,
            },
            files={"mount-1/out/a.pdf": PDF},
        )
        mail = mail_of(world.last)
    body = mail.get_body(("html",))
    assert body is not None
    assert body.get_content().strip() == "<p>Hällo</p>"
    [attached] = mail.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("Übersicht 1.pdf", "application/pdf")
    assert attached.get_content() == PDF


async def test_a_large_mail_is_uploaded() -> None:
    """A text in JSON may have only so many bytes."""
    large = bytes(range(256)) * 20_000
    async with shipped(answering({"id": "m1"})) as world:
        await world.run(
            "GMAIL_SEND_EMAIL",
            {"recipient_email": "ada@example.com", "subject": "Hi", "body": "See there.", "attachment": FILE},
            files={"mount-1/out/a.pdf": large},
        )
        asked = world.last
    assert asked.path == "/gmail/upload/gmail/v1/users/me/messages/send"
    assert dict(asked.query) == {"uploadType": "multipart"}
    related = parsed(f"Content-Type: {asked.header('content-type')}\r\n\r\n".encode() + asked.body)
    assert related.get_content_type() == "multipart/related"
    about, message = related.iter_parts()
    assert about.get_content_type() == "application/json"
    assert message.get_content_type() == "message/rfc822"
    inner = message.get_content()
    assert inner["Subject"] == "Hi"
    [attached] = inner.iter_attachments()
    assert attached.get_content() == large


@pytest.mark.parametrize(("name", "value"), [
    ("subject", "Hi\r\nBcc: eve@example.com"),
    ("recipient_email", "ada@example.com\nBcc: eve@example.com"),
    ("recipient_email", "nobody"),
    ("recipient_email", ", "),
    ("cc", ["not an address"]),
    ("from_email", "me@example.com\r\nX: y"),
    ("attachment", {"name": "a\r\nb", "mimetype": "text/plain", "s3key": "mount-1/out/a.pdf"}),
    ("attachment", {"name": "a", "mimetype": "text/plain", "s3key": "mount-1/other"}),
    ("attachment", "a.pdf"),
    ("is_html", "yes"),
])  # fmt: skip
async def test_what_cannot_be_sent_is_named_and_nothing_is_sent(name: str, value: Any) -> None:
    arguments = {"recipient_email": "ada@example.com", "subject": "Hi", "body": "Hi", name: value}
    async with shipped(answering({})) as world:
        with pytest.raises(InvalidRequest, match=re.escape(name)):
            await world.run("GMAIL_SEND_EMAIL", arguments, files={"mount-1/out/a.pdf": PDF})
        assert not world.service.seen


async def test_several_addresses_may_be_told_at_once() -> None:
    async with shipped(answering({})) as world:
        to = 'ada@example.com, "Bob, B." <bob@example.com>, '
        await world.run("GMAIL_SEND_EMAIL", {"recipient_email": to, "subject": "Hi", "body": "Hi"})
        assert mail_of(world.last)["To"] == 'ada@example.com, "Bob, B." <bob@example.com>'


async def test_an_answer_belongs_to_its_conversation() -> None:
    headers = [
        {"name": "Subject", "value": "Plans"},
        {"name": "Message-Id", "value": "<two@example.com>"},
        {"name": "References", "value": "<zero@example.com>\r\n <one@example.com>"},
    ]
    thread = {"id": "t1", "messages": [{"id": "m1", "payload": {}}, {"id": "m2", "payload": {"headers": headers}}]}
    async with shipped(answering(thread, {"id": "m3", "threadId": "t1"})) as world:
        result = await world.run(
            "GMAIL_REPLY_TO_THREAD",
            {"thread_id": "t1", "recipient_email": "ada@example.com", "message_body": "Fine."},
        )
        first, second = world.service.seen
    assert result.data["id"] == "m3"
    assert (first.path, dict(first.query)) == ("/gmail/gmail/v1/users/me/threads/t1", {"format": "metadata"})
    assert json.loads(second.body)["threadId"] == "t1"
    mail = mail_of(second)
    assert (mail["Subject"], mail["In-Reply-To"]) == ("Re: Plans", "<two@example.com>")
    assert mail["References"] == "<zero@example.com> <one@example.com> <two@example.com>"


async def test_mails_are_fetched_with_what_they_say() -> None:
    async def gmail(asked: Asked) -> None:
        if asked.path.endswith("/messages"):
            listed = {"messages": [{"id": "a"}, {"id": "b"}], "nextPageToken": "p2", "resultSizeEstimate": 40}
            await asked.json(json.dumps(listed))
            return
        identity = asked.path.rsplit("/", 1)[-1]
        await asked.json(json.dumps(MESSAGES[identity]))

    async with shipped(gmail) as world:
        result = await world.run(
            "GMAIL_FETCH_EMAILS", {"query": "is:unread", "max_results": 2, "label_ids": ["INBOX", "UNREAD"]}
        )
        listing = world.service.seen[0]
    assert sorted(listing.query) == [
        ("labelIds", "INBOX"), ("labelIds", "UNREAD"), ("maxResults", "2"), ("q", "is:unread")
    ]  # fmt: skip
    assert (result.error, result.data["nextPageToken"], result.data["resultSizeEstimate"]) == ("", "p2", 40)
    first, second = result.data["messages"]
    assert (first["messageId"], first["sender"], first["subject"]) == ("a", "Ada <ada@example.com>", "Invoice")
    assert first["messageText"] == "Grüße"
    assert first["attachmentList"] == [
        {"filename": "i.pdf", "mimeType": "application/pdf", "attachmentId": "x", "size": 9}
    ]
    assert second["messageText"] == "Only\nHTML & more"


MESSAGES: dict[str, Any] = {
    "a": {
        "id": "a",
        "threadId": "t",
        "payload": {
            "mimeType": "multipart/mixed",
            "headers": [{"name": "From", "value": "Ada <ada@example.com>"}, {"name": "Subject", "value": "Invoice"}],
            "parts": [
                {
                    "mimeType": "multipart/alternative",
                    "parts": [
                        {"mimeType": "text/html", "body": {"data": base64.urlsafe_b64encode(b"<b>no</b>").decode()}},
                        {
                            "mimeType": "text/plain",
                            "body": {"data": base64.urlsafe_b64encode("Grüße".encode()).decode().rstrip("=")},
                        },
                    ],
                },
                {"mimeType": "application/pdf", "filename": "i.pdf", "body": {"attachmentId": "x", "size": 9}},
            ],
        },
    },
    "b": {
        "id": "b",
        "payload": {
            "mimeType": "text/html",
            "body": {
                "data": base64.urlsafe_b64encode(
                    b"<style>p{}</style><p>Only</p>\n<script>x()</script><i>HTML &amp; more</i>"
                ).decode()
            },
        },
    },
}


async def test_a_label_is_put_on_a_mail() -> None:
    async with shipped(answering({"id": "m1"})) as world:
        await world.run("GMAIL_ADD_LABEL_TO_EMAIL", {"message_id": "m1", "add_label_ids": ["Label_1"]})
        asked = world.last
    assert asked.path == "/gmail/gmail/v1/users/me/messages/m1/modify"
    assert json.loads(asked.body) == {"addLabelIds": ["Label_1"]}


async def test_a_draft_is_kept_and_not_sent() -> None:
    async with shipped(answering({"id": "d1"})) as world:
        arguments = {"recipient_email": "ada@example.com", "subject": "Hi", "body": "Hi", "thread_id": "t1"}
        await world.run("GMAIL_CREATE_EMAIL_DRAFT", arguments)
        asked = world.last
    assert asked.path == "/gmail/gmail/v1/users/me/drafts"
    message = json.loads(asked.body)["message"]
    assert message["threadId"] == "t1"
    assert parsed(base64.urlsafe_b64decode(message["raw"]))["To"] == "ada@example.com"


async def test_a_service_that_fails_in_the_middle_is_told_as_a_result() -> None:
    """Something was sent, so it is no error of ours."""

    async def gmail(asked: Asked) -> None:
        if asked.path.endswith("/messages"):
            await asked.json('{"messages": [{"id": "a"}, {"id": "b"}]}')
        else:
            await asked.json('{"error": {"message": "gone"}}', 404)

    async with shipped(gmail) as world:
        result = await world.run("GMAIL_FETCH_EMAILS", {})
    assert "gone" in result.error
    assert result.http_status == 404


async def test_without_an_account_nothing_is_sent() -> None:
    async with shipped(answering({})) as world:
        arguments = {"recipient_email": "ada@example.com", "subject": "Hi", "body": "Hi"}
        with pytest.raises(Denied, match="connect"):
            await world.tools.run(ToolCall(slug="GMAIL_SEND_EMAIL", arguments=arguments, session=session()))
        assert not world.service.seen
