"""What the generated requests are about: a session, cells and folders that exist, to reach more than a 404."""

from __future__ import annotations

import itertools
import os
from typing import Any

import schemathesis
from schemathesis.core.parameters import ParameterLocation

_OWN_KEY, _SESSION, _USER, _CELL, _COMMAND = os.environ["FUZZED_WITH"].split(",")
# What the run needs to its end, and may not be ended by a request that found it in an answer.
_KEPT = {"key_id": _OWN_KEY, "session_id": _SESSION, "user_id": _USER}
_NOBODY = {"key_id": "0123456789ab", "session_id": "nobody", "user_id": "nobody"}
# Files that are there for it: one to be read, and many to be deleted.
_FILE, _DOOMED = "kept.txt", itertools.count(1)
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
    if case.query and not case.meta.is_negative_at(ParameterLocation.QUERY):
        _make_question_true(case.query)
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        _make_true(case.body)
        if "/mounts/" in case.path:
            _make_true_of_files(case.body, operation)
    if case.meta.phase.name == "stateful" or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    if "session_id" in names:
        names["session_id"] = _SESSION
    if "mount_id" in names:
        names["mount_id"] = "files"
    if "cell_id" in names:
        names["cell_id"] = _COMMAND if "/commands/" in case.path else _CELL


def _make_question_true(query: dict[str, Any]) -> None:
    if "-02-29T" in str(query.get("before", "")):
        # Not every year has one.
        query["before"] = "2028-02-29T00:00:00Z"
    if "prefix" in query:
        # Not every text is the beginning of a path.
        query["prefix"] = _FILE[:3]


def _make_true(body: dict[str, Any]) -> None:
    """Two things that a schema has no words for, and that are told in words."""
    if "cwd" in body:
        # It must exist.
        body["cwd"] = "/home/user"
    if "label" in body:
        # It must be printable, by Unicode's account of it.
        body["label"] = "".join(letter for letter in body["label"] if letter.isprintable())


def _make_true_of_files(body: dict[str, Any], operation: str) -> None:
    """Paths have rules that are told in words, and most are of files that are not there."""
    if "path" in body:
        body["path"] = f"doomed/{next(_DOOMED)}" if operation == "delete_file" else _FILE
    if "url" in body:
        # What is refused as well: it leads to this machine.
        body["url"] = "http://127.0.0.1:9/file"
