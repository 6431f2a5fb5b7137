"""A real OAuth2 authorisation server on loopback, by authlib: codes with PKCE, refresh tokens that are good once,
device codes, revocation; with a service beside it that takes its tokens only. It writes down everything it was sent.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, AuthorizationServer, ClientMixin, OAuth2Request, TokenMixin
from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialDict

CLIENT_ID = "workbench-client"
CLIENT_SECRET = "CANARY-client-secret-5c1f"
USER = "resource-owner"
SCOPES = "notes.read notes.write"
# Customers have addresses of their own.
_SITE = re.compile(r"^/sites/[a-z]+")


@dataclass
class World:
    """What the server knows, and what a test may change."""

    scopes: str = SCOPES
    mark: str = "CANARY"
    """what every token begins with"""
    client_secret: str = CLIENT_SECRET
    redirect_uris: set[str] = field(default_factory=set)
    client_auth: str = "client_secret_post"
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    devices: dict[str, DeviceCredentialDict] = field(default_factory=dict)
    granted: dict[str, bool] = field(default_factory=dict)
    """by user code"""
    expires_in: int = 3600
    denies: bool = False
    broken: bool = False
    """its token endpoint answers with a 500"""
    slow_s: float = 0.0
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """paths and forms"""
    failures: list[str] = field(default_factory=list)

    def living(self) -> list[Token]:
        """Those that its service takes."""
        return [one for one in self.tokens if not one.revoked and one.born + one.expires_in > time.time()]


class Client(ClientMixin):
    """The only one."""

    def __init__(self, world: World) -> None:
        self._world = world

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> str | None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        allowed = set(self._world.scopes.split())
        return " ".join(one for one in (scope or "").split() if one in allowed)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self._world.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(client_secret, self._world.client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self._world.client_auth

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return True


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):
    access_token: str
    refresh_token: str
    scope: str
    expires_in: int
    born: float
    revoked: bool = False

    def check_client(self, client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return self.expires_in

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return self.revoked

    def get_user(self) -> str:
        return USER

    def get_client(self) -> None:
        return None


class Server(AuthorizationServer):
    """authlib's, on requests of the standard library."""

    def __init__(self, world: World, url: str) -> None:
        super().__init__(scopes_supported=world.scopes.split())
        self.world = world
        self.url = url
        generator = BearerTokenGenerator(
            lambda **_: f"{world.mark}-access-{secrets.token_hex(16)}",
            lambda **_: f"{world.mark}-refresh-{secrets.token_hex(16)}",
            lambda *_: world.expires_in,
        )
        self.register_token_generator("default", generator)
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_DeviceGrant)
        self.register_endpoint(_DeviceEndpoint(self))
        self.register_endpoint(_Revocation(self))

    def query_client(self, client_id: str) -> Client | None:
        return Client(self.world) if client_id == CLIENT_ID else None

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        self.world.tokens.append(
            Token(
                access_token=token["access_token"],
                refresh_token=token.get("refresh_token", ""),
                scope=token.get("scope", ""),
                expires_in=token["expires_in"],
                born=time.time(),
            )
        )

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, dict[str, str]]:
        return status, body, dict(headers)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        return None


class _CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        self.server.world.codes[code] = Code(
            code=code,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            code_challenge=request.payload.data.get("code_challenge"),
            code_challenge_method=request.payload.data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found: Code | None = self.server.world.codes.get(code)
        return found

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.world.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return USER


class _RefreshGrant(RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        good = [one for one in self.server.world.tokens if not one.revoked]
        return next((one for one in good if one.refresh_token == refresh_token), None)

    def authenticate_user(self, refresh_token: Token) -> str:
        return USER

    def revoke_old_credential(self, refresh_token: Token) -> None:
        # As strict servers do it: a second use of a refresh token is a thief.
        refresh_token.revoked = True


class _DeviceEndpoint(DeviceAuthorizationEndpoint):
    INTERVAL = 1

    def get_verification_uri(self) -> str:
        return f"{self.server.url}/activate"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        self.server.world.devices[data["device_code"]] = DeviceCredentialDict(client_id=client_id, scope=scope, **data)


class _DeviceGrant(DeviceCodeGrant):
    def query_device_credential(self, device_code: str) -> DeviceCredentialDict | None:
        found: DeviceCredentialDict | None = self.server.world.devices.get(device_code)
        return found

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        said = self.server.world.granted.get(user_code)
        return None if said is None else (USER, said)

    def should_slow_down(self, credential: DeviceCredentialDict) -> bool:
        return False


class _Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012

    def query_token(self, token_string: str, token_type_hint: str) -> Token | None:
        tokens = self.server.world.tokens
        return next((one for one in tokens if token_string in (one.refresh_token, one.access_token)), None)

    def revoke_token(self, token: Token, request: OAuth2Request) -> None:
        token.revoked = True


class Handler(BaseHTTPRequestHandler):
    """One request; those of a service that has other addresses come in a subclass."""

    server_of: Server
    world: World

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        path = _SITE.sub("", urlsplit(self.path).path)
        asked = dict(parse_qsl(urlsplit(self.path).query))
        if path == "/authorize":
            self._authorize(asked)
        elif path == "/notes":
            self._notes()
        elif path == "/me":
            self._me()
        else:
            self._answer(404, {"error": "nothing here"}, {})

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers.get("content-length", 0))).decode()))
        self.world.seen.append((urlsplit(self.path).path, form))
        path = _SITE.sub("", urlsplit(self.path).path)
        if self.world.slow_s:
            time.sleep(self.world.slow_s)
        if self.world.broken:
            self._answer(500, {"message": "out of order"}, {})
            return
        request = OAuth2Request("POST", f"https://server{self.path}", headers=self.headers)
        request.payload = BasicOAuth2Payload(form)
        request._body = form
        if path == "/token":
            self._answer(*self.server_of.create_token_response(request))
        elif path == "/device":
            self._answer(*self.server_of.create_endpoint_response("device_authorization", request))
        elif path == "/revoke":
            self._answer(*self.server_of.create_endpoint_response("revocation", request))
        elif path == "/authorize":
            self._decided(form)
        else:
            self._answer(404, {"error": "nothing here"}, {})

    def _authorize(self, asked: dict[str, str]) -> None:
        """The page on which the person agrees."""
        request = OAuth2Request("GET", f"https://server{self.path}", headers=self.headers)
        request.payload = BasicOAuth2Payload(asked)
        try:
            self.server_of.get_consent_grant(request, USER)
        except OAuth2Error as problem:
            self.world.failures.append(str(problem))
            self._answer(400, {"error": problem.error}, {})
            return
        hidden = "".join(
            f"<input type=hidden name='{html.escape(name)}' value='{html.escape(value)}'>"
            for name, value in asked.items()
        )
        self._answer(
            200,
            "<!doctype html><title>Consent</title><form method=post action=/authorize>"
            f"{hidden}<button id=agree name=agreed value=yes>Agree</button>"
            "<button id=refuse name=agreed value=no>Refuse</button></form>",
            {"content-type": "text/html"},
        )

    def _decided(self, form: dict[str, str]) -> None:
        agreed = form.pop("agreed", "") == "yes" and not self.world.denies
        request = OAuth2Request("POST", f"https://server/authorize?{urlencode(form)}", headers=self.headers)
        request.payload = BasicOAuth2Payload(form)
        grant = self.server_of.get_consent_grant(request, USER)
        status, body, headers = self.server_of.create_authorization_response(
            request, grant_user=USER if agreed else None, grant=grant
        )
        self._answer(status, body, headers)

    def _notes(self) -> None:
        """The service: for who has a token of ours."""
        given = self.headers.get("authorization", "")
        if any(given == f"Bearer {one.access_token}" for one in self.world.living()):
            self._answer(200, {"notes": ["buy milk"]}, {})
        else:
            self._answer(401, {"error": "no"}, {})

    def _me(self) -> None:
        """Who that is, for who has a token of ours, or one that begins so."""
        given = self.headers.get("authorization", "")
        if given.startswith("Bearer known-") or any(
            given == f"Bearer {one.access_token}" for one in self.world.living()
        ):
            self._answer(200, {"owner": {"mail": "ann@example.com"}}, {})
        else:
            self._answer(401, {"error": "no"}, {})

    def _answer(self, status: int, body: Any, headers: Any) -> None:
        content = body if isinstance(body, str) else json.dumps(body)
        headers = {"content-type": "application/json", **{k.lower(): v for k, v in dict(headers).items()}}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())


@dataclass(frozen=True)
class Authorisation:
    """A server that runs."""

    url: str
    world: World


@contextlib.contextmanager
def authorisation_server(world: World | None = None, kind: type[Handler] = Handler) -> Iterator[Authorisation]:
    """On loopback, until the end."""
    world = world or World()
    handler = type("Handler", (kind,), {"world": world})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    handler.server_of = Server(world, url)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Authorisation(url, world)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
