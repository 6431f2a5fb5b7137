"""What is shown of an entry in the configuration of another program: everything but its secrets."""

from __future__ import annotations

import re
from typing import Any

_HIDDEN, _CHANGED = "…", "… (another one)"
# Tables whose values are, as often as not, passwords.
_TABLES = frozenset({"headers", "http_headers", "env_http_headers", "env"})
_NAMES = re.compile(r"token|secret|passw|authorization|credential|api_?-?key", re.IGNORECASE)
# The part of our own keys that is no secret, and the part that is.
_OURS = re.compile(r"\b(wb[kt]_(?:[A-Za-z0-9]{1,16}_)?)[^\s\"'&]+")
# In an address, before the host.
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def masked(entry: Any, before: Any) -> Any:
    """A copy to look at. Of what is hidden one still sees that it is another than `before`."""
    if not isinstance(entry, dict):
        return _text(entry)
    known = before if isinstance(before, dict) else {}
    return {
        key: _hidden(value, known.get(key)) if _is_secret(key) else masked(value, known.get(key))
        for key, value in entry.items()
    }


def _is_secret(key: str) -> bool:
    return key.lower() in _TABLES or _NAMES.search(key) is not None


def _hidden(value: Any, before: Any) -> Any:
    if isinstance(value, dict):
        known = before if isinstance(before, dict) else {}
        return {key: _hidden(inner, known.get(key)) for key, inner in value.items()}
    if before is not None and before != value:
        return f"{_public(value)}{_CHANGED}"
    return f"{_public(value)}{_HIDDEN}"


def _public(value: Any) -> str:
    """The id of a key of ours, by which one tells it from others."""
    found = _OURS.search(value) if isinstance(value, str) else None
    return found.group(1) if found else ""


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [masked(one, None) for one in value]
    if isinstance(value, str):
        return _USERINFO.sub(_HIDDEN, _OURS.sub(rf"\1{_HIDDEN}", value))
    return value
