"""What a file is: by its content first, then by its name."""

from __future__ import annotations

import re
import zipfile

from workbench_guest.extract.charsets import decoded_head
from workbench_guest.extract.values import Source, Unreadable

_HEAD = 64 * 1024
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The folder that the parts of each kind lie in.
_OFFICE = {"word/": "docx", "xl/": "xlsx", "ppt/": "pptx"}
# In the directory of the old container, in its own encoding.
_OLD_OFFICE = {
    "EncryptedPackage": "is encrypted: open it with its password, save it without one, and give that",
    "WordDocument": "is in the old format of Word: save it as .docx, and give that",
    "Workbook": "is in the old format of Excel: save it as .xlsx, and give that",
    "PowerPoint Document": "is in the old format of PowerPoint: save it as .pptx, and give that",
}
_BY_NAME = {
    "csv": "csv", "tsv": "csv", "htm": "html", "html": "html", "xhtml": "html",
    "md": "markdown", "markdown": "markdown", "json": "json", "jsonl": "json", "xml": "xml", "svg": "xml", "eml": "eml",
}  # fmt: skip
_NAMED_BINARY = {"pdf", "docx", "xlsx", "pptx", "png", "jpg", "jpeg", "tif", "tiff", "gif", "webp", "bmp"}
_HTML = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html[\s>])", re.I | re.S)
_HEADER_LINE = re.compile(r"[!-9;-~]+:[ \t]|[ \t]+\S|[!-9;-~]+:$")
_MAIL_HEADERS = {"from", "to", "subject", "date", "received", "return-path", "message-id", "mime-version", "cc",
                 "content-type", "delivered-to", "reply-to"}  # fmt: skip


def detect(source: Source) -> str:
    """The name of a kind.

    Raises:
        Unreadable: nothing here reads it.
    """
    source.file.seek(0)
    head = source.file.read(_HEAD)
    source.file.seek(0)
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if _is_picture(head):
        return "image"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(source)
    if head.startswith(_OLE):
        raise Unreadable(f"{source.name} {_old_office(source)}")
    return _textual(source, head)


def suffix(name: str) -> str:
    """What follows the last dot, in small letters."""
    last = name.rpartition("/")[2]
    return last.rpartition(".")[2].lower() if "." in last else ""


def _is_picture(head: bytes) -> bool:
    if head.startswith(b"BM"):
        # Two letters are also the beginning of many a text: the rest of the header has to fit.
        return len(head) > 26 and head[6:10] == b"\0\0\0\0" and head[14] in (12, 40, 52, 56, 64, 108, 124)
    return head.startswith(_PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _zipped(source: Source) -> str:
    try:
        with zipfile.ZipFile(source.file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise Unreadable(f"{source.name} is a broken or cut off zip or Office file: get it again") from None
    finally:
        source.file.seek(0)
    for folder, kind in _OFFICE.items():
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return kind
    if "mimetype" in names and "content.xml" in names:
        raise Unreadable(f"{source.name} is an OpenDocument file: save it as .docx, .xlsx or .pptx, and give that")
    raise Unreadable(f"{source.name} is a zip archive: unpack it, and give the files in it one by one")


def _old_office(source: Source) -> str:
    held = source.file.read(source.size)
    for name, meaning in _OLD_OFFICE.items():
        if name.encode("utf-16-le") in held:
            return meaning
    return "is in an old format of Office: save it in today's, and give that"


def _textual(source: Source, head: bytes) -> str:
    text = decoded_head(head)
    named = suffix(source.name)
    if text is None:
        if named in _NAMED_BINARY:
            raise Unreadable(f"{source.name} is called .{named}, but is broken or something else: get it again")
        raise Unreadable(
            f"{source.name} is of an unknown binary kind (it begins with {head[:8].hex(' ')}): convert it to one that "
            "is read: PDF, picture, docx, xlsx, pptx, html, csv, eml, text"
        )
    if text.startswith("{\\rtf"):
        raise Unreadable(f"{source.name} is an RTF file: save it as .docx or PDF, and give that")
    if _HTML.match(text):
        return "html"
    if text.startswith("<?xml"):
        return "xml"
    if _is_mail(text) and named in ("", "eml", "mht", "mhtml", "mbox", "txt", "msg", "mail"):
        return "eml"
    return _BY_NAME.get(named, "text")


def _is_mail(text: str) -> bool:
    names: set[str] = set()
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line:
            break
        if not _HEADER_LINE.match(line):
            return False
        if not line[0].isspace():
            names.add(line.partition(":")[0].lower())
    return len(names & _MAIL_HEADERS) >= 3 and "from" in names
