"""`json.loads`, `json.load` and a response's `.json()` in the agent's own code: data from outside, like a tool's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from workbench_guest.corrections.data import MOST_DRESSED_CHARACTERS
from workbench_guest.corrections.desk import desk, own_name

# Who gives these wants other types than Python's own.
_OWN_TYPES = ("cls", "object_hook", "object_pairs_hook")
# Without all of these, data is read as it is spelled, and needs no dress.
_SWITCHES = frozenset({"keys", "wrappers", "attributes", "json_text", "single_element"})


def patch_json() -> None:
    """Both."""
    module: Any = json
    module.loads = _dressing(json.loads)
    module.load = _dressing(json.load)


def patch_response(module: Any) -> None:
    """Of requests and httpx."""
    module.Response.json = _dressing(module.Response.json)


def _dressing(before: Callable[..., Any]) -> Callable[..., Any]:
    def parse(*args: Any, **kwargs: Any) -> Any:
        value = before(*args, **kwargs)
        frame = sys._getframe(1)  # noqa: SLF001  who asks is the question
        if not desk.active or frame.f_globals is not desk.namespace or type(value) not in (dict, list):
            return value
        if not desk.on & _SWITCHES:
            return value
        if any(kwargs.get(name) is not None for name in _OWN_TYPES):
            return value
        text = args[0] if args and isinstance(args[0], (str, bytes, bytearray)) else ""
        if len(text) > MOST_DRESSED_CHARACTERS:
            if "hints" in desk.on:
                line = desk.line_of(frame.f_code.co_filename, frame.f_lineno)
                desk.hinted(
                    "large-data", "so much JSON is left as it is: its fields are read as they are spelled", line
                )
            return value
        return desk.dress(value)

    return own_name(parse, before)
