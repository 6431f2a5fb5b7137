"""Families of tools: which of them a client sees is one setting, and one parameter of the address."""

from __future__ import annotations

from enum import StrEnum

from workbench.errors import InvalidRequest


class Family(StrEnum):
    """Tools that belong together."""

    WORKBENCH = "workbench"
    """COMPOSIO_REMOTE_WORKBENCH and COMPOSIO_REMOTE_BASH_TOOL"""
    SANDBOX = "sandbox"
    """create_session, execute_code and their siblings"""
    KERNEL = "kernel"
    """interrupt, restart, undo, branch, variables"""
    ROUTER = "router"
    """COMPOSIO_SEARCH_TOOLS and its siblings, which find and run tools of apps; and those that are preloaded"""


Families = frozenset[Family]
DEFAULT_FAMILIES: Families = frozenset({Family.WORKBENCH})


def chosen_families(text: str) -> Families:
    """Those that `text` names, by commas; `all` is all.

    Raises:
        InvalidRequest: it names none, or one that there is not.
    """
    names = {name.strip().lower() for name in text.split(",")} - {""}
    if names == {"all"}:
        return frozenset(Family)
    known = ", ".join(Family)
    if unknown := sorted(names - set(Family)):
        raise InvalidRequest(f"no such family of tools: {unknown[0][:50]!r}; there are: {known}, or `all`")
    if not names:
        raise InvalidRequest(f"name a family of tools: {known}, or `all`")
    return frozenset(Family(name) for name in names)
