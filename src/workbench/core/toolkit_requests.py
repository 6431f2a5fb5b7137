"""One value for each operation on toolkits that are added, and for the answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.added import Standing
from workbench.model.access import Caller
from workbench.model.toolkit import Tool, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class AddToolkit:
    """A toolkit, for a project or for all."""

    by: Caller
    slug: str
    given: Mapping[str, Any] = field(repr=False)
    """where it comes from and what that needs, as `model.added` has it; there are secrets in it"""
    for_all: bool = False
    """for all projects, and not for the caller's alone"""
    try_first: bool = True
    """keep it only if its tools can be listed now"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListToolkits:
    """Those of the caller's project and those for all, with how they are."""

    by: Caller
    everywhere: bool = False
    """those of all projects; for the owner of the data folder"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitName:
    """One of them."""

    by: Caller
    slug: str
    for_all: bool = False
    """the one for all projects, where the caller's has one of the same name"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnToolkit:
    """One that this workbench has by itself."""

    toolkit: Toolkit
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedToolkits:
    """What there is."""

    items: tuple[Standing, ...]
    file_problem: str = ""
    """why the settings file cannot be used; empty if it can, or there is none"""
