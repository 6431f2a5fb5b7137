"""Commands that are read when they are called: each stands on a part of the program, and none on all of it."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module

import click


class Commands(UserDict[str, click.Command]):
    """By their names; one that is told by its place, as `module:name`, is read from there when it is asked for."""

    def __init__(self, places: Mapping[str, str]) -> None:
        super().__init__()
        self._places = dict(places)
        self.data = dict.fromkeys(places, click.Command(None))

    def __getitem__(self, name: str) -> click.Command:
        if place := self._places.pop(name, None):
            module, _, attribute = place.partition(":")
            self.data[name] = getattr(import_module(module), attribute)
        return self.data[name]
