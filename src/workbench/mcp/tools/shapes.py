"""Parts of output schemas that families share."""

from __future__ import annotations

from typing import Any

STRING: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
YES_OR_NO: dict[str, Any] = {"type": "boolean"}
NEXT: dict[str, Any] = {
    "type": "object",
    "description": "If this is not a success: the call that gets on from here, to be made as it is.",
    "properties": {"tool": STRING, "arguments": {"type": "object"}},
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}


def told(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """The same, described."""
    return {**schema, "description": description}


def closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """An object with these and no others."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def listed(schema: dict[str, Any]) -> dict[str, Any]:
    """Any number of them."""
    return {"type": "array", "items": schema}
