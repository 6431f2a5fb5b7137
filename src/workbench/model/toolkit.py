"""Tools that agents call, the toolkits they belong to, and what a call comes to. Who runs them is left to sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from workbench.model.session import Session

if TYPE_CHECKING:
    from workbench.model.connection import Credential

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


class AuthKind(StrEnum):
    """How an account is proved to a service."""

    NO_AUTH = "NO_AUTH"
    API_KEY = "API_KEY"
    BEARER_TOKEN = "BEARER_TOKEN"  # noqa: S105 - its name
    BASIC = "BASIC"
    OAUTH2 = "OAUTH2"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthField:
    """One thing that a person fills in to connect an account."""

    name: str
    """by which the value is kept: `api_key`, `username`, `subdomain`"""
    label: str
    description: str = ""
    is_secret: bool = True
    is_required: bool = True
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthEndpoints:
    """Where a service grants access, and how it wants to be asked."""

    authorize_url: str = ""
    token_url: str = ""
    device_url: str = ""
    revoke_url: str = ""
    scopes: tuple[str, ...] = ()
    """asked for unless somebody says otherwise"""
    scope_separator: str = " "
    pkce: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)
    """more parameters of the authorisation request"""
    client_auth: Literal["basic", "post"] = "post"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthScheme:
    """One way in: what a person gives, and where it goes in a request.

    What goes there is `prefix` and the one value of the kind: `api_key` of API_KEY, `token` of BEARER_TOKEN,
    `access_token` of OAUTH2; of BASIC it is `username` and `password` in base64.
    """

    kind: AuthKind
    place: Literal["header", "query", "none"] = "header"
    name: str = "Authorization"
    """of the header, or of the parameter"""
    prefix: str = ""
    """before the value, with the space if there is to be one: `Bearer `; that is meant anyway in `Authorization` for
    BEARER_TOKEN and OAUTH2, and `Basic ` for BASIC"""
    oauth: OAuthEndpoints | None = None
    fields: tuple[AuthField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How a service tells who an account is: by one request that changes nothing."""

    url: str
    """absolute, at one of the toolkit's hosts"""
    names: tuple[str, ...]
    """where it is in the answer, `user.email`; the first that is there counts"""
    headers: tuple[tuple[str, str], ...] = ()


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
    base_url: str = ""
    """what relative addresses of raw calls are relative to; `{name}` in it is a field of the connected account"""
    hosts: tuple[str, ...] = ()
    """the only ones that a credential of it may go to: exact names, `name:port`, or `*.example.com`"""
    auth: tuple[AuthScheme, ...] = ()
    """ways to connect an account, the usual one first"""
    identity: Identity | None = None
    """how its service is asked who an account is; None if nobody knows"""
    is_basic: bool = False
    """helpers are made of it: a list of the toolkits that are enabled need not name it"""
    terms: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """what people say for words of the service's, small letters: `issue` is a `ticket`. For the search alone"""

    @property
    def auth_schemes(self) -> tuple[str, ...]:
        """How accounts of it are connected here: `OAUTH2`, `API_KEY`."""
        return tuple(dict.fromkeys(str(one.kind) for one in self.auth if one.kind is not AuthKind.NO_AUTH))


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
    acts_as: tuple[str, ...] = ()
    """other tools that do the same: what is ruled out or asked about by their names is so for this one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call, on behalf of a session and its user."""

    slug: str
    arguments: Json = field(repr=False)
    session: Session
    account: str = ""
    """which of several connected ones; empty for the usual one"""
    credential: Credential | None = field(default=None, repr=False)
    """with which it is made; chosen already, and None where none is needed"""
    idempotency_key: str = ""
    """the same for the same call sent again; for services that take one"""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """contents of the files that its arguments name by `s3key`, by that name"""


def endpoints_of(toolkit: Toolkit) -> tuple[str, ...]:
    """Where accounts are connected and tokens asked for."""
    ways = [one.oauth for one in toolkit.auth if one.oauth is not None]
    told = [(one.authorize_url, one.token_url, one.device_url, one.revoke_url) for one in ways]
    return tuple(dict.fromkeys(url for urls in told for url in urls if url))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedFile:
    """An answer that is no JSON and no text."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What became of a call that was carried out; a failure of the tool's own is one."""

    data: Json = field(repr=False)
    error: str = ""
    """empty after a success"""
    log_id: str = ""
    """by which the call is known elsewhere; empty if it is not"""
    http_status: int | None = None
    """what the service answered with; None if it was none that speaks HTTP"""
    file: ReturnedFile | None = None
    """what it gave besides data; kept in the session's mount by who called"""
    more_files: tuple[ReturnedFile, ...] = ()
    """where it gave several, those after `file`"""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Whether a toolkit can be used for a session's user, and why not."""

    toolkit: str
    is_active: bool
    words: str
