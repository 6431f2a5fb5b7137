"""OAuth2, as far as it is words: what is asked of an authorisation server, and what its answers mean. Who sends it is
left to others.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from workbench.contracts.connections import TokenAnswer, TokenRequest
from workbench.errors import InvalidRequest, UpstreamBadAnswer
from workbench.model.connection import Secret
from workbench.model.toolkit import OAuthEndpoints

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
# What it wants to be asked with; some answer with a form otherwise.
_MOST_TOKEN = 16 * 1024
_MOST_LIFE_S = 10 * 365 * 86_400
_DEFAULT_INTERVAL_S, _MOST_INTERVAL_S = 5, 60
_DEFAULT_DEVICE_S, _MOST_DEVICE_S = 900, 3600
_HOLE = re.compile(r"\{([^{}]{1,100})\}")
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_ERROR = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """As whom we ask."""

    id: str
    secret: Secret = field(default_factory=lambda: Secret(""))
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What it granted."""

    access: Secret
    refresh: Secret
    """empty if it gave none"""
    scopes: tuple[str, ...] | None
    """None if it did not say"""
    lives_s: float | None
    """None if it did not say"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGrant:
    """What a person types in on another device."""

    device_code: Secret
    user_code: str
    verification_uri: str
    complete_uri: str
    """with the code in it; empty if there is none"""
    interval_s: int
    lives_s: int


class Refusal(Exception):
    """The server said no; `code` is its word for it, of OAuth2's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def filled(endpoints: OAuthEndpoints, values: Mapping[str, Secret]) -> OAuthEndpoints:
    """With what the person told of their account in its addresses: `{subdomain}`.

    Raises:
        InvalidRequest: something is missing, or is no part of a host's name.
    """

    def put(found: re.Match[str]) -> str:
        value = values[found[1]].reveal() if found[1] in values else ""
        # BARRIER: `evil.example/` as a subdomain would take the client's secret and the code to another host; held by
        # tests/connections/test_oauth.py.
        if not _PART.fullmatch(value):
            raise InvalidRequest(
                f"{found[1]} is missing, or is no part of a host's name such as `acme` of acme.example.com: fill it in",
                {"field": found[1]},
            )
        return value

    return replace(
        endpoints,
        authorize_url=_HOLE.sub(put, endpoints.authorize_url),
        token_url=_HOLE.sub(put, endpoints.token_url),
        device_url=_HOLE.sub(put, endpoints.device_url),
        revoke_url=_HOLE.sub(put, endpoints.revoke_url),
    )


def new_verifier() -> str:
    """For PKCE: 43 characters, as its standard has it."""
    return secrets.token_urlsafe(32)


def challenge_of(verifier: str) -> str:
    """What is told beforehand of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def authorize_url(endpoints: OAuthEndpoints, client: Client, *, state: str, verifier: str, redirect_uri: str) -> str:
    """Where the person is sent."""
    scopes = client.scopes or endpoints.scopes
    asked = {
        **endpoints.extra,
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
    }
    if scopes:
        asked["scope"] = endpoints.scope_separator.join(scopes)
    if endpoints.pkce:
        asked |= {"code_challenge": challenge_of(verifier), "code_challenge_method": "S256"}
    parts = urlsplit(endpoints.authorize_url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in asked]
    return urlunsplit(parts._replace(query=urlencode([*kept, *asked.items()]), fragment=""))


def code_request(
    endpoints: OAuthEndpoints, client: Client, *, code: str, verifier: str, redirect_uri: str
) -> TokenRequest:
    """For the tokens of a code."""
    form: dict[str, str | Secret] = {
        "grant_type": "authorization_code",
        "code": Secret(code),
        "redirect_uri": redirect_uri,
    }
    if endpoints.pkce:
        form["code_verifier"] = Secret(verifier)
    return _as_client(endpoints, client, endpoints.token_url, form)


def refresh_request(endpoints: OAuthEndpoints, client: Client, refresh: Secret) -> TokenRequest:
    """For new tokens."""
    return _as_client(endpoints, client, endpoints.token_url, {"grant_type": "refresh_token", "refresh_token": refresh})


def device_request(endpoints: OAuthEndpoints, client: Client) -> TokenRequest:
    """For a code that a person types in elsewhere."""
    form: dict[str, str | Secret] = {}
    if scopes := client.scopes or endpoints.scopes:
        form["scope"] = endpoints.scope_separator.join(scopes)
    return _as_client(endpoints, client, endpoints.device_url, form)


def device_token_request(endpoints: OAuthEndpoints, client: Client, device_code: Secret) -> TokenRequest:
    """Whether the person did so."""
    form: dict[str, str | Secret] = {"grant_type": DEVICE_GRANT, "device_code": device_code}
    return _as_client(endpoints, client, endpoints.token_url, form)


def revoke_request(endpoints: OAuthEndpoints, client: Client, token: Secret, hint: str) -> TokenRequest:
    """That it is not to be used any more."""
    return _as_client(endpoints, client, endpoints.revoke_url, {"token": token, "token_type_hint": hint})


def _as_client(endpoints: OAuthEndpoints, client: Client, url: str, form: Mapping[str, str | Secret]) -> TokenRequest:
    if not client.secret:
        return TokenRequest(url=url, form={**form, "client_id": client.id})
    if endpoints.client_auth == "basic":
        return TokenRequest(url=url, form=form, client=(client.id, client.secret))
    return TokenRequest(url=url, form={**form, "client_id": client.id, "client_secret": client.secret})


def tokens_of(answer: TokenAnswer, endpoints: OAuthEndpoints) -> Tokens:
    """What was granted.

    Raises:
        Refusal: nothing.
        UpstreamBadAnswer: the answer makes no sense.
    """
    access = answer.fields.get("access_token")
    # Some say so with the status of a success.
    if not isinstance(access, str) or not access or not 200 <= answer.status < 300:
        raise _refusal(answer)
    refresh = answer.fields.get("refresh_token")
    return Tokens(
        access=Secret(_token(access)),
        refresh=Secret(_token(refresh) if isinstance(refresh, str) else ""),
        scopes=_scopes(answer.fields.get("scope"), endpoints.scope_separator),
        lives_s=_seconds(answer.fields.get("expires_in")),
    )


def device_of(answer: TokenAnswer) -> DeviceGrant:
    """What the person is to be shown.

    Raises:
        Refusal: the server does not want to.
        UpstreamBadAnswer: the answer makes no sense.
    """
    told = answer.fields
    code, shown = told.get("device_code"), told.get("user_code")
    # One of those who were first calls it so.
    where = told.get("verification_uri") or told.get("verification_url")
    if not 200 <= answer.status < 300 or not isinstance(code, str):
        raise _refusal(answer)
    if not (isinstance(shown, str) and _is_shown(shown) and isinstance(where, str) and _is_web(where)):
        raise UpstreamBadAnswer("the authorisation server gave no code that could be shown")
    complete = told.get("verification_uri_complete")
    interval, lives = _seconds(told.get("interval")), _seconds(told.get("expires_in"))
    return DeviceGrant(
        device_code=Secret(_token(code)),
        user_code=shown,
        verification_uri=where,
        complete_uri=complete if isinstance(complete, str) and _is_web(complete) else "",
        interval_s=int(min(max(interval or _DEFAULT_INTERVAL_S, 1), _MOST_INTERVAL_S)),
        lives_s=int(min(lives or _DEFAULT_DEVICE_S, _MOST_DEVICE_S)),
    )


def error_word(text: object) -> str:
    """Its word for what is wrong, if that can be shown; what stands beside it may be anything."""
    return text if isinstance(text, str) and _ERROR.fullmatch(text) else ""


def _refusal(answer: TokenAnswer) -> Refusal | UpstreamBadAnswer:
    if word := error_word(answer.fields.get("error")):
        return Refusal(word)
    if 400 <= answer.status < 500:
        return Refusal(f"status {answer.status}")
    return UpstreamBadAnswer(
        f"the authorisation server answered with the status {answer.status} and without a token",
        {"status": str(answer.status)},
    )


def _token(text: str) -> str:
    # BARRIER: it goes into a header, where a line break would begin another one; held by tests/unit/core/test_oauth.py.
    if len(text) > _MOST_TOKEN or not text.isascii() or not text.isprintable():
        raise UpstreamBadAnswer("the authorisation server gave a token that cannot be sent")
    return text


def _scopes(told: object, separator: str) -> tuple[str, ...] | None:
    if isinstance(told, list):
        return tuple(str(one)[:200] for one in told[:200])
    if not isinstance(told, str):
        return None
    # By its own separator, or by the standard's, whatever was asked with.
    return tuple(one[:200] for one in re.split(rf"[\s{re.escape(separator)}]+", told)[:200] if one)


def _seconds(told: object) -> float | None:
    try:
        seconds = float(told) if isinstance(told, int | float | str) and not isinstance(told, bool) else 0.0
    except ValueError:
        return None
    return min(seconds, _MOST_LIFE_S) if seconds > 0 else None


def _is_shown(text: str) -> bool:
    return 0 < len(text) <= 60 and text.isprintable()


def _is_web(text: str) -> bool:
    return len(text) <= 2000 and text.isprintable() and text.startswith(("https://", "http://"))
