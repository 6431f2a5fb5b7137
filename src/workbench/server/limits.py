"""Bodies, as they come in: of a bounded size, within a bounded time, and of the one type that we read."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from workbench.errors import InvalidRequest, TooLarge, UnsupportedMedia

# A body of the most that we take needs as long on a slow line.
_BODY_TIMEOUT_S = 60.0
# A client that still writes does not read; what it sends beyond is thrown away until it has a chance to hear us.
_OVERRUN_FACTOR, _OVERRUN_S = 8, 5.0


def has_body(headers: Headers) -> bool:
    """Whether one is said to come."""
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes:
    """The whole body; empty if there is none.

    Raises:
        TooLarge: it has more than `most` bytes.
        UnsupportedMedia: it is not JSON.
        InvalidRequest: it did not come in time.
    """
    if not has_body(headers):
        return b""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        await _throw_away(receive, min(int(declared), most * _OVERRUN_FACTOR))
        raise _too_large(most)
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            body = await _whole(receive, most)
    except TimeoutError:
        raise InvalidRequest(
            f"the body did not arrive within {_BODY_TIMEOUT_S:g} s; send it again, or put large data into a file"
        ) from None
    if body:
        _check_type(headers)
    return body


async def _whole(receive: Receive, most: int) -> bytes:
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


def _check_type(headers: Headers) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise UnsupportedMedia(
            f"the body must be JSON and say so; send `content-type: application/json`, not {kind[:100] or 'none'!r}"
        )
