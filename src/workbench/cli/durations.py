"""Durations as people write them: 90, 90s, 15m, 24h, 30d."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_SHAPE = re.compile(r"([0-9]{1,9})([smhd]?)")


class Duration(click.ParamType[int]):
    """Seconds, made of a number with or without a unit."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The seconds."""
        if isinstance(value, int):
            return value
        found = _SHAPE.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no duration; write 90s, 15m, 24h or 30d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


class IdleDuration(click.ParamType["int | None"]):
    """The same, or `never`, or `default` for what the server has set."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """The seconds, 0 for never, None for the server's."""
        match value:
            case "never":
                return 0
            case "default":
                return None
            case _:
                return Duration().convert(value, param, ctx)


def in_words(seconds: int) -> str:
    """As it would be written."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"
