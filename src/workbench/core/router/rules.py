"""What a session's configuration says of tools, made ready for thousands of them."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.model.configuration import Choice, SessionConfig, ToolChoice, plain
from workbench.model.toolkit import Tool, Toolkit

_WRITES = frozenset({"createHint", "updateHint"})
# Words of names that say so of what its source only calls destructive.
_CHANGES = frozenset({"CHANGE", "EDIT", "MODIFY", "MOVE", "PATCH", "RENAME", "REPLACE", "SET", "UPDATE"})


def tags_at_worst(tool: Tool) -> frozenset[str]:
    """By which a tool is ruled out, or a person asked first.

    BARRIER: most sources say whether a tool reads, and not whether it creates or changes: who wants to approve those
    would never be asked; held by tests/unit/core/router/test_catalogue.py.
    """
    said = frozenset(tool.tags)
    return said if said & {"readOnlyHint", *_WRITES} else said | _WRITES


def tags_at_best(tool: Tool) -> frozenset[str]:
    """By which a tool is switched on: never one that destroys because something else was asked for."""
    said = frozenset(tool.tags)
    if said & {"readOnlyHint", *_WRITES}:
        return said
    if "destructiveHint" not in said:
        return said | _WRITES
    return said | {"updateHint"} if _CHANGES & set(tool.slug.split("_")) else said


@dataclass(frozen=True, slots=True)
class _Picked:
    """A choice of names, to be looked up in any letters."""

    enabled: frozenset[str] | None
    disabled: frozenset[str]

    @classmethod
    def by(cls, choice: Choice) -> _Picked:
        enabled = None if choice.enable is None else frozenset(map(plain, choice.enable))
        return cls(enabled, frozenset(map(plain, choice.disable or ())))

    def takes(self, name: str) -> bool:
        name = plain(name)
        return (self.enabled is None or name in self.enabled) and name not in self.disabled

    def rules_out(self, names: tuple[str, ...]) -> bool:
        return bool(self.disabled) and any(plain(name) in self.disabled for name in names)


@dataclass(frozen=True, slots=True)
class _OfToolkit:
    """What is said of one toolkit."""

    reason: str
    """why none of its tools may be used; empty if they may"""
    picked: tuple[_Picked, ...]
    tags: tuple[Choice, ...]


class Rules:
    """Of one configuration, to be asked of many tools.

    BARRIER: a configuration of many names would be gone through for each of thousands of tools, in which time nobody is
    served; held by tests/unit/core/router/test_catalogue.py.
    """

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._toolkits = None if config.toolkits is None else _Picked.by(config.toolkits)
        self._choices: dict[str, list[ToolChoice]] = {}
        for name, one in config.tools.items():
            self._choices.setdefault(plain(name), []).append(one)
        self._of: dict[str, _OfToolkit] = {}

    @property
    def are_none(self) -> bool:
        """Whether nothing is ruled out."""
        return self._toolkits is None and not self._choices and self._config.tags is None

    def why_not(self, toolkit: Toolkit, tool: Tool) -> str:
        """Why a tool may not be used; empty if it may."""
        said = self._of.get(toolkit.slug)
        if said is None:
            said = self._of[toolkit.slug] = self._said_of(toolkit)
        return said.reason or _why_not_tool(said, tool)

    def why_not_toolkit(self, toolkit: Toolkit) -> str:
        """The same for all of its tools."""
        chosen = self._toolkits
        if chosen is None or chosen.takes(toolkit.slug):
            return ""
        if toolkit.is_basic and plain(toolkit.slug) not in chosen.disabled:
            return ""
        return f"as its configuration does not enable the toolkit {toolkit.slug}"

    def _said_of(self, toolkit: Toolkit) -> _OfToolkit:
        choices = self._choices.get(plain(toolkit.slug), [])
        tags = [one.tags for one in choices if one.tags is not None]
        if not tags and self._config.tags is not None:
            tags = [self._config.tags]
        picked = tuple(_Picked.by(one.tools) for one in choices)
        return _OfToolkit(self.why_not_toolkit(toolkit), picked, tuple(tags))


def _why_not_tool(said: _OfToolkit, tool: Tool) -> str:
    # BARRIER: another tool that does the same would do what is ruled out; held by
    # tests/unit/core/router/test_catalogue.py.
    if not all(one.takes(tool.slug) and not one.rules_out(tool.acts_as) for one in said.picked):
        return f"as its configuration does not enable it among the tools of {tool.toolkit}"
    for tags in said.tags:
        if tags.enable is not None and not tags_at_best(tool).intersection(tags.enable):
            return f"as it has none of the tags that its configuration enables: {', '.join(tags.enable) or 'none'}"
        if hit := sorted(tags_at_worst(tool).intersection(tags.disable or ())):
            return f"as its configuration disables what is tagged {', '.join(hit)}"
    return ""
