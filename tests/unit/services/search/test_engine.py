"""What becomes of the pages that an engine found."""

from __future__ import annotations

import pytest

from workbench.contracts.services import MOST_FOUND, MOST_FOUND_CHARACTERS
from workbench.services.search.engine import Page, _found


def page(link: str | None, title: str | None = "Title", text: str | None = "Text") -> Page:
    return Page(title=title, link=link, text=text)


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "data:text/html,x", "ftp://x", "//x.example", "/path", "", None, " file:///etc/passwd"],
)
def test_a_link_that_is_no_page_of_the_web_is_left_out(link: str | None) -> None:
    assert [one.link for one in _found([page(link), page("https://good.example")])] == ["https://good.example"]


def test_no_more_than_may_be_found_and_each_once() -> None:
    pages = [page(f"https://x.example/{n // 2}") for n in range(100)]
    assert [one.link for one in _found(pages)] == [f"https://x.example/{n}" for n in range(MOST_FOUND)]


def test_a_page_without_a_title_is_called_by_its_link() -> None:
    (found,) = _found([page(" https://x.example ", None, None)])
    assert (found.title, found.link, found.text) == ("https://x.example", "https://x.example", "")


def test_texts_are_bounded() -> None:
    (found,) = _found([page("https://x.example", "t" * 10_000, "x" * 5_000_000)])
    assert len(found.text) == MOST_FOUND_CHARACTERS
    assert len(found.title) == 300
