"""Whether a version is one of those that were asked for: exact ones, and the comparisons that package tools know."""

from __future__ import annotations

import itertools
import operator
import re

from workbench.errors import InvalidRequest

_ANY = ("", "*", "latest")
_PART = re.compile(r"(===?|!=|~=|>=|<=|>|<)?\s*v?([0-9A-Za-z][0-9A-Za-z.+_-]*)(\.\*)?")
# Numbers alone; what was built or released again of the same version counts as that version.
_NUMBERS = re.compile(r"(\d+(?:\.\d+)*)(?:\.post\d+)?(?:\+[0-9A-Za-z.]+)?")
_COMPARED = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_MOST_QUOTED = 60

Release = tuple[int, ...]


def is_met(wanted: str, found: str) -> bool:
    """Whether `found` will do.

    Raises:
        InvalidRequest: what is wanted cannot be understood.
    """
    if wanted.strip() in _ANY:
        return True
    # All of them are read: one that cannot be understood is told, whatever the others say.
    met = [_meets(part.strip(), found, wanted) for part in wanted.split(",")]
    return all(met)


def as_requirement(name: str, wanted: str) -> str:
    """As installers of Python packages have it; `wanted` can be understood."""
    if wanted.strip() in _ANY:
        return name
    parts = [part.strip() for part in wanted.split(",")]
    return name + ",".join(part if part[0] in "=<>!~" else f"=={part.removeprefix('v')}" for part in parts)


def _meets(part: str, found: str, wanted: str) -> bool:
    parsed = _PART.fullmatch(part)
    if parsed is None:
        raise _not_understood(wanted)
    sign, version, is_prefix = parsed[1] or "==", parsed[2], bool(parsed[3])
    if sign in ("==", "===") and not is_prefix and version == found:
        return True
    there, asked = _release(found), _release(version)
    if asked is None or (is_prefix and sign not in ("==", "!=")) or (sign == "~=" and len(asked) < 2):
        if sign in ("==", "===") and not is_prefix:
            return False
        raise _not_understood(wanted)
    if there is None:
        # A version before the one that it is called after, say: only who names it gets it.
        return sign == "!="
    there += (0,) * (len(asked) - len(there))
    match sign:
        case "==" | "===" | "!=":
            same = there[: len(asked)] == asked if is_prefix else _padded(there, asked) == 0
            return same is (sign != "!=")
        case "~=":
            return _padded(there, asked) >= 0 and there[: len(asked) - 1] == asked[:-1]
        case _:
            return bool(_COMPARED[sign](_padded(there, asked), 0))


def _release(version: str) -> Release | None:
    numbers = _NUMBERS.fullmatch(version)
    return tuple(int(one) for one in numbers[1].split(".")) if numbers else None


def _padded(one: Release, other: Release) -> int:
    """Below, at or above 0, as the first is to the second; what one does not say is 0."""
    for mine, theirs in itertools.zip_longest(one, other, fillvalue=0):
        if mine != theirs:
            return mine - theirs
    return 0


def _not_understood(wanted: str) -> InvalidRequest:
    return InvalidRequest(
        f'not a version: {wanted[:_MOST_QUOTED]!r}; write one ("2.1.0"), comparisons of numbers (">=2.0,<3", "~=2.1", '
        '"==2.*"), or "" for any',
        {"argument": "dependencies"},
    )
