"""The shapes of REST for connected accounts and how they are connected, as in rest.py. None has a secret in it but what
is sent to be kept.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model.connection import ConnectionStatus
from workbench.model.toolkit import AuthKind
from workbench.wire.rest import Answered, Line, Sent, UserName

ToolkitName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[a-z0-9_.-]+$", examples=["github"])]
AccountName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+$", examples=["ca_5f1c0a9b"])]
ConfigName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9_-]+$", examples=["ac_5f1c0a9b"])]

AliasName = Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]
# An address of the web, without a user in it. The pattern is for the document: the core says so in kinder words.
CallbackUrl = Annotated[
    str,
    Field(
        max_length=2000,
        json_schema_extra={"pattern": r"^(https?://[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(:[0-9]{1,5})?([/?#][!-~]*)?)?$"},
    ),
]
# As RFC 6749 has it: printable ASCII.
_NO_SPACE_AROUND = r"^([!-~]([ -~]*[!-~])?)?$"
ClientId = Annotated[str, Field(min_length=1, max_length=2000, pattern=_NO_SPACE_AROUND)]
ClientSecret = Annotated[str, Field(max_length=2000, pattern=_NO_SPACE_AROUND)]
Scope = Line


class BeginConnection(Sent):
    """An account that a person is to connect."""

    user_id: UserName = Field(default="local", description="Whose account it is: your user, in your words.")
    toolkit: ToolkitName
    callback_url: CallbackUrl | None = Field(
        default=None, description="Where the person is sent afterwards, with how it went."
    )
    alias: AliasName = Field(default="", description="What the account is called, where a user has several.")
    auth_config_id: ConfigName | None = Field(default=None, description="The newest of the toolkit unless given.")


class Connection(Answered):
    """An account of a user's with a service."""

    id: str
    user_id: str
    toolkit: str
    alias: str
    auth_config_id: str | None
    kind: AuthKind
    status: ConnectionStatus
    status_reason: str
    scopes: list[str]
    created_at: str
    updated_at: str
    expires_at: str = Field(description="Until when its present token is good; it is renewed if it can. May be empty.")
    label: str = Field(description="What the service calls it, if it said so.")


class ConnectionBegun(Answered):
    """It waits for a person."""

    url: str = Field(description="To be opened by the person, in a browser, within half an hour. It is a secret.")
    connection: Connection


class ConnectionPage(Answered):
    """Some accounts, oldest first."""

    items: list[Connection]
    next_cursor: str | None


class ConnectionRemoved(Answered):
    """What became of it."""

    told_service: bool = Field(description="Whether the service was told to take its tokens back, and did.")


class CreateAuthConfig(Sent):
    """As which client accounts of a toolkit are connected by OAuth2."""

    toolkit: ToolkitName
    client_id: ClientId
    client_secret: ClientSecret = Field(
        default="", description="Kept encrypted, and never shown again; empty for a public client."
    )
    scopes: list[Scope] = Field(default=[], max_length=200, description="To ask for; those of the toolkit if empty.")


class AuthConfig(Answered):
    """A client; without its secret."""

    id: str
    toolkit: str
    kind: AuthKind
    client_id: str
    scopes: list[str]
    created_at: str


class AuthConfigs(Answered):
    """Those of a project, newest first."""

    items: list[AuthConfig]
