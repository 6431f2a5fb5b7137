"""Mails as MIME, written and read."""

from __future__ import annotations

import base64
import binascii
import email.policy
import html
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json

_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
# Parts in parts in parts; what is deeper is not read.
_DEEPEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """What somebody wants to send."""

    to: Sequence[str]
    subject: str
    body: str
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    sender: str = ""
    is_html: bool = False
    attachment: tuple[str, str, bytes] | None = None
    """name, kind, content"""
    answers: str = ""
    """the Message-ID of the mail that this one answers"""
    earlier: str = ""
    """the Message-IDs before that one"""

    def as_bytes(self) -> bytes:
        """The message.

        Raises:
            InvalidRequest: an address or a header cannot be sent; the message has its name.
        """
        message = EmailMessage(policy=email.policy.SMTP)
        if self.sender:
            message["From"] = _addresses("from_email", [self.sender])
        for header, name, people in (
            ("To", "recipient_email", self.to),
            ("Cc", "cc", self.cc),
            ("Bcc", "bcc", self.bcc),
        ):
            if people:
                message[header] = _addresses(name, people)
        message["Subject"] = _line("subject", self.subject)
        if self.answers:
            message["In-Reply-To"] = _line("In-Reply-To", self.answers)
            message["References"] = _line("References", f"{self.earlier} {self.answers}".strip())
        message.set_content(self.body, subtype="html" if self.is_html else "plain")
        if self.attachment is not None:
            title, kind, content = self.attachment
            usual = mimetypes.guess_type(title)[0] or "application/octet-stream"
            main, _, sub = (kind if _TYPE.fullmatch(kind) else usual).partition("/")
            if main in {"multipart", "message"}:
                # As it is, and not as a part of this one.
                main, sub = "application", "octet-stream"
            message.add_attachment(content, maintype=main, subtype=sub, filename=_line("attachment.name", title))
        return message.as_bytes()


def encoded(content: bytes) -> str:
    """As Gmail wants it: base64 for addresses."""
    return base64.urlsafe_b64encode(content).decode("ascii")


def decoded(text: str) -> bytes:
    """What Gmail sent; nothing of what is no base64."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _line(name: str, value: str) -> str:
    """BARRIER: a line break in a header would begin another one, with recipients that nobody saw; held by
    tests/toolkits/shipped/test_gmail.py.
    """
    if any(ord(one) < 32 or ord(one) == 127 for one in value):
        raise InvalidRequest(f"`{name}` has a line break or another control character in it", {"argument": name})
    return value


def _addresses(name: str, people: Sequence[str]) -> tuple[Address, ...]:
    found = []
    # A comma at the end is nobody.
    named = [pair for pair in getaddresses([_line(name, one) for one in people]) if any(pair)]
    for title, address in named or [("", "")]:
        try:
            one = Address(display_name=title, addr_spec=address)
        except (HeaderParseError, ValueError, IndexError):
            one = None
        if one is None or not one.username or "." not in one.domain:
            raise InvalidRequest(f"`{name}`: {', '.join(people)[:200]!r} is no e-mail address", {"argument": name})
        found.append(one)
    return tuple(found)


def told(message: Json, *, with_payload: bool = False) -> Json:
    """A message as Gmail answers it, in plain fields."""
    payload = message.get("payload") if isinstance(message.get("payload"), dict) else {}
    parts = list(_parts(payload or {}, 0))
    found: Json = {
        "messageId": message.get("id", ""),
        "threadId": message.get("threadId", ""),
        "labelIds": message.get("labelIds", []),
        "messageTimestamp": message.get("internalDate", ""),
        "sender": header(payload or {}, "From"),
        "to": header(payload or {}, "To"),
        "subject": header(payload or {}, "Subject"),
        "preview": html.unescape(str(message.get("snippet", ""))),
        "messageText": _body(parts),
        "attachmentList": [
            {
                "filename": part["filename"],
                "mimeType": part.get("mimeType", ""),
                "attachmentId": part.get("body", {}).get("attachmentId", ""),
                "size": part.get("body", {}).get("size", 0),
            }
            for part in parts
            if part.get("filename")
        ],
    }
    if with_payload:
        found["payload"] = payload
    return found


def header(payload: Json, name: str) -> str:
    """The first of that name; empty if there is none."""
    for one in payload.get("headers") or ():
        if isinstance(one, dict) and str(one.get("name", "")).lower() == name.lower():
            return str(one.get("value", ""))
    return ""


def _parts(part: Any, depth: int) -> Iterator[Json]:
    if not isinstance(part, dict) or depth > _DEEPEST:
        return
    yield part
    for one in part.get("parts") or ():
        yield from _parts(one, depth + 1)


def _body(parts: Sequence[Json]) -> str:
    for kind in ("text/plain", "text/html"):
        for part in parts:
            content = decoded(str((part.get("body") or {}).get("data") or ""))
            if part.get("mimeType") == kind and content and not part.get("filename"):
                words = content.decode("utf-8", "replace")
                return words if kind == "text/plain" else _unmarked(words)
    return ""


def _unmarked(words: str) -> str:
    lines = (" ".join(line.split()) for line in html.unescape(_TAG.sub(" ", words)).splitlines())
    return "\n".join(line for line in lines if line)
