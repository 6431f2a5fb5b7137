"""Quotes of others: short, printable, and without the key."""

from __future__ import annotations

import json

import pytest

from workbench.services.excerpts import MOST_QUOTED, excerpt, without

KEY = 'sk-a+b/c="d'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "no such model", "type": "x"}}', "no such model"),
        (b'{"error": "bad key"}', "bad key"),
        (b'{"detail": {"error": "over the limit"}}', "over the limit"),
        (b'{"message": "", "detail": "later"}', "later"),
        (b'{"type": "error", "error": {"type": "x", "message": "Overloaded"}}', "Overloaded"),
        (b'"just words"', "just words"),
        (b'{"code": 7}', '{"code": 7}'),
        (b"[1, 2]", "[1, 2]"),
        (b" <html><style>x{}</style><h1>502 Bad</h1><p>Gateway &amp; co</html>", "502 Bad Gateway & co"),
        (b"plain\r\n\twords", "plain words"),
        (b"\xff\xfe\x00bad \x1b[31mcolours\x07", "\ufffd\ufffd bad [31mcolours"),
        (b"", ""),
        (b"  \n", ""),
    ],
)
def test_the_words_are_found_wherever_a_service_puts_them(body: bytes, words: str) -> None:
    assert excerpt(body, ()) == words


def test_a_quote_is_short() -> None:
    assert len(excerpt(b"x" * 10_000_000, ())) == MOST_QUOTED
    assert excerpt(b"x" * 10_000_000, ()).endswith("x…")


@pytest.mark.parametrize("depth", [100, 500, 5000, 20_000])
def test_no_nesting_is_too_deep(depth: int) -> None:
    assert len(excerpt(b'{"error":' * depth + b'"x"' + b"}" * depth, ())) <= MOST_QUOTED


@pytest.mark.parametrize(
    "said",
    [
        KEY,
        KEY.upper(),
        f"Bearer {KEY}.",
        "sk-a%2Bb%2Fc%3D%22d",
        json.dumps({"headers": {"x": KEY}}),
        json.dumps({"error": {"message": f"Incorrect: {KEY}"}}),
        json.dumps({"error": {"message": json.dumps({"x": KEY})}}),
        f"<p>Incorrect {KEY.replace('&', '&amp;')}</p>",
        "x" * (MOST_QUOTED - 5) + KEY,
    ],
)
def test_the_key_is_hidden_in_every_form(said: str) -> None:
    told = excerpt(said.encode(), (KEY,))
    assert "sk-a" not in told.lower()
    assert "[hidden]"[:4] in told


def test_signs_that_are_taken_out_put_no_key_together() -> None:
    assert "sk-12345678" not in excerpt(b"sk-1234\x005678", ("sk-12345678",))


def test_a_word_that_is_too_short_to_be_a_secret_hides_nothing() -> None:
    assert without("a cat sat", ("a", "")) == "a cat sat"
