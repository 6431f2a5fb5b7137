"""Authorisation servers, asked for tokens by the same bounded call as services, and never in the clear."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote_plus, urlencode

import httpx2

from workbench.contracts.connections import TokenAnswer, TokenRequest
from workbench.contracts.service_calls import ServiceAnswer, ServiceOrder
from workbench.egress.guard import Resolver
from workbench.egress.policy import AddressPolicy
from workbench.egress.targets import shown, target_of
from workbench.errors import Denied, UpstreamBadAnswer, UpstreamUnavailable
from workbench.model.connection import Secret
from workbench.toolkits.sending import ALLOW_SETTING, Patience, ServiceCaller

_MOST_BYTES = 2**20
# A person, or a call, waits for it.
_PATIENCE = Patience(idle_s=20.0, whole_s=30.0, longest_pause_s=5.0)


class GuardedTokenEndpoints:
    """`contracts.connections.TokenEndpoints`. `aclose` it."""

    def __init__(
        self, policy: AddressPolicy, *, patience: Patience = _PATIENCE, resolver: Resolver | None = None
    ) -> None:
        self._policy = policy
        self._caller = ServiceCaller(policy, patience=patience, resolver=resolver, most_bytes=_MOST_BYTES)

    async def ask(self, request: TokenRequest) -> TokenAnswer:
        """As the contract has it."""
        url = target_of(request.url)
        self._check_private(url)
        headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
        if request.client is not None:
            headers.append(("Authorization", _basic(*request.client)))
        form = {name: _plain(value) for name, value in request.form.items()}
        answer = await self._caller.call(
            ServiceOrder(
                method="POST",
                url=str(url),
                headers=tuple(headers),
                body=urlencode(form).encode(),
                # BARRIER: a redirect would take the client's secret elsewhere; held by
                # tests/connections/test_token_endpoints.py.
                hosts=(_host_of(url),),
            )
        )
        if answer.status is None:
            raise UpstreamUnavailable(f"{shown(url)} gave no whole answer: {answer.problem}", {"host": url.host})
        if answer.problem:
            raise UpstreamBadAnswer(f"the answer of {shown(url)} cannot be read: {answer.problem}", {"host": url.host})
        return TokenAnswer(status=answer.status, fields=_fields(answer))

    async def aclose(self) -> None:
        """As the contract has it."""
        await self._caller.aclose()

    def _check_private(self, url: httpx2.URL) -> None:
        # BARRIER: codes and secrets would be read by everybody on the way; held by
        # tests/connections/test_token_endpoints.py.
        if url.scheme != "https" and not self._policy.is_named(url.host):
            raise Denied(
                f"{shown(url)} is not https, and secrets are not sent in the clear; use https, or name the host in "
                f"{ALLOW_SETTING} if it is one of your own network",
                {"host": url.host, "setting": ALLOW_SETTING},
            )


def _host_of(url: httpx2.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host}:{url.port}" if url.port else host


def _basic(client: str, secret: Secret) -> str:
    # Each part as in a form first, as the standard has it.
    pair = f"{quote_plus(client)}:{quote_plus(secret.reveal())}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def _plain(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _fields(answer: ServiceAnswer) -> Mapping[str, object]:
    if isinstance(answer.data, dict):
        return answer.data
    # A form: some answer so, whatever they were asked for.
    return dict(parse_qsl(answer.data)) if isinstance(answer.data, str) else {}
