"""Document: a description of a service, read with distrust. References are followed when somebody comes to them."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json

MOST_BYTES = 64 * 2**20
_MOST_PARTS = 4_000_000
# Of YAML, which takes a minute for so much.
_MOST_YAML = 4 * 2**20
_MOST_STEPS = 32
_MOST_QUOTED = 120


class BrokenReference(Exception):
    """One that leads nowhere, round in a circle, or out of the document."""


class Document:
    """A whole description, and what is asked of it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root

    def followed(self, value: Any) -> tuple[Json, str]:
        """An object, wherever references lead, and the last of them; that is empty if there is none.

        Raises:
            BrokenReference: no object is there.
        """
        seen: list[str] = []
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            reference = value["$ref"]
            # BARRIER: a document would have us read a file, or another server, in its name; and one that refers to
            # itself would never end; held by tests/unit/toolkits/compiling/test_hostile.py.
            if not reference.startswith("#"):
                raise BrokenReference(f"{reference[:_MOST_QUOTED]!r} leads out of the document, which is not followed")
            if reference in seen or len(seen) >= _MOST_STEPS:
                raise BrokenReference(f"{reference[:_MOST_QUOTED]!r} leads round in a circle")
            seen.append(reference)
            value = self._at(reference)
        if not isinstance(value, dict):
            where = f"{seen[-1][:_MOST_QUOTED]!r} is" if seen else "there is"
            raise BrokenReference(f"{where} no object")
        return value, seen[-1] if seen else ""

    def _at(self, reference: str) -> Any:
        found: Any = self.root
        for part in reference[1:].split("/")[1:]:
            name = urllib.parse.unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise BrokenReference(f"{reference[:_MOST_QUOTED]!r} leads nowhere")
        return found


def parsed(content: bytes) -> Json:
    """The document in a file: JSON, or YAML where its library is installed.

    Raises:
        InvalidRequest: it is neither, or too large.
    """
    if len(content) > MOST_BYTES:
        raise InvalidRequest(f"the document has {len(content):,} bytes, and {MOST_BYTES:,} are read")
    # BARRIER: a value takes tens of times the memory that it has letters; held by
    # tests/unit/toolkits/compiling/test_hostile.py.
    if sum(map(content.count, (b"{", b"[", b","))) > _MOST_PARTS:
        raise InvalidRequest(f"the document has more than {_MOST_PARTS:,} values in it")
    try:
        root = json.loads(content)
    except RecursionError:
        raise InvalidRequest("the document is nested too deeply") from None
    except ValueError as problem:
        root = _yaml(content, problem)
    if not isinstance(root, dict):
        raise InvalidRequest("the document is no object: an OpenAPI document has `openapi`, `info` and `paths`")
    return root


def _yaml(content: bytes, why: ValueError) -> Any:
    if content.lstrip()[:1] in (b"{", b"["):
        raise InvalidRequest(f"the document is not JSON: {str(why)[:200]}") from None
    if len(content) > _MOST_YAML:
        raise InvalidRequest(f"the document is no JSON, and of YAML {_MOST_YAML:,} bytes are read; turn it into JSON")
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidRequest("the document is not JSON; turn YAML into JSON first, or install PyYAML") from None
    try:
        # BARRIER: aliases of aliases are gigabytes in a few lines; held by
        # tests/unit/toolkits/compiling/test_hostile.py.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.SafeLoader)):
            raise InvalidRequest("the document uses aliases of YAML, which are not followed; turn it into JSON first")
        # Keys and dates are to be as JSON has them.
        return json.loads(json.dumps(yaml.safe_load(content), default=str))
    except RecursionError:
        raise InvalidRequest("the document is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError) as problem:
        words = " ".join(str(problem).split())[:200]
        raise InvalidRequest(f"the document is neither JSON nor YAML: {words}") from None


def table(value: Any) -> Json:
    """It, if it is an object; else nothing."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """It, if it is a list; else nothing."""
    return value if isinstance(value, list) else []


def text(value: Any, most: int = 2000) -> str:
    """It, if it is a text, without half characters and not too long; else nothing."""
    if not isinstance(value, str):
        return ""
    whole = value.strip().encode("utf-8", "replace").decode()
    return whole if len(whole) <= most else f"{whole[: most - 1].rstrip()}…"
