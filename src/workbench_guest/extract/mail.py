"""Text of a mail: who, to whom, when, about what, its body, and what hangs on it as far as that can be read."""

from __future__ import annotations

import email
import email.policy
import io
from collections.abc import Iterator
from email.message import EmailMessage

from workbench_guest.extract import limits
from workbench_guest.extract.charsets import decoded
from workbench_guest.extract.dispatch import kind_of, read_as
from workbench_guest.extract.markup import html_to_text
from workbench_guest.extract.values import Document, Piece, Source, Unreadable

_SHOWN = ("From", "To", "Cc", "Subject", "Date")


def read_mail(source: Source) -> Document:
    """A mail, and the mails in it.

    Raises:
        Unreadable: it is too large.
    """
    if source.size > limits.MAX_MAIL_BYTES:
        raise Unreadable(
            f"{source.name} is too large for a mail: {source.size // limits.MIB} MB, at most "
            f"{limits.MAX_MAIL_BYTES // limits.MIB} MB are read; save its attachments, and give them one by one"
        )
    message = email.message_from_bytes(source.file.read(), _class=EmailMessage, policy=email.policy.default)
    return Document(pages=1, pieces=_pieces(message, source.name, source.depth))


def _pieces(message: EmailMessage, name: str, depth: int) -> Iterator[Piece]:
    heads = [f"{header}: {_header(message, header)}" for header in _SHOWN if message.get(header) is not None]
    body, rest = _body(message)
    yield Piece(text="\n".join(heads))
    yield Piece(text=body)
    for number, part in enumerate(rest):
        if number == limits.MAX_ATTACHMENTS:
            yield Piece(text="", warning=f"{name} has {len(rest)} attachments: {number} are read; save the others")
            return
        yield from _attachment(part, name, depth)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message[name]).split())
    except Exception:  # noqa: BLE001 - the parser of headers raises many things about broken ones
        return "(broken)"


def _body(message: EmailMessage) -> tuple[str, list[EmailMessage]]:
    """What is to be read first, and everything else that is not the same once more."""
    plain: list[str] = []
    marked: list[str] = []
    rest: list[EmailMessage] = []
    for part in _leaves(message):
        kind = part.get_content_type()
        if part.get_content_disposition() == "attachment" or part.get_filename() or kind == "message/rfc822":
            rest.append(part)
        elif kind == "text/html":
            marked.append(html_to_text(_text(part)))
        elif part.get_content_maintype() == "text":
            plain.append(_text(part))
        else:
            rest.append(part)
    text = "\n\n".join(part.strip("\n") for part in plain if part.strip())
    return text or "\n\n".join(part for part in marked if part.strip()), rest


def _leaves(message: EmailMessage) -> Iterator[EmailMessage]:
    """Parts that are not parts of others; a mail in a mail is one."""
    waiting: list[tuple[EmailMessage, int]] = [(message, 0)]
    while waiting:
        part, level = waiting.pop(0)
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            if level < limits.MAX_XML_DEPTH:
                waiting[:0] = [(one, level + 1) for one in part.iter_parts() if isinstance(one, EmailMessage)]
        else:
            yield part


def _content(part: EmailMessage) -> bytes:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        mail = inner[0] if isinstance(inner, list) and inner else None
        return mail.as_bytes() if isinstance(mail, EmailMessage) else b""
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _text(part: EmailMessage) -> str:
    content = _content(part)
    try:
        return content.decode(part.get_content_charset() or "utf-8").replace("\r\n", "\n")
    except (LookupError, UnicodeDecodeError):
        return decoded(content)


def _attachment(part: EmailMessage, mail: str, depth: int) -> Iterator[Piece]:
    name = " ".join((part.get_filename() or part.get_content_type()).split())
    content = _content(part)
    yield Piece(text=f"Attachment: {name} ({part.get_content_type()}, {len(content)} bytes)")
    if depth >= limits.MAX_MAIL_DEPTH:
        yield Piece(text="", warning=f"{name} lies in too many mails within each other: save it, and give it by itself")
        return
    source = Source(name=name, file=io.BytesIO(content), size=len(content), depth=depth + 1)
    try:
        kind = "eml" if part.get_content_type() == "message/rfc822" else kind_of(source)
    except Unreadable as problem:
        # Many a mail carries what has no text for anybody: that is no failure.
        yield Piece(text=f"(not read: {problem})", after="\n")
        return
    try:
        for piece in read_as(kind, source).pieces:
            yield Piece(text=piece.text, after=piece.after, warning=_in(mail, piece.warning))
    except Unreadable as problem:
        yield Piece(text="", warning=_in(mail, str(problem)))


def _in(mail: str, warning: str) -> str:
    return f"in {mail}: {warning}" if warning else ""
