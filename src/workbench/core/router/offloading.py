"""Answers that are too large to be read: written to a file in the mount, with words in their place that nobody takes
for data.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from workbench.contracts.clock import Clock
from workbench.core.mount_requests import StageFile
from workbench.core.mounts import Mounts
from workbench.model.mounts import INSIDE
from workbench.model.session import Session
from workbench.model.toolkit import Json

_FOLDER = "tool_responses"
_BEGINNING = 600
# Of a shape: so many names of an object, and so deep.
_MOST_NAMES, _DEEPEST = 20, 4
_WRITE_BYTES = 1024 * 1024


def size_of(data: Any) -> int:
    """In characters of JSON."""
    return len(json.dumps(data, ensure_ascii=False))


async def write(mounts: Mounts, session: Session, clock: Clock, what: str, value: Any) -> Json:
    """The whole in a file of its own: what `remote_file_info` says of it.

    Raises:
        QuotaExceeded: there is no room for it in the mount.
    """
    stamp = "".join(letter for letter in clock.now_iso()[:19] if letter.isdigit())
    path = f"{_FOLDER}/{what}_{stamp}_{secrets.token_hex(3)}.json"
    body = json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    async with mounts.stage(StageFile(session=session.spec.id, path=path, size=len(body))) as staged:
        for start in range(0, len(body), _WRITE_BYTES):
            await staged.write(body[start : start + _WRITE_BYTES])
        await staged.commit()
    where = f"{INSIDE}/{path}"
    if session.spec.config.sandbox.enable:
        how = f"Read it in the sandbox: `import json; answers = json.load(open({where!r}))`."
    else:
        how = "It is one of the session's files: ask for a link to it, by `mount_relative_path`."
    return {
        "file_path": where,
        "mount_relative_path": path,
        "size_bytes": len(body),
        "message": f"The whole answers are in {where}, as JSON.",
        "instructions": how,
    }


def preview(data: Any, file: Json) -> Json:
    """What is told in the place of data that went to a file. It has none of its keys, and says what it is."""
    text = json.dumps(data, ensure_ascii=False)
    return {
        "data_preview": {
            "note": f"This is no data: {len(text):,} characters were left out. All of it is in {file['file_path']}.",
            "shape": shape(data),
            "beginning_of_the_text": text[:_BEGINNING],
        }
    }


def shape(value: Any, depth: int = 0) -> str:
    """In words: which keys, how many entries, of which kind."""
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return f"object with {len(value)} keys"
        named = [f"{name}: {shape(one, depth + 1)}" for name, one in list(value.items())[:_MOST_NAMES]]
        more = [f"and {len(value) - _MOST_NAMES} more"] if len(value) > _MOST_NAMES else []
        return "{" + ", ".join([*named, *more]) + "}"
    if isinstance(value, list):
        first = f", the first {shape(value[0], depth + 1)}" if value else ""
        return f"list of {len(value)}{first}"
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    return {bool: "true or false", int: "number", float: "number"}.get(type(value), "null")
