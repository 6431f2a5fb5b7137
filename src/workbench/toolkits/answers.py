"""What a service sent, as data that goes into JSON, or as a file."""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.contracts.service_calls import ServiceAnswer
from workbench.errors import UpstreamBadAnswer
from workbench.model.toolkit import Json, ReturnedFile, ToolResult
from workbench.toolkits.scrubbing import Scrubber

MOST_READ = 8 * 2**20
"""of JSON and of text: what is larger is a file"""
_MOST_SAID = 500
# BARRIER: objects and lists of JSON take tens of times the memory that they have letters: what has more of them is a
# file; held by tests/toolkits/test_sending.py.
_MOST_PARTS = 500_000
_JSON = re.compile(r"application/([a-z0-9.+-]+\+)?json|text/json")
_TEXT = re.compile(r"text/.*|application/([a-z0-9.+-]+\+)?(xml|yaml|javascript|x-www-form-urlencoded|x-ndjson|graphql)")
_NAME = re.compile(r"filename\*?=(?:UTF-8'')?\"?([^\";]{1,200})", re.IGNORECASE)
# Those that say something about the call; others are of the connection, or may be secret.
_HEADERS = re.compile(
    r"content-(type|length|disposition|range|language)|etag|last-modified|link|location|retry-after|date|"
    r"x-(total|page|per|next|request|github|ratelimit|rate-limit|oauth)[a-z0-9-]*|ratelimit[a-z0-9-]*|request-id"
)
_MOST_HEADERS, _MOST_HEADER = 60, 2000
_SUFFIXES = {
    "application/json": "json", "application/pdf": "pdf", "application/zip": "zip", "image/png": "png",
    "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "text/csv": "csv", "text/plain": "txt",
    "text/html": "html", "audio/mpeg": "mp3", "video/mp4": "mp4", "application/gzip": "gz",
}  # fmt: skip
_HINTS = {
    401: "the service does not take this credential: connect the account again",
    403: "the account may not do this: it may need another scope, or more rights",
    404: "there is no such thing, or the account may not see it: check the ids in the arguments",
    429: "rate limit: it wants to be asked less often",
}


class TooMuch(Exception):
    """A body that is larger than it may be."""


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """A body as it was before it was packed. Raises: TooMuch; ValueError if that cannot be done."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is packed by {encoding[:20]!r}, which it was asked not to do")
    # BARRIER: a few packed bytes unpack to gigabytes; held by tests/toolkits/test_sending.py.
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32 if encoding != "deflate" else zlib.MAX_WBITS)
    try:
        plain = unpacking.decompress(body, most + 1)
    except zlib.error as problem:
        raise ValueError(f"it says that it is packed, and cannot be unpacked: {problem}") from None
    if len(plain) > most:
        raise TooMuch
    return plain


def told_headers(headers: Iterable[tuple[bytes, bytes]], scrubber: Scrubber) -> dict[str, str]:
    """Those that are of use, in small letters."""
    found: dict[str, str] = {}
    for name, value in headers:
        small = name.decode("latin-1").lower()
        if _HEADERS.fullmatch(small) and len(found) < _MOST_HEADERS:
            found.setdefault(small, scrubber.text(value.decode("latin-1"))[:_MOST_HEADER])
    return found


def read(status: int, headers: Mapping[str, str], body: bytes, scrubber: Scrubber, path: str) -> ServiceAnswer:
    """All of an answer. `path` is what was asked for, without anything secret; a file is named after it."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    clean = scrubber.raw(body)
    if not clean:
        return ServiceAnswer(status=status, headers=headers)
    if len(clean) <= MOST_READ and clean.count(b"{") + clean.count(b"[") <= _MOST_PARTS:
        is_read, data = _data(kind, clean)
        if is_read:
            # What is nested too deeply to be told is a file.
            with contextlib.suppress(UpstreamBadAnswer):
                return ServiceAnswer(status=status, headers=headers, data=scrubber.value(data))
        elif _JSON.fullmatch(kind):
            words = f"the service says that its answer is {kind}, and it is not: {_excerpt(clean, scrubber)}"
            return ServiceAnswer(status=status, headers=headers, data=None, problem=words)
    name = _file_name(headers.get("content-disposition", ""), path, kind)
    kind = kind or "application/octet-stream"
    return ServiceAnswer(status=status, headers=headers, file=ReturnedFile(name=name, content_type=kind, content=clean))


def _data(kind: str, body: bytes) -> tuple[bool, Any]:
    if _JSON.fullmatch(kind) or (not kind and body[:1] in b"{["):
        try:
            return True, json.loads(body, parse_constant=str)
        except (ValueError, RecursionError):
            return False, None
    if _TEXT.fullmatch(kind) or not kind:
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError:
            return False, None
        return "\0" not in text, text
    return False, None


def _excerpt(body: bytes, scrubber: Scrubber) -> str:
    text = scrubber.value(body[: _MOST_SAID * 4].decode("utf-8", "replace"))
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())[:200] or "nothing that prints"


def _file_name(disposition: str, path: str, kind: str) -> str:
    found = _NAME.search(disposition)
    base = (found[1] if found else path).replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", base).strip("._-")[-100:] or "answer"
    suffix = _SUFFIXES.get(kind, "")
    return name if "." in name or not suffix else f"{name}.{suffix}"


def as_result(answer: ServiceAnswer, service: str) -> ToolResult:
    """As tools tell it: an object, and an error where the service has refused."""
    if answer.status is None:
        return ToolResult(data={}, error=answer.problem)
    data = as_object(answer.data)
    if answer.status >= 400 or answer.problem:
        error = _refused(answer, service) if answer.status >= 400 else answer.problem
        return ToolResult(data=data, error=error, http_status=answer.status, file=answer.file)
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")
        words = f"{service} answered with the status {answer.status}, which leads elsewhere: {where[:200]}"
        return ToolResult(data=data, error=words, http_status=answer.status)
    return ToolResult(data=data, http_status=answer.status, file=answer.file)


def as_object(data: Any) -> Json:
    """What answers of tools are: a list is `items`, and a text or a number `value`."""
    if isinstance(data, dict):
        return data
    if data is None:
        return {}
    return {"items": data} if isinstance(data, list) else {"value": data}


def _refused(answer: ServiceAnswer, service: str) -> str:
    status = answer.status or 0
    words = f"{service} answered with the status {status}"
    if said := _said(answer.data):
        words += f": {said}"
    if status == 429 and (wait := answer.headers.get("retry-after", "")):
        words += f"; it asks to wait: {wait[:60]}"
    hint = _HINTS.get(status, "a failure of the service: it may work later" if status >= 500 else "")
    return f"{words} ({hint})" if hint else words


def _said(data: Any, depth: int = 0) -> str:
    """The words in it that are meant for people, wherever services put them."""
    if isinstance(data, str):
        return " ".join(data.split())[:_MOST_SAID]
    if isinstance(data, list):
        return _said(data[0], depth + 1) if data and depth < 4 else ""
    if not isinstance(data, dict) or depth >= 4:
        return ""
    for name in ("error_description", "message", "error", "errors", "errorMessages", "detail", "title", "description"):
        if said := _said(data.get(name), depth + 1):
            return said
    return ""
