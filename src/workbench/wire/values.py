"""What every shape on the host's socket is made of."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Parent of what travels inside requests and answers."""


class Request(Value, frozen=True, kw_only=True, tag=True):
    """Parent of all requests."""
