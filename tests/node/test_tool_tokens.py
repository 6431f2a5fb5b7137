from __future__ import annotations

import pytest
from tests.node.tool_tokens import BEGIN, END, PAGE, costs, table, with_table

# Of the family that is shown unless told otherwise: every conversation pays for it.
_MOST_OF_THE_DEFAULT_FAMILY = 1000


@pytest.mark.long
def test_the_page_has_the_tokens_that_the_tools_cost_today() -> None:
    found = costs()
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page, table(found)), "run scripts/measure-tool-tokens"
    default = [one.seen for one in found if one.family == "workbench"]
    assert sum(default) <= _MOST_OF_THE_DEFAULT_FAMILY


def test_a_page_keeps_what_is_around_the_table() -> None:
    page = f"# Tools\n\n{BEGIN}\nold\n{END}\n\nmore\n"
    assert with_table(page, "new") == f"# Tools\n\n{BEGIN}\nnew\n{END}\n\nmore\n"


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        with_table("# Tools\n", "new")
