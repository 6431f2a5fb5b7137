"""What `pip install` is asked for: on its command line and in files of requirements, and for this Python only."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable, Sequence

from packaging.requirements import InvalidRequirement, Requirement

# What installs packages elsewhere; here it is outside, and a newer one inside would change nothing.
_TOOLS = frozenset({"pip", "setuptools", "wheel", "uv"})
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_NESTED = re.compile(r"(?:-r|--requirement)(?:\s+|=|(?<=-r))(?P<file>\S.*)")
_NAME = re.compile(r"[-_.]+")


def normalised(name: str) -> str:
    """As the index compares names."""
    return _NAME.sub("-", name).lower()


def lines_of(files: Sequence[str]) -> list[str]:
    """Of files of requirements and of those that they name.

    Raises:
        OSError: one cannot be read, or asks for what is not possible here.
    """
    wanted: list[str] = []
    waiting, seen = list(files), set[str]()
    while waiting:
        file = os.path.realpath(waiting.pop(0))
        if file in seen:
            continue
        seen.add(file)
        for line in _lines(file):
            if nested := _NESTED.fullmatch(line):
                waiting.append(os.path.join(os.path.dirname(file), nested["file"].strip()))
            elif line.startswith("-"):
                raise OSError(f"{file}: {line!r} is not possible here; name packages, one a line")
            elif "--hash=" in line:
                # Dropped without a word it would promise what nobody holds.
                raise OSError(f"{file}: hashes are not compared here; leave '--hash=…' out, or do without the package")
            else:
                wanted.append(line)
    return wanted


def _lines(file: str) -> list[str]:
    with open(file, encoding="utf-8") as opened:
        joined = opened.read().replace("\\\n", " ")
    lines = (_COMMENT.sub("", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def for_this_python(requirements: Iterable[str]) -> list[str]:
    """Without markers, and without what they rule out, which is said as pip says it."""
    wanted: list[str] = []
    for text in requirements:
        try:
            read = Requirement(text)
        except InvalidRequirement:
            # Whoever is asked says what is wrong with it.
            wanted.append(text)
            continue
        if read.marker is None:
            wanted.append(text)
        elif read.marker.evaluate({"extra": ""}):
            read.marker = None
            wanted.append(str(read))
        else:
            sys.stdout.write(f"Ignoring {read.name}: markers {str(read.marker)!r} don't match your environment\n")
    return wanted


def already_there(requirements: Iterable[str]) -> dict[str, str]:
    """Those for which nothing needs to be installed, each with what is there."""
    there = versions()
    said: dict[str, str] = {}
    for text in requirements:
        if normalised(text) in _TOOLS:
            said[text] = f"{text} (installs are made outside of the sandbox)"
            continue
        try:
            read = Requirement(text)
        except InvalidRequirement:
            continue
        name = normalised(read.name)
        # What an extra would bring is not known here.
        if (
            not read.extras
            and not read.url
            and name in there
            and read.specifier.contains(there[name], prereleases=True)
        ):
            said[text] = f"{name}=={there[name]}"
    return said


def versions() -> dict[str, str]:
    """Of all that is there; what comes first on the path is what is imported."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        found.setdefault(normalised(one.name), one.version)
    return found


def broken() -> list[str]:
    """A sentence for each requirement of what is there that is not met."""
    there = versions()
    said: list[str] = []
    for one in importlib.metadata.distributions():
        for text in one.requires or ():
            needs = Requirement(text)
            if needs.marker is not None and not needs.marker.evaluate({"extra": ""}):
                continue
            version = there.get(normalised(needs.name))
            if version is None:
                said.append(f"{one.name} {one.version} requires {needs.name}, which is not installed.")
            elif not needs.specifier.contains(version, prereleases=True):
                said.append(
                    f"{one.name} {one.version} has requirement {needs.name}{needs.specifier}, but you have {version}."
                )
    return said
