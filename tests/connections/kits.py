"""Toolkits whose accounts are connected in every way there is, and a source that has them."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from tests.connections.authorisation import SCOPES

from workbench.model.toolkit import (
    AuthField,
    AuthKind,
    AuthScheme,
    Identity,
    OAuthEndpoints,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
)

_CALLED = {"type": "object", "properties": {}}


def endpoints(url: str, **more: object) -> OAuthEndpoints:
    """Of an authorisation server."""
    return OAuthEndpoints(
        authorize_url=f"{url}/authorize",
        token_url=f"{url}/token",
        device_url=f"{url}/device",
        revoke_url=f"{url}/revoke",
        scopes=tuple(SCOPES.split()),
        **more,  # type: ignore[arg-type]
    )


def kits(url: str) -> tuple[Toolkit, ...]:
    """One for each way; `mixed` has two."""
    key = AuthScheme(kind=AuthKind.API_KEY, name="x-key")
    oauth = AuthScheme(kind=AuthKind.OAUTH2, prefix="Bearer ", oauth=endpoints(url))
    bearer = AuthScheme(kind=AuthKind.BEARER_TOKEN)
    identity = Identity(url=f"{url}/me", names=("owner.name", "owner.mail"))
    fields = (
        AuthField(name="api_key", label="Key"),
        AuthField(name="subdomain", label="Subdomain", is_secret=False, description="<as in your address>"),
    )
    return (
        Toolkit(slug="notes", name="Notes & <Co>", auth=(oauth,), hosts=("127.0.0.1",)),
        Toolkit(slug="keyed", name="Keyed", auth=(key,)),
        Toolkit(slug="desk", name="Desk", auth=(AuthScheme(kind=AuthKind.API_KEY, name="x-key", fields=fields),)),
        Toolkit(slug="bearing", name="Bearing", auth=(AuthScheme(kind=AuthKind.BEARER_TOKEN),)),
        Toolkit(slug="named", name="Named", auth=(AuthScheme(kind=AuthKind.BASIC),)),
        Toolkit(slug="mixed", name="Mixed", auth=(oauth, key)),
        Toolkit(
            slug="zone",
            name="Zone",
            auth=(replace(oauth, oauth=endpoints(f"{url}/sites/{{subdomain}}"), fields=fields[1:]),),
            hosts=(urlsplit(url).netloc,),
            identity=identity,
        ),
        Toolkit(
            slug="known",
            name="Known",
            auth=(bearer, replace(key, prefix="")),
            hosts=(urlsplit(url).netloc,),
            identity=identity,
        ),
        Toolkit(slug="open", name="Open", no_auth=True),
        Toolkit(slug="silent", name="Silent"),
    )


class KitSource:
    """A ToolSource with one tool for each of them, which says by whose account it was called."""

    def __init__(self, url: str) -> None:
        self._kits = kits(url)

    async def toolkits(self) -> tuple[Toolkit, ...]:
        return self._kits

    async def tools(self) -> tuple[Tool, ...]:
        return tuple(
            Tool(slug=f"{kit.slug.upper()}_GET", name="get", description="Get.", toolkit=kit.slug, input_schema=_CALLED)
            for kit in self._kits
        )

    async def run(self, call: ToolCall) -> ToolResult:
        return ToolResult(data={"account": call.credential.account if call.credential else ""})
