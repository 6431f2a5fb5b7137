"""What of an answer is a secret, in which form ever."""

from __future__ import annotations

import base64
import json
import urllib.parse

import pytest
from tests.toolkits.service import basic, bearer

from workbench.errors import UpstreamBadAnswer
from workbench.model.connection import Secret
from workbench.toolkits.scrubbing import DEEPEST, Scrubber

SECRET = 'sk-"ü/+ =7f3a9c1e5b2d'


@pytest.mark.parametrize("text", [
    SECRET, json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False), urllib.parse.quote(SECRET, safe=""),
    urllib.parse.quote(SECRET, safe="").lower(), urllib.parse.quote_plus(SECRET), SECRET.encode().hex(),
    *(base64.b64encode(b"x" * one + SECRET.encode() + b"tail").decode() for one in range(4)),
    *(base64.urlsafe_b64encode(b"x" * one + SECRET.encode()).decode() for one in range(4)),
])  # fmt: skip
def test_every_usual_form_is_taken_out(text: str) -> None:
    scrubber = Scrubber(bearer(SECRET))
    for found in (scrubber.text(f"a {text} b"), scrubber.raw(f"a {text} b".encode()).decode()):
        assert "***" in found
        assert found.startswith("a ")
        assert found.endswith(" b")
        assert "7f3a9c1e5b2d" not in found


def test_names_and_what_is_in_lists_are_looked_at_as_well() -> None:
    told = Scrubber(bearer(SECRET)).value({SECRET: [{"a": SECRET}, 1, None, True]})
    assert told == {"***": [{"a": "***"}, 1, None, True]}


def test_a_name_of_a_user_stays_unless_it_is_the_key() -> None:
    pair = base64.b64encode(b"ann@example.com:open sesame").decode()
    told = Scrubber(basic(password="open sesame")).text(f"ann@example.com open sesame {pair}")
    assert told == "ann@example.com *** ***"
    assert Scrubber(basic("sk_live_12345", "")).text("sk_live_12345") == "***"


def test_without_a_credential_nothing_is_changed() -> None:
    assert Scrubber(None).raw(b"abc") == b"abc"
    assert Scrubber(bearer("ab")).text("abc ab") == "abc ab"


def test_what_is_nested_too_deeply_is_not_gone_through() -> None:
    value: object = "x"
    for _ in range(DEEPEST):
        value = [value]
    Scrubber(None).value(value)
    with pytest.raises(UpstreamBadAnswer, match="nested more than 100 levels"):
        Scrubber(None).value({"a": value})


def test_codes_of_characters_in_small_letters_are_known_and_letters_stay_as_they_are() -> None:
    scrubber = Scrubber(None, [Secret("AbC/dEf+g=H")])
    for text in ("AbC%2FdEf%2Bg%3DH", "AbC%2fdEf%2bg%3dH", "AbC/dEf%2bg%3dH"):
        assert scrubber.text(f"at /x?key={text}&y") == "at /x?key=***&y"
