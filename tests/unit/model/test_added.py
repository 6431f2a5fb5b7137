"""What a toolkit is added with: one kind, options that it takes, and secrets that nobody sees."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.errors import InvalidRequest
from workbench.model.added import AddedKind, added_toolkit
from workbench.model.ids import DEFAULT_PROJECT


def test_options_and_secrets_are_apart() -> None:
    given = {"command": ["run"], "env": {"KEY": "canary-1"}, "folder": "/srv", "timeout_s": 5, "name": "Files"}
    one = added_toolkit("files", given, project=DEFAULT_PROJECT)
    assert (one.kind, one.is_local) == (AddedKind.PROGRAM, True)
    assert one.options == {"command": ["run"], "folder": "/srv", "timeout_s": 5, "name": "Files"}
    assert {name: secret.reveal() for name, secret in one.group("env").items()} == {"KEY": "canary-1"}
    assert "canary" not in repr(one)


@pytest.mark.parametrize(
    ("given", "local"),
    [
        ({"url": "https://x"}, False),
        ({"composio": ["gmail"], "key": "k"}, False),
        ({"openapi": "https://x/doc.json"}, False),
        ({"openapi": "/srv/doc.json"}, True),
        ({"functions": "/srv/kit.py"}, True),
        ({"command": ["x"]}, True),
    ],
)
def test_what_lies_on_this_machine_is_known_as_that(given: dict[str, Any], local: bool) -> None:
    assert added_toolkit("one", given, project=None).is_local is local


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "and this has none of them"),
        ({"url": "x", "command": ["y"]}, "and this has `command` and `url`"),
        ({"command": "run it"}, "`command` has to be a list of texts"),
        ({"command": []}, "`command` has to be a list of texts"),
        ({"command": ["a\0b"]}, "`command` has to be a list of texts"),
        ({"command": ["x"], "env": ["A"]}, "`env` has to be an object"),
        ({"command": ["x"], "env": {"A B": "c"}}, "'A B', which is no name of a variable"),
        ({"command": ["x"], "env": {"A": ""}}, "`env`: A has to be one line of text"),
        ({"url": "x", "headers": {"A:": "b"}}, "'A:', which is no name of a header"),
        ({"url": "x", "headers": {"A": "b\r\nC: d"}}, "`headers`: A has to be one line of text"),
        ({"url": ""}, "`url` has to be a text"),
        ({"functions": "kit.py"}, "`functions` has to be an absolute path"),
        ({"functions": "/kit.py", "workers": 0}, "`workers` has to be a number from 1 to 64"),
        ({"functions": "/kit.py", "workers": True}, "`workers` has to be a number"),
        ({"composio": ["Gmail!"], "key": "k"}, "'Gmail!', which is no name of a toolkit"),
        ({"composio": ["gmail"]}, "give it as `key`"),
        ({"url": "x", "tpyo": 1}, "takes no `tpyo`; it takes url, headers, bearer, timeout_s, name, description"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        added_toolkit("one", given, project=None)
    assert words in caught.value.message


def test_a_secret_that_cannot_be_used_is_not_quoted() -> None:
    with pytest.raises(InvalidRequest) as caught:
        added_toolkit("one", {"url": "x", "bearer": "canary\n"}, project=None)
    assert "canary" not in caught.value.message


@pytest.mark.parametrize("slug", ["", "A", "a-b", "a b", "_a", "a" * 41, "composio", "composio_search", "local"])
def test_a_name_that_is_none_or_kept_is_refused(slug: str) -> None:
    with pytest.raises(InvalidRequest, match="take small letters, digits and _"):
        added_toolkit(slug, {"url": "x"}, project=None)
