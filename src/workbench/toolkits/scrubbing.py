"""Scrubber: takes secrets out of what a service sends back, in every form that one is usually written in."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections.abc import Iterable
from typing import Any

from workbench.errors import UpstreamBadAnswer
from workbench.model.connection import PASSWORD, USERNAME, Credential, Secret
from workbench.model.toolkit import AuthKind

_GONE = "***"
# Shorter ones are words that answers are full of; no service gives out such secrets.
_LEAST = 5
# Of base64 that begins anywhere: what is shorter than that is found by chance.
_LEAST_PACKED = 12
DEEPEST = 100
"""levels of JSON that are handed on"""
_HEX = re.compile("%[0-9A-F]{2}")


class Scrubber:
    """For one credential, and for secrets besides."""

    def __init__(self, credential: Credential | None, others: Iterable[Secret] = ()) -> None:
        secrets = (_secrets(credential) if credential else set()) | {one.reveal() for one in others}
        forms = {form for secret in secrets if len(secret) >= _LEAST for form in _forms(secret)}
        # The longest first: one may be part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Without them."""
        for form in self._forms:
            text = text.replace(form, _GONE)
        return text

    def raw(self, body: bytes) -> bytes:
        """Without them."""
        # One after the other: a pattern of all of them would hold up everybody else in this process for seconds.
        for form in self._forms:
            body = body.replace(form.encode(), _GONE.encode())
        return body

    def value(self, value: Any, depth: int = 0) -> Any:
        """JSON without them, also where escapes hid one before it was read. Half characters are replaced.

        Raises:
            UpstreamBadAnswer: nobody behind this could read it: it is nested too deeply.
        """
        # BARRIER: what is deeper breaks whoever goes through it, up to the writer of the answer; held by
        # tests/unit/toolkits/test_scrubbing.py.
        if depth > DEEPEST:
            raise UpstreamBadAnswer(f"what came back is nested more than {DEEPEST} levels deep")
        if isinstance(value, str):
            return self.text(_whole(value))
        if isinstance(value, dict):
            return {self.text(_whole(str(name))): self.value(one, depth + 1) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one, depth + 1) for one in value]
        return value


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _secrets(credential: Credential) -> set[str]:
    """Those of its values that are secret: what a person is told back, like a user's name, is not."""
    values = {name: one.reveal() for name, one in credential.values.items()}
    shown = {one.name for one in credential.scheme.fields if not one.is_secret}
    if credential.kind is AuthKind.BASIC:
        values["pair"] = f"{values.get(USERNAME, '')}:{values.get(PASSWORD, '')}"
        # Some services want a key as the name, and no password.
        shown = shown | {USERNAME} if values.get(PASSWORD) else shown - {USERNAME}
    return {one for name, one in values.items() if name not in shown and len(one) >= _LEAST}


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    found = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    found |= {urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret), urllib.parse.quote(secret)}
    # Some write the code of a character in small letters.
    found |= {_HEX.sub(lambda code: code[0].lower(), one) for one in found}
    found.add(raw.hex())
    found.add(raw.hex().upper())
    for before in range(3):
        packed = base64.b64encode(b"\0" * before + raw).decode()
        whole = len(raw) + before
        # Without the letters that depend on what stands around it.
        inner = packed[(0, 2, 3)[before] : whole // 3 * 4 + (0, 1, 2)[whole % 3]]
        if len(inner) >= _LEAST_PACKED:
            found |= {inner, inner.replace("+", "-").replace("/", "_")}
    whole_form = base64.b64encode(raw).decode().rstrip("=")
    found |= {whole_form, whole_form.replace("+", "-").replace("/", "_")}
    return {one for one in found if len(one) >= _LEAST}
