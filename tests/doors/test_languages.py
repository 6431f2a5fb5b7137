"""The language of a session, through every door: how it is chosen, that it stays, and what one without memory refuses.

Running code of other languages is in test_other_languages.py.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator

import pytest
from tests.doors.door import Door, Refused, WholeDoor, refusal
from tests.doors.names import whole

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def in_node(core: WholeDoor, maker: WholeDoor) -> Iterator[str]:
    """A session of Node.js, asked for by another name of it."""
    name = f"t-{secrets.token_hex(4)}"
    assert maker.create(name, runtime="JavaScript").runtime == "node"
    yield name
    with contextlib.suppress(Refused):
        core.delete(name)


@whole
def test_a_session_is_of_python_unless_it_is_said(door: WholeDoor, session: str) -> None:
    assert door.describe(session).runtime == "python"


@whole
def test_a_session_tells_its_language(door: WholeDoor, in_node: str) -> None:
    assert door.describe(in_node).runtime == "node"


@whole
def test_a_language_that_there_is_not_is_refused_with_the_nearest_and_nothing_is_made(door: WholeDoor) -> None:
    name = f"t-{secrets.token_hex(4)}"
    refused = refusal(lambda: door.create(name, runtime="pyhton"))
    assert "did you mean 'python'?" in refused.message
    assert re.search(r"There is: .*\bnode, python, r\b", refused.message)
    assert refused.code in ("invalid_request", None)
    assert refusal(lambda: door.describe(name)).code in ("not_found", None)


@whole
def test_a_session_keeps_its_language(door: WholeDoor, in_node: str) -> None:
    refused = refusal(lambda: door.create(in_node, runtime="r"))
    assert refused.code in ("conflict", None)
    assert "a session keeps its language" in refused.message
    assert door.describe(in_node).runtime == "node"


def test_undo_and_branch_are_refused_in_words_where_the_language_keeps_no_memory(door: Door, in_node: str) -> None:
    for refused in (
        refusal(lambda: door.undo(in_node)),
        refusal(lambda: door.branch(in_node, f"{in_node}-b")),
    ):
        assert refused.code in ("conflict", None)
        for words in ("Node.js", "cannot be copied while it lives", "/mnt/files"):
            assert words in refused.message
