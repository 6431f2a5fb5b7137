"""The Jupyter protocol's messages as bytes: what we send is signed, what we receive is taken apart with care.

The other side is a guest: every field is checked, and what does not fit is no message.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import uuid
from typing import Any

import msgspec

_DELIMITER = b"<IDS|MSG>"
_VERSION = "5.4"
_encode = msgspec.json.Encoder().encode
# A message with deeper or longer pieces than this is no message of a kernel's.
_PARTS = 5


class Header(msgspec.Struct, frozen=True):
    """What we read of a header."""

    msg_id: str = ""
    msg_type: str = ""
    subshell_id: str | None = None


class Message(msgspec.Struct, frozen=True):
    """One message, with its content still as it came."""

    kind: str
    parent: str
    """the id of the request that it belongs to; empty if it belongs to none"""
    content: bytes
    metadata: bytes
    frames: list[bytes]
    """the whole of it, from the signature on, to be passed on"""
    request: str = ""
    """its own id"""
    subshell: bool = False
    """meant for a thread beside the cells, which our kernels do not have"""


_header = msgspec.json.Decoder(Header)


def parse(frames: list[bytes]) -> Message | None:
    """What a socket gave; None for what is no message."""
    try:
        at = frames.index(_DELIMITER)
        _, header, parent, metadata, content = frames[at + 1 : at + 1 + _PARTS]
        own, of = _header.decode(header), _header.decode(parent)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return Message(own.msg_type, of.msg_id, content, metadata, frames[at:], own.msg_id, own.subshell_id is not None)


class Signer:
    """Makes requests of one conversation."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._key = key.encode()
        self._session = uuid.uuid4().hex

    def request(
        self, kind: str, content: dict[str, Any], parent: bytes = b"{}", metadata: bytes = b"{}"
    ) -> tuple[str, list[bytes]]:
        """Its id, and its frames."""
        identity = uuid.uuid4().hex
        header = {
            "msg_id": identity,
            "session": self._session,
            "username": "workbench",
            "date": datetime.datetime.now(datetime.UTC).isoformat(),
            "msg_type": kind,
            "version": _VERSION,
        }
        parts = [_encode(header), parent, metadata, _encode(content)]
        return identity, [_DELIMITER, self.signature(parts), *parts]

    def signature(self, parts: list[bytes]) -> bytes:
        """Of the four parts of a message."""
        return hmac.new(self._key, b"".join(parts), hashlib.sha256).hexdigest().encode()

    def signed_by_us(self, message: Message) -> bool:
        """Whether whoever sent it knows the key."""
        _, signature, *parts = message.frames[: 1 + _PARTS]
        return hmac.compare_digest(self.signature(parts), signature)
