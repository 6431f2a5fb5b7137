"""What is refused is named, with what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.errors import InvalidRequest
from workbench.model.access import Scope
from workbench.server.questions import NotJson, reader_of
from workbench.wire import rest


def message(model: Any, body: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        reader_of(model)(body)
    return refused.value.message


def test_a_near_miss_is_named_at_any_depth() -> None:
    said = message(rest.CreateSession, b'{"sandbox": {"idle": {"freeze_after": 5}}}')
    assert "no such field: 'sandbox.idle.freeze_after'; did you mean 'freeze_after_s'" in said
    said = message(rest.CreateSession, b'{"workbench": {"sandbox_siz": 5}}')
    assert "no such field: 'workbench.sandbox_siz'; did you mean 'sandbox_size'?" in said


def test_without_a_near_one_all_names_are_told_as_they_are_sent() -> None:
    said = message(rest.Branch, b'{"zzz": 1}')
    assert "there are: id, copy" in said


def test_several_mistakes_are_told_at_once_and_values_are_not() -> None:
    said = message(rest.RunCell, b'{"code": 5, "limit_s": "hunter2", "mode": "hunter2"}')
    assert "code: " in said
    assert "limit_s: " in said
    assert "hunter2" not in said


def test_what_is_no_json_is_told_with_line_and_column() -> None:
    with pytest.raises(NotJson, match="line 2 column"):
        reader_of(rest.RunCell)(b'{\n"code": hunter2}')


def test_a_name_of_any_length_is_cut() -> None:
    for body in (b'{"%s": 1}', b'{"sandbox": {"env": {"%s": 1}}}'):
        with pytest.raises(InvalidRequest) as refused:
            reader_of(rest.CreateSession)(body % (b"x" * 100_000))
        assert len(refused.value.context["field"]) <= 200
        assert len(refused.value.message) < 1000


def test_a_good_body_is_read() -> None:
    read = reader_of(rest.CreateKey)(b'{"scopes": ["admin"], "lifetime_s": 60.0}')
    assert (read.scopes, read.lifetime_s) == ([Scope.ADMIN], 60)
