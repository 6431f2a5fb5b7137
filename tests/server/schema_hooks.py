"""What the generated requests are about: a session, cells and folders that exist, to reach more than a 404."""

from __future__ import annotations

import os
from typing import Any

import schemathesis
from schemathesis.core.parameters import ParameterLocation

_OWN_KEY, _SESSION, _USER, _CELL, _COMMAND = os.environ["FUZZED_WITH"].split(",")
# What the run needs to its end, and may not be ended by a request that found it in an answer.
_KEPT = {"key_id": _OWN_KEY, "session_id": _SESSION, "user_id": _USER}
_NOBODY = {"key_id": "0123456789ab", "session_id": "nobody", "user_id": "nobody"}
_ENDING = {"revoke_key", "rotate_key", "delete_session", "delete_user"}


@schemathesis.hook
def before_call(context: Any, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Only names that the generator made up are replaced: what follows from earlier answers stays."""
    names = case.path_parameters or {}
    operation = case.operation.definition.raw["operationId"]
    if operation in _ENDING:
        for name in names:
            if names[name] == _KEPT.get(name):
                names[name] = _NOBODY[name]
        return
    if case.meta is None:
        return
    if "-02-29T" in str((case.query or {}).get("before", "")):
        # Not every year has one.
        assert case.query is not None
        case.query["before"] = "2028-02-29T00:00:00Z"
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        _make_true(case.body)
    if case.meta.phase.name == "stateful" or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    if "session_id" in names:
        names["session_id"] = _SESSION
    if "cell_id" in names:
        names["cell_id"] = _COMMAND if "/commands/" in case.path else _CELL


def _make_true(body: dict[str, Any]) -> None:
    """Two things that a schema has no words for, and that are told in words."""
    if "cwd" in body:
        # It must exist.
        body["cwd"] = "/home/user"
    if "label" in body:
        # It must be printable, by Unicode's account of it.
        body["label"] = "".join(letter for letter in body["label"] if letter.isprintable())
