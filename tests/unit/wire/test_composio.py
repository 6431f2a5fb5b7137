"""Shapes of the sessions API: what is taken, under which names, and how tools of the caller's are called."""

from __future__ import annotations

import json
from typing import TypeVar, get_args

import pytest
from pydantic import BaseModel, ValidationError

from workbench.model.tier import TIERS
from workbench.wire import composio as wire
from workbench.wire.composio_custom import (
    MOST_SLUG,
    CreateSession,
    CustomTools,
    final_slug,
    named_toolkits,
    named_tools,
)
from workbench.wire.rest import Size

M = TypeVar("M", bound=BaseModel)
TOOL = {"slug": "Grep", "name": "n", "description": "d", "input_schema": {"type": "object", "properties": {}}}


def read(model: type[M], **body: object) -> M:
    return model.model_validate_json(json.dumps(body), strict=True)


def test_the_sizes_are_those_of_the_tiers() -> None:
    assert set(get_args(Size)) == set(TIERS)


def test_what_nobody_knows_is_left_aside_at_every_depth() -> None:
    told = read(CreateSession, user_id="u", other=1, workbench={"other": 2}, experimental={"fast_mode": True})
    assert told.workbench == wire.Sandbox()


@pytest.mark.parametrize("name", ["sandbox", "workbench"])
def test_a_sandbox_is_said_by_either_name_also_as_null(name: str) -> None:
    assert not read(wire.ChangeSession).says_sandbox
    assert read(wire.ChangeSession, **{name: None}).says_sandbox
    told = read(wire.ChangeSession, **{name: {"enable": False}}).sandbox_sent
    assert told is not None
    assert told.enable is False


@pytest.mark.parametrize("value", ["5", 1, True, [], {"enable": "true"}, {"enable": 1}])
def test_what_looks_like_it_is_not_taken_for_it(value: object) -> None:
    with pytest.raises(ValidationError):
        read(wire.ChangeSession, search=value)


@pytest.mark.parametrize(
    "permissions",
    [
        {"default": "ask"},
        {"overrides": {"X:__none__": "never"}},
        {"default": "allow_all", "overrides": {"": "always_deny"}},
    ],
)
def test_guards_that_there_are_not_are_refused_and_those_that_there_are_are_taken(
    permissions: dict[str, object],
) -> None:
    with pytest.raises(ValidationError):
        read(wire.Experiments, permissions=permissions)
    asking = {"default": "ask_every_call", "overrides": {"X:__none__": "always_deny"}}
    assert read(wire.Experiments, permissions=asking).permissions


def test_a_tool_of_the_callers_is_called_by_its_toolkit_and_itself_in_capitals() -> None:
    assert final_slug("Grep") == "LOCAL_GREP"
    assert final_slug("Grep", "dev-Tools") == "LOCAL_DEV-TOOLS_GREP"
    kit = {"slug": "k", "name": "n", "description": "d", "tools": [TOOL]}
    told = read(CustomTools, custom_tools=[TOOL, {**TOOL, "extends_toolkit": "Git"}], custom_toolkits=[kit])
    assert [one.slug for one in named_tools(told)] == ["LOCAL_GREP", "LOCAL_GIT_GREP"]
    assert [one.slug for one in named_toolkits(told)[0].tools] == ["LOCAL_K_GREP"]
    assert {one.original_slug for one in named_tools(told)} == {"Grep"}


@pytest.mark.parametrize("length", [MOST_SLUG, MOST_SLUG + 1])
def test_a_whole_slug_has_a_most(length: int) -> None:
    body = {"custom_tools": [{**TOOL, "slug": "x" * (length - len("LOCAL_"))}]}
    if length <= MOST_SLUG:
        assert len(named_tools(read(CustomTools, **body))[0].slug) == MOST_SLUG
        return
    with pytest.raises(ValidationError, match="61 characters"):
        read(CustomTools, **body)


@pytest.mark.parametrize(
    "wrong",
    [
        {"slug": "a b"},
        {"slug": ""},
        {"slug": "local_x"},
        {"slug": "COMPOSIO_X"},
        {"name": "x" * 129},
        {"description": "x" * 5121},
        {"input_schema": {"properties": {}}},
        {"input_schema": {"type": "object", "properties": []}},
        {"input_schema": []},
    ],
)
def test_a_tool_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        read(CustomTools, custom_tools=[{**TOOL, **wrong}])
