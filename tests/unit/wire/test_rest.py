"""The shapes of REST: strict in what they take, and true about it in their schemas."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from workbench.wire import rest


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (rest.RunCell, '{"code": "1", "limit_s": "5"}'),
        (rest.RunCell, '{"code": "1", "limit_s": NaN}'),
        (rest.RunCell, '{"code": "1", "limit_s": Infinity}'),
        (rest.RunCell, '{"code": "1", "limit_s": 0}'),
        (rest.RunCell, '{"code": "a\\u0000b"}'),
        (rest.RunCell, '{"code": "1", "unknown": 1}'),
        (rest.RunCommand, '{"command": "ls", "cwd": "relative"}'),
        (rest.CreateSession, '{"user_id": "a\\nb"}'),
        (rest.CreateSession, '{"user_id": ""}'),
        (rest.CreateSession, '{"id": "Upper"}'),
        (rest.CreateSession, '{"sandbox": {"env": {"A=B": "c"}}}'),
        (rest.CreateSession, '{"sandbox": {"env": {"A": 1}}}'),
        (rest.CreateSession, '{"sandbox": {}, "workbench": {}}'),
        (rest.ChangeSession, "{}"),
        (rest.CreateKey, '{"scopes": []}'),
    ],
)
def test_what_cannot_be_used_is_refused(model: type[BaseModel], body: str) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(body, strict=True)


@pytest.mark.parametrize("name", ["sandbox", "workbench"])
def test_both_names_of_the_sandbox_are_taken_and_described(name: str) -> None:
    made = rest.CreateSession.model_validate({name: {"sandbox_size": "large"}})
    assert made.sandbox.sandbox_size == "large"
    assert name in rest.CreateSession.model_json_schema()["properties"]


def test_names_of_variables_are_described_as_they_are_checked() -> None:
    schema: dict[str, Any] = rest.Sandbox.model_json_schema()["properties"]["env"]
    assert "patternProperties" not in schema
    assert schema["propertyNames"]["pattern"]
