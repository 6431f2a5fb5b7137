"""Tools that agents call, the toolkits they belong to, and what a call comes to. Who runs them is left to sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.model.session import Session

UNVERSIONED = "00000000_00"
"""the version of tools that have none"""
META_TOOLKIT = "composio"
"""of the tools that find and run others, and of those of the sandbox"""
LOCAL_PREFIX = "LOCAL_"
"""of tools that the client defines, and runs itself"""
MOST_QUERIES, MOST_USE_CASE, MOST_KNOWN_FIELDS = 7, 1024, 500
"""of one search for tools; the last two in characters"""

Json = dict[str, Any]
"""an object of JSON; to be read only, as whoever gets one may share it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """Tools of one app."""

    slug: str
    """small letters: `github`"""
    name: str
    description: str = ""
    logo: str = ""
    no_auth: bool = False
    """its tools need no account"""
    auth_schemes: tuple[str, ...] = ()
    """how accounts of it are connected here: `OAUTH2`, `API_KEY`"""
    is_basic: bool = False
    """helpers are made of it: a list of the toolkits that are enabled need not name it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One, as agents see it."""

    slug: str
    """capital letters: `GITHUB_GET_A_PULL_REQUEST`"""
    name: str
    description: str
    toolkit: str
    """the slug of it"""
    input_schema: Json = field(repr=False)
    output_schema: Json = field(default_factory=lambda: {"type": "object", "properties": {}}, repr=False)
    tags: tuple[str, ...] = ()
    """`readOnlyHint` and the like"""
    scopes: tuple[str, ...] = ()
    no_auth: bool = False
    version: str = UNVERSIONED


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call, on behalf of a session and its user."""

    slug: str
    arguments: Json = field(repr=False)
    session: Session
    account: str = ""
    """which of several connected ones; empty for the usual one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What became of a call that was carried out; a failure of the tool's own is one."""

    data: Json = field(repr=False)
    error: str = ""
    """empty after a success"""
    log_id: str = ""
    """by which the call is known elsewhere; empty if it is not"""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Whether a toolkit can be used for a session's user, and why not."""

    toolkit: str
    is_active: bool
    words: str
