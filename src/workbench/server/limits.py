"""Bodies, as they come in: of a bounded size, within a bounded time, and of the one type that we read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from workbench.errors import InvalidRequest, QuotaExceeded, TooLarge, UnsupportedMedia

# A body of the most that we take needs as long on a slow line.
_BODY_TIMEOUT_S = 60.0
# A client that still writes does not read; what it sends beyond is thrown away until it has a chance to hear us.
_OVERRUN_FACTOR, _OVERRUN_S = 8, 5.0
# What a value costs once it is read, however few bytes it came in: an empty object of 3 takes about so much.
_VALUE_BYTES = 200
_MOST_VALUES = 100_000
# So many cost nothing worth a second look.
_FEW_VALUES = 1000
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_MOST_FIELDS = 50
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'{[,"'))


def has_body(headers: Headers) -> bool:
    """Whether one is said to come."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _anything_goes(_: int) -> None:
    """For who counts no bytes."""


async def read_body(
    headers: Headers, receive: Receive, most: int, hold: Callable[[int], None] = _anything_goes
) -> bytes:
    """The whole body; empty if there is none. `hold` is told the bytes that it takes up, as they come.

    Raises:
        TooLarge: it has more than `most` bytes, or more values than anybody needs.
        UnsupportedMedia: it is not JSON.
        InvalidRequest: it did not come in time.
        QuotaExceeded: `hold` has no room for it.
    """
    body = await _read(headers, receive, most, hold)
    if body:
        _check_type(headers, _JSON)
        hold(values_in(body) * _VALUE_BYTES)
    return body


async def read_form(headers: Headers, receive: Receive, most: int) -> dict[str, str]:
    """The fields of a form, as browsers send it; of two with the same name the last counts.

    Raises:
        TooLarge: it has more than `most` bytes, or more fields than any of ours.
        UnsupportedMedia: it is no form.
        InvalidRequest: it did not come in time, or cannot be read.
    """
    body = await _read(headers, receive, most, _anything_goes)
    if not body:
        return {}
    _check_type(headers, _FORM)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError:
        raise InvalidRequest("the form cannot be read; fill it in again") from None


async def _read(headers: Headers, receive: Receive, most: int, hold: Callable[[int], None]) -> bytes:
    if not has_body(headers):
        return b""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        await _throw_away(receive, min(int(declared), most * _OVERRUN_FACTOR))
        raise _too_large(most)
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            return await _whole(receive, most, hold)
    except TimeoutError:
        raise InvalidRequest(
            f"the body did not arrive within {_BODY_TIMEOUT_S:g} s; send it again, or put large data into a file"
        ) from None


def values_in(body: bytes) -> int:
    """How many there are, before any is made: at most one for each beginning of a list or an object, and each comma.

    Raises:
        TooLarge: too many.
    """
    count = _structure(body)
    # What is in strings makes no values. In UTF-16, which has zeros, other bytes look like the ends of strings.
    if count > _FEW_VALUES and b"\0" not in body:
        rest = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NOT_STRUCTURE)
        # A value has a name at most, and both have two quotes.
        if rest.count(b'"') <= 4 * _MOST_VALUES:
            count = _structure(b"".join(rest.split(b'"')[::2]))
    # BARRIER: a few bytes of JSON become a hundred times as many of memory, and all wait while they do; held by
    # tests/unit/server/test_limits.py and tests/mcp/http/test_limits.py.
    if count > _MOST_VALUES:
        raise TooLarge(
            f"a request may have {_MOST_VALUES:,} values at most, and this has more; send large data as one string, or "
            "put it into a file under /mnt/files",
            {"most_values": str(_MOST_VALUES)},
        )
    return count


def _structure(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[") + text.count(b",")


async def _whole(receive: Receive, most: int, hold: Callable[[int], None]) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        size += len(part := message.get("body", b""))
        # BARRIER: one caller would fill the server's memory; held by tests/server/test_refusals.py.
        if size > most:
            if message.get("more_body"):
                await _throw_away(receive, most * _OVERRUN_FACTOR)
            raise _too_large(most)
        try:
            hold(len(part))
        except QuotaExceeded:
            if message.get("more_body"):
                await _throw_away(receive, most * _OVERRUN_FACTOR)
            raise
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _throw_away(receive: Receive, at_most: int) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_OVERRUN_S):
            while at_most > 0:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
                at_most -= len(message.get("body", b""))


def _too_large(most: int) -> TooLarge:
    return TooLarge(
        f"a request may have {most:,} bytes at most; put large data into a file under /mnt/files, or ask who runs the "
        "server to raise WORKBENCH_MAX_BODY_MIB",
        {"most_bytes": str(most)},
    )


def _check_type(headers: Headers, wanted: str) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != wanted:
        what = "JSON" if wanted == _JSON else "a form"
        raise UnsupportedMedia(
            f"the body must be {what} and say so; send `content-type: {wanted}`, not {kind[:100] or 'none'!r}"
        )
