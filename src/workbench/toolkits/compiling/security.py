"""Security schemes of OpenAPI as ways to connect an account."""

from __future__ import annotations

from typing import Any

import httpx2

from workbench.model.connection import API_KEY, PASSWORD, TOKEN, USERNAME
from workbench.model.toolkit import AuthField, AuthKind, AuthScheme, Json, OAuthEndpoints
from workbench.toolkits.compiling.document import BrokenReference, Document, entries, table, text

_USER = AuthField(name=USERNAME, label="User name", is_secret=False)
_PASSWORD = AuthField(name=PASSWORD, label="Password")
# The one that asks the least of a person first.
_ORDER = (AuthKind.OAUTH2, AuthKind.API_KEY, AuthKind.BEARER_TOKEN, AuthKind.BASIC)
_MOST_SCOPES = 500


def auth_of(document: Document) -> tuple[tuple[AuthScheme, ...], dict[str, AuthKind], list[str]]:
    """Ways that can be gone here, the kind of each by its name in the document, and words about the others."""
    found: list[AuthScheme] = []
    kinds: dict[str, AuthKind] = {}
    warnings: list[str] = []
    for name, told in table(table(document.root.get("components")).get("securitySchemes")).items():
        try:
            scheme = _scheme(document.followed(told)[0])
        except BrokenReference as problem:
            warnings.append(f"the security scheme {name[:60]!r} is left out: {problem}")
            continue
        if isinstance(scheme, str):
            warnings.append(f"the security scheme {name[:60]!r} is left out: {scheme}")
        elif all((one.kind, one.name) != (scheme.kind, scheme.name) for one in found):
            found.append(scheme)
        if not isinstance(scheme, str):
            kinds[name] = scheme.kind
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.kind))), kinds, warnings


def _scheme(told: Json) -> AuthScheme | str:
    """One, or why there is none."""
    words = text(told.get("description"), 300)
    match text(told.get("type")), text(told.get("scheme")).lower():
        case "apiKey", _:
            place, name = told.get("in"), text(told.get("name"), 100)
            if place not in ("header", "query") or not name:
                return f"its key goes into {place!r}, and only headers and queries are filled in"
            field = AuthField(name=API_KEY, label="API key", description=words)
            return AuthScheme(kind=AuthKind.API_KEY, place=place, name=name, fields=(field,))
        case "http", "bearer":
            field = AuthField(name=TOKEN, label="Token", description=words)
            return AuthScheme(kind=AuthKind.BEARER_TOKEN, prefix="Bearer ", fields=(field,))
        case "http", "basic":
            return AuthScheme(kind=AuthKind.BASIC, prefix="Basic ", fields=(_USER, _PASSWORD))
        case "oauth2", _:
            return _oauth(table(told.get("flows")))
        case kind, scheme:
            return f"{kind[:40] or 'no type'} {scheme[:40]} is not known here".strip()


def _oauth(flows: Json) -> AuthScheme | str:
    flow = table(flows.get("authorizationCode"))
    device = table(flows.get("deviceAuthorization"))
    if not flow and not device:
        return f"of its flows ({', '.join(map(str, list(flows)[:5])) or 'none'}) none is begun by a person"
    token_url = _url(flow.get("tokenUrl")) or _url(device.get("tokenUrl"))
    if not token_url:
        return "it has no absolute address where tokens are given out"
    scopes = tuple(text(one, 300) for one in list({**table(device.get("scopes")), **table(flow.get("scopes"))}))
    oauth = OAuthEndpoints(
        authorize_url=_url(flow.get("authorizationUrl")),
        token_url=token_url,
        device_url=_url(device.get("deviceAuthorizationUrl")),
        scopes=scopes[:_MOST_SCOPES],
    )
    return AuthScheme(kind=AuthKind.OAUTH2, prefix="Bearer ", oauth=oauth)


def _url(value: Any) -> str:
    """Absolute, of https, or of http where that is this machine: whether it may be asked is looked at later."""
    told = text(value, 2000)
    try:
        url = httpx2.URL(told)
    except (httpx2.InvalidURL, ValueError):
        return ""
    return told if url.host and url.scheme in ("https", "http") and not url.userinfo else ""


def is_open(security: Any) -> bool:
    """Whether an operation says that it wants no account; one that takes calls with and without is asked with one."""
    return isinstance(security, list) and all(one == {} for one in security)


def scopes_of(security: Any, kinds: dict[str, AuthKind]) -> tuple[str, ...]:
    """Those that the first way of OAuth2 in it needs."""
    for choice in entries(security):
        for name, scopes in table(choice).items():
            if kinds.get(name) is AuthKind.OAUTH2:
                return tuple(text(one, 300) for one in entries(scopes) if isinstance(one, str))
    return ()
