"""What is asked of authorisation servers, and what their answers mean, however they say it."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from workbench.contracts.connections import TokenAnswer, TokenRequest
from workbench.core import oauth
from workbench.errors import UpstreamBadAnswer
from workbench.model.connection import Secret
from workbench.model.toolkit import OAuthEndpoints

_URL = "https://service.example"
_ENDPOINTS = OAuthEndpoints(
    authorize_url=f"{_URL}/authorize?tenant=a&state=theirs",
    token_url=f"{_URL}/token",
    device_url=f"{_URL}/device",
    revoke_url=f"{_URL}/revoke",
    scopes=("a", "b"),
    extra={"access_type": "offline"},
)
_CLIENT = oauth.Client(id="me", secret=Secret("CANARY"))


def _plain(request: TokenRequest) -> dict[str, str]:
    return {name: one.reveal() if isinstance(one, Secret) else one for name, one in request.form.items()}


def _answered(status: int = 200, **fields: Any) -> TokenAnswer:
    return TokenAnswer(status=status, fields=fields)


def test_a_person_is_sent_with_everything_the_service_wants_to_know() -> None:
    url = oauth.authorize_url(_ENDPOINTS, _CLIENT, state="s", verifier="v" * 43, redirect_uri="https://us/cb?x=1")
    asked = parse_qsl(urlsplit(url).query)
    digest = hashlib.sha256(b"v" * 43).digest()
    assert dict(asked) == {
        "tenant": "a",
        "access_type": "offline",
        "response_type": "code",
        "client_id": "me",
        "redirect_uri": "https://us/cb?x=1",
        "state": "s",
        "scope": "a b",
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    assert len(asked) == len(dict(asked))
    assert "CANARY" not in url


def test_scopes_of_a_client_come_before_those_of_the_toolkit_with_its_own_separator() -> None:
    slack = OAuthEndpoints(authorize_url=_URL, scope_separator=",", scopes=("a",), pkce=False)
    url = oauth.authorize_url(
        slack, oauth.Client(id="me", scopes=("x", "y")), state="s", verifier="v", redirect_uri="u"
    )
    asked = dict(parse_qsl(urlsplit(url).query))
    assert asked["scope"] == "x,y"
    assert "code_challenge" not in asked


def test_verifiers_are_as_the_standard_has_them_and_never_the_same() -> None:
    verifier = oauth.new_verifier()
    assert 43 <= len(verifier) <= 128
    assert verifier != oauth.new_verifier()


def test_a_clients_secret_goes_where_the_service_wants_it() -> None:
    by_form = oauth.code_request(_ENDPOINTS, _CLIENT, code="c", verifier="v", redirect_uri="u")
    assert _plain(by_form) == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": "u",
        "code_verifier": "v",
        "client_id": "me",
        "client_secret": "CANARY",
    }
    assert by_form.client is None
    basic = OAuthEndpoints(token_url=f"{_URL}/token", client_auth="basic")
    by_header = oauth.refresh_request(basic, _CLIENT, Secret("r"))
    assert by_header.client == ("me", Secret("CANARY"))
    assert _plain(by_header) == {"grant_type": "refresh_token", "refresh_token": "r"}
    public = oauth.device_token_request(basic, oauth.Client(id="me"), Secret("d"))
    assert (public.client, _plain(public)["client_id"]) == (None, "me")
    assert "client_secret" not in public.form
    for request in (by_form, by_header, oauth.revoke_request(_ENDPOINTS, _CLIENT, Secret("CANARY"), "access_token")):
        assert "CANARY" not in repr(request)


@pytest.mark.parametrize(
    ("fields", "scopes", "lives_s"),
    [
        ({}, None, None),
        ({"scope": "a b", "expires_in": 3600}, ("a", "b"), 3600.0),
        ({"scope": "a,b", "expires_in": "60"}, ("a", "b"), 60.0),
        ({"scope": ["a", "b"], "expires_in": 0}, ("a", "b"), None),
        ({"scope": "", "expires_in": -5}, (), None),
        ({"scope": 5, "expires_in": True}, None, None),
        ({"expires_in": "soon"}, None, None),
        ({"expires_in": 1e300}, None, 10 * 365 * 86_400),
    ],
)
def test_what_was_granted_is_read_however_it_is_told(
    fields: dict[str, Any], scopes: tuple[str, ...] | None, lives_s: float | None
) -> None:
    endpoints = OAuthEndpoints(scope_separator=",")
    tokens = oauth.tokens_of(_answered(access_token="t", refresh_token="r", **fields), endpoints)
    assert (tokens.access.reveal(), tokens.refresh.reveal()) == ("t", "r")
    assert (tokens.scopes, tokens.lives_s) == (scopes, lives_s)
    assert "'t'" not in repr(tokens)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (_answered(400, error="invalid_grant", error_description="CANARY"), "invalid_grant"),
        (_answered(200, error="bad_verification_code"), "bad_verification_code"),
        (_answered(200, ok=False, error="invalid_code"), "invalid_code"),
        (_answered(401), "status 401"),
        (_answered(400, error="<script>" * 20), "status 400"),
        (_answered(400, access_token="t"), "status 400"),
    ],
)
def test_a_refusal_is_known_by_its_word_and_nothing_else_of_it(answer: TokenAnswer, code: str) -> None:
    with pytest.raises(oauth.Refusal) as problem:
        oauth.tokens_of(answer, _ENDPOINTS)
    assert problem.value.code == code


@pytest.mark.parametrize(
    "answer",
    [
        _answered(500),
        _answered(200),
        _answered(302, access_token="t"),
        _answered(access_token="CANARY\r\nX-Evil: 1"),
        _answered(access_token="CANARY" * 10_000),
        _answered(access_token="CANARYé"),
        _answered(access_token="t", refresh_token="CANARY\n"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused_without_being_shown(answer: TokenAnswer) -> None:
    with pytest.raises(UpstreamBadAnswer) as problem:
        oauth.tokens_of(answer, _ENDPOINTS)
    assert "CANARY" not in str(problem.value)


def test_a_code_for_another_device_is_shown_as_it_was_told() -> None:
    told: dict[str, Any] = {"device_code": "d", "user_code": "AB-CD", "verification_url": f"{_URL}/activate"}
    grant = oauth.device_of(_answered(**told))
    assert (grant.user_code, grant.verification_uri, grant.complete_uri) == ("AB-CD", f"{_URL}/activate", "")
    assert (grant.interval_s, grant.lives_s) == (5, 900)
    bounded = oauth.device_of(_answered(**told, interval=0.1, expires_in=10**9))
    assert (bounded.interval_s, bounded.lives_s) == (1, 3600)


@pytest.mark.parametrize(
    "wrong", [{"user_code": "\n"}, {"user_code": 5}, {"verification_uri": "javascript:1"}, {"verification_uri": None}]
)
def test_a_code_that_cannot_be_shown_is_refused(wrong: dict[str, Any]) -> None:
    told = {"device_code": "d", "user_code": "AB-CD", "verification_uri": f"{_URL}/activate"}
    with pytest.raises(UpstreamBadAnswer):
        oauth.device_of(_answered(**{**told, **wrong}))
    with pytest.raises(oauth.Refusal):
        oauth.device_of(_answered(400, error="unauthorized_client"))
