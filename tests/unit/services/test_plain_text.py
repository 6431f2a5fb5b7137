"""Text out of markup, and out of what is nearly none."""

from __future__ import annotations

import pytest

from workbench.services.plain_text import plain_text, shortened, without_tags


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<b>Py</b>thon &amp; <i>co</i>", "Python & co"),
        ("one<br>two<p>three</p>four", "one two three four"),
        ("a<script>x = 1 < 2</script><style>b{}</style>c", "ac"),
        ("1 &lt; 2 &#39;quoted&#39; &mdash; &nope;", "1 < 2 'quoted' — &nope;"),
        ("  many \n\n spaces\t", "many spaces"),
        ("</script></style>after", "after"),
        ("", ""),
    ],
)
def test_a_reader_sees_no_tags(markup: str, text: str) -> None:
    assert plain_text(markup) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("1 < 2, vector<int> and a<b>c</b>", "1 < 2, vector<int> and ac"),
        ('x<br/>y<a href="z">link</a>', "x y link"),
        ("AT&amp;T stays", "AT&amp;T stays"),
        ("<STRONG>loud</STRONG>", "loud"),
        ("<b" * 50_000, "<b" * 50_000),
    ],
)
def test_text_keeps_what_is_no_tag(said: str, text: str) -> None:
    assert without_tags(said).replace(" ", "") == text.replace(" ", "")


def test_a_beginning_says_that_it_is_one() -> None:
    assert (shortened("abcd", 4), shortened("abcde", 4)) == ("abcd", "abc…")
