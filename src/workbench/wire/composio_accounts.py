"""The shapes of the sessions API that are about accounts and how they are connected. None that is answered has a secret
in it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from workbench.model.connection import ConnectionStatus
from workbench.model.toolkit import AuthKind
from workbench.wire.composio import ApiSent, Slug
from workbench.wire.composio_tools import ConnectedAccount, Logo, Page
from workbench.wire.rest import Answered, UserName
from workbench.wire.rest_connections import AliasName, CallbackUrl, ClientId, ClientSecret, ConfigName, Scope

Value = Annotated[str, Field(max_length=8192)]
Kind = Literal["OAUTH2", "API_KEY", "BEARER_TOKEN", "BASIC"]
# Both names are sent; the first is described.
_SCHEME = AliasChoices("authScheme", "auth_scheme")
_TYPES = (
    "`use_custom_auth`: there is no app of ours with other services, so that `use_composio_managed_auth` is refused."
)


class ToolkitNamed(ApiSent):
    """By its slug."""

    slug: Slug = Field(examples=["github"])


class Client(ApiSent):
    """As whom OAuth2 is asked."""

    client_id: ClientId | None = None
    client_secret: ClientSecret | None = None
    scopes: Annotated[list[Scope], Field(max_length=200)] | Scope | None = Field(
        default=None, description="To ask for, as a list or with commas between them; those of the toolkit if empty."
    )


class NewAuthConfig(ApiSent):
    """How accounts are to be connected."""

    type: Literal["use_custom_auth", "use_composio_managed_auth"] = Field(
        default="use_custom_auth", description=_TYPES, examples=["use_custom_auth"]
    )
    authScheme: Kind | None = Field(  # noqa: N815  (the API's name)
        default=None,
        validation_alias=_SCHEME,
        description="By what; that which the toolkit has first, if it is not given.",
        examples=["OAUTH2"],
    )
    credentials: Client | None = Field(default=None, examples=[{"client_id": "id", "client_secret": "secret"}])


class CreateAuthConfig(ApiSent):
    """A way to connect accounts of a toolkit."""

    toolkit: ToolkitNamed
    auth_config: NewAuthConfig = Field(default_factory=NewAuthConfig)


class AuthConfigNamed(Answered):
    """One that was made."""

    id: str
    auth_scheme: AuthKind
    is_composio_managed: bool = False


class ToolkitSlug(Answered):
    """By its slug."""

    slug: str


class AuthConfigMade(Answered):
    """It can be connected by from now on."""

    toolkit: ToolkitSlug
    auth_config: AuthConfigNamed


class ToolkitLogo(Logo):
    """A toolkit, as far as it is shown."""

    slug: str


class AuthConfig(Answered):
    """A way to connect accounts; of a client its id and no secret."""

    id: str
    uuid: str = Field(description="The id again, for older clients.")
    type: Literal["custom"] = "custom"
    name: str
    status: Literal["ENABLED"] = "ENABLED"
    auth_scheme: AuthKind
    is_composio_managed: bool = False
    toolkit: ToolkitLogo
    credentials: dict[str, Any] = Field(description="`client_id` and `scopes`, of OAuth2.")
    expected_input_fields: list[dict[str, Any]] = Field(description="What a person fills in.")
    no_of_connections: int = Field(description="Accounts that are active by it.")
    tool_access_config: dict[str, Any] = Field(default_factory=dict)
    created_at: str
    last_updated_at: str


class AuthConfigPage(Page):
    """Some of them."""

    items: list[AuthConfig]


class AuthConfigDeleted(Answered):
    """It is gone."""

    success: bool = True
    message: str


class Sharing(ApiSent):
    """Whose an account is."""

    account_type: Literal["PRIVATE"] | None = Field(
        default=None, description="Accounts are their user's own here: there are no shared ones."
    )


class LinkAccount(ApiSent):
    """An account that a person is to connect."""

    auth_config_id: ConfigName
    user_id: UserName
    callback_url: CallbackUrl | None = None
    alias: AliasName | None = None
    experimental: Sharing | None = None


class AccountLinked(Answered):
    """It waits for a person."""

    link_token: str
    redirect_url: str = Field(description="To be opened by the person, in a browser. It is a secret.")
    connected_account_id: str
    expires_at: str


class Given(ApiSent):
    """What proves an account: by the names of the fields that a person would fill in."""

    authScheme: Kind = Field(validation_alias=_SCHEME, examples=["API_KEY"])  # noqa: N815  (the API's name)
    val: dict[str, Any] = Field(default_factory=dict, examples=[{"api_key": "a key"}])


class NewConnection(ApiSent):
    """Whose it is, and what is known of it already."""

    user_id: UserName
    callback_url: CallbackUrl | None = None
    alias: AliasName | None = None
    state: Given | None = Field(default=None, description="A key that is known; otherwise a person fills it in.")


class ConfigChosen(ApiSent):
    """By its id."""

    id: ConfigName


class CreateAccount(ApiSent):
    """An account to be connected, or whose key is known already."""

    auth_config: ConfigChosen
    connection: NewConnection


class ConnectionData(Answered):
    """How it stands; never what it is called with."""

    authScheme: str  # noqa: N815  (the API's name)
    val: dict[str, Any]


class AccountCreated(Answered):
    """Active, or waiting for a person who opens `redirect_url`."""

    id: str
    status: ConnectionStatus
    redirect_url: str | None
    redirect_uri: str | None = Field(description="The same, for older clients.")
    connectionData: ConnectionData  # noqa: N815  (the API's name)


class NewKey(ApiSent):
    """Another key in the place of the one there is."""

    state: Given


class ChangeAccount(ApiSent):
    """What is to be different."""

    alias: AliasName | None = Field(default=None, description="Empty for none.")
    connection: NewKey | None = None


class AccountChanged(Answered):
    """How it is now."""

    id: str
    status: ConnectionStatus
    success: bool = True


class SwitchAccount(ApiSent):
    """On or off."""

    enabled: bool


class AccountSwitched(Answered):
    """It is."""

    success: bool = True


class AccountRevoked(ConnectedAccount):
    """Without its tokens."""

    revoked_tokens: list[Literal["credential"]] = Field(description="What was taken back: all that there was.")
    connected_account: ConnectedAccount
