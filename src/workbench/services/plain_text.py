"""Text out of HTML: what a reader would see, on one line. Which parts of a page are wanted is left to others."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# What is between their tags is for machines.
_UNSEEN = frozenset(("script", "style", "noscript", "template"))
# Tags in the middle of a word, such as <b>, are none of these.
_BREAKS = frozenset(("br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6"))


_INLINE = frozenset(("b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "u"))
# Those that engines leave in what they call text.
_TAGS = re.compile(
    r"</?(?:a|b|br|code|div|em|h[1-6]|hr|i|img|li|mark|ol|p|pre|small|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._unseen += tag in _UNSEEN
        if tag in _BREAKS:
            self.seen.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))
        if tag in _BREAKS:
            self.seen.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.seen.append(data)


def plain_text(markup: str) -> str:
    """Without tags and references, and with single spaces."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return " ".join("".join(reader.seen).split())


def without_tags(text: str) -> str:
    """Text that is no HTML, without the tags that are in it all the same, and with single spaces."""
    return " ".join(_TAGS.sub(lambda tag: "" if tag[0].strip("</>").lower() in _INLINE else " ", text).split())


def shortened(text: str, most: int) -> str:
    """Itself, or its beginning and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
